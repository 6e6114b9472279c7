//! The project's own commands, which `make` and `cargo xtask` run: checks, tests, benchmarks,
//! fuzzing.
//!
//! These commands are Rust and not shell scripts, so that they are tested, and the same on every
//! machine and in CI. The checks `layers`, `modules` and `tidy` are functions from files to a list
//! of findings. The command prints the findings, and a test of this crate demands that there are
//! none, so `cargo test` enforces these rules too.
//!
//! | module | what it does |
//! |---|---|
//! | [`command`] | what all commands share: their result and their arguments |
//! | [`workspace`] | finds the crates and their files |
//! | [`layers`] | checks every Cargo.toml against layers.toml and docs/dependencies.md |
//! | [`modules`] | finds cycles of modules inside a crate |
//! | [`tidy`] | house rules on source and documents that no other tool checks |
//! | [`subjects`] | checks the first lines of commit messages |
//! | [`fuzz_entries`] | the decoders that the fuzzers call |
//! | [`docs`] | checks the documentation of the library |
//! | [`api`] | the list of what is public in the library |
//! | [`crates`] | the crates of the library, as they would be published |
//! | [`toolchain`] | the version of Rust that is promised to users |
//! | [`pages`] | pages for operators, written from the source |
//! | [`markdown`] | links and blocks of code of pages |
//! | [`site`] | builds the documentation site |
//! | [`report`](mod@report) | measures all figures of benchmarks.md, heritage.md and README.md; writes them |
//! | [`step`] | runs commands |
//! | [`pool`] | runs several jobs at once |
//! | [`programs`] | the test programs that cargo has built |
//! | [`summary`] | how long steps took, and whether they passed |
//! | [`install`] | installs missing programs, or says how to |
//! | [`install_c`] | the C library's header, and installing it |
//! | [`stripped`] | installed libraries without debug symbols |
//! | [`node`] | the package for Node.js, its benchmark, and the tools of its tests |
//! | [`packages`] | packages for Debian |
//! | [`python`] | the wheel for Python, and the tools of its tests |
//! | [`mariadb`] | the storage engine plugin and a private server |
//! | [`suite`] | the command `test` |
//! | [`bench`](mod@bench), [`fuzz`], [`audit`] | the commands of these names |
//! | [`sanitize`], [`shuttle`], [`soak`] | the commands of these names |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

mod api;
mod audit;
mod bench;
mod command;
mod crates;
mod docs;
mod fuzz;
mod fuzz_entries;
mod install;
mod install_c;
mod layers;
mod mariadb;
mod markdown;
mod modules;
mod node;
mod packages;
mod pages;
mod pool;
mod programs;
mod python;
mod report;
mod sanitize;
mod shuttle;
mod site;
mod soak;
mod step;
mod stripped;
mod subjects;
mod suite;
mod summary;
mod tidy;
mod toolchain;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use command::{Result, report, variables};

const USAGE: &str = "\
usage: cargo xtask COMMAND [NAME=VALUE ...]
  test       format, layers, modules, tidy, lints, all tests; one summary
  layers     check Cargo.toml files against layers.toml and docs/dependencies.md
  modules    find cycles of modules, with their imports
  tidy       check house rules on source and documents
  subjects   check the first lines of commit messages
  bench      WORKLOAD= ENGINES= ROWS= MEMORY= JSON= ROUNDS= DIR= and more  compare engines
  report     RENDER= SCALE= DIR= STEPS=  measure the figures of docs/benchmarks.md, docs/heritage.md and README.md, and write them
  fuzz       TARGET= SECONDS=  fuzz the decoders
  fuzz-targets  write the files of fuzz/ from the crates' fuzz entries
  pages      write options.md, status.md and errors.md from the source, and the Rust on all pages
  docs       check the pages of `cargo doc` for links that lead nowhere
  api        write crates/frondb/api.txt, the list of what is public in the library
  crates     make the packages of the library as for crates.io, and build each of them alone
  site       build the documentation site and check its links
  header     write crates/capi/include/frondb.h from the source
  install-c  PREFIX= DESTDIR= FROM=  install the C library, its header and frondb.pc
  audit      licences, bans and sources of all dependencies
  sanitize   tests of crates with unsafe code under address sanitizer or valgrind
  shuttle    concurrency tests under the shuttle scheduler
  soak       TIMES= MINUTES= SEED=  the random tests of `test`, longer and on new seeds
  node       PLATFORMS=  build, install and test the package for Node.js
  node-tools  install node, with which `test` runs the tests in JavaScript
  node-bench  compare the package for Node.js with lmdb and classic-level; settings as in crates/node/bench/compare.mjs
  python     build, install and test the wheel and the source distribution for Python
  python-tools  make the environment with which `test` runs the tests in Python
  packages   SUITE=  build packages for a release of Debian, bookworm or trixie, in a root
  test-packages  SUITE= REPRODUCE=  install, use, upgrade and remove the packages in a root
  package-files  TO=  put the files of all packages into a folder, for debian/rules
  plugin     SERVER=  build ha_frondb.so for the installed MariaDB server, or for another series
  install-plugin  PLUGIN_DIR= BIN_DIR= DESTDIR= FROM= PROGRAMS=  install ha_frondb.so and programs for the installed server
  server     SERVER=  start a private MariaDB server with the plugin, and a client
  server-stop  stop it
  test-mariadb  SERVER=  all tests that need a server (part of test)
  test-mariadb-full  SERVER=  suites that work with any engine, with FronDB and InnoDB (an hour)
  test-apps  schemas of Debian's applications, with FronDB and InnoDB (a minute)
  mtr        SERVER= SUITES= TESTS= ENGINE=  single suites or tests of the server's own
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(command) = args.next() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let rest: Vec<String> = args.collect();
    let result = match command.as_str() {
        "test" => suite::run(),
        "layers" => report("layers", layers::check()),
        "modules" => report("modules", modules::check()),
        "tidy" => report("tidy", tidy::check()),
        "subjects" => report("subjects", subjects::check()),
        "bench" => bench::run(&rest),
        "report" => report::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "fuzz-targets" => fuzz::write_targets(),
        "pages" => pages::write(),
        "docs" => docs::check(),
        "api" => api::write(),
        "crates" => crates::run(),
        "site" => site::build(),
        "header" => install_c::header(),
        "install-c" => install_c::run(&rest),
        "audit" => audit::run(),
        "sanitize" => sanitize::run(),
        "shuttle" => shuttle::run(),
        rustc if Path::new(rustc).file_name() == Some("rustc".as_ref()) => {
            shuttle::compile(rustc, &rest)
        }
        "soak" => soak::run(&rest),
        "node" => node::run(&rest),
        "node-tools" => node::tools(),
        "node-bench" => node::bench(&rest),
        "packages" => packages::run(&rest),
        "packages-inside" => packages::inside(&rest),
        "test-packages" => packages::test(&rest),
        "test-packages-inside" => packages::test_inside(&rest),
        "package-files" => packages::files(&rest),
        "python" => python::run(),
        "python-tools" => python::tools(),
        "plugin" => mariadb::with_server(&command, &rest, mariadb::library, |_| mariadb::build()),
        "install-plugin" => mariadb::install_plugin(&rest),
        "server" => mariadb::with_server(&command, &rest, mariadb::library, |_| mariadb::start()),
        "server-stop" => mariadb::stop(),
        "test-mariadb" => {
            mariadb::with_server(&command, &rest, mariadb::build_tests, |_| mariadb::test())
        }
        "test-mariadb-full" => {
            mariadb::with_server(&command, &rest, mariadb::library, |_| mariadb::test_full())
        }
        "test-apps" => mariadb::test_apps(),
        "mtr" => mariadb::with_server(&command, &rest, mariadb::library, mariadb::mtr),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
