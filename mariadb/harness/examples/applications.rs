//! Loads the schemas of Debian's applications into a private server, on FronDB and on InnoDB, and
//! compares both; `cargo xtask test-apps` fetches the packages and runs this.
//!
//! ```text
//! applications             prints the names of the packages
//! applications FOLDER      runs all applications, whose packages are unpacked in the folder
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use frondb_mariadb_harness::applications::{APPLICATIONS, run};
use frondb_mariadb_harness::{Error, Options, Result, Server};

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        for app in &APPLICATIONS {
            println!("{}", app.package);
        }
        return ExitCode::SUCCESS;
    };
    match run_all(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(packages: &Path) -> Result {
    let options = Options::new()
        .plugin_from_environment()
        .set("innodb-flush-log-at-trx-commit=0")
        .set("frondb-memory=128M");
    let folder = packages.join("server");
    let mut server = Server::start_fresh(&folder, options)?;
    for app in &APPLICATIONS {
        println!("{} {}", app.name, run(&server, app, packages)?);
    }
    server.stop()?;
    // After a failure the data and the dumps stay, to be examined.
    fs::remove_dir_all(&folder).map_err(|error| Error::Harness(format!("{error}")))
}
