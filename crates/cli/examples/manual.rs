//! Writes the manual pages and the completions of `frondb` into a folder, for packages:
//!
//! ```text
//!   FOLDER/man/frondb.1, frondb-create.1 and others
//!   FOLDER/completions/   for bash, zsh and fish
//! ```

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use clap_complete::Shell;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: manual FOLDER")?;
    let (man, completions) =
        (PathBuf::from(&folder).join("man"), PathBuf::from(&folder).join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(frondb_cli::command(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut frondb_cli::command(), "frondb", &completions)?;
    }
    Ok(())
}
