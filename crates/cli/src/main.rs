//! The program `frondb`; all its code is in the library of this package, where tests reach it.

fn main() -> std::process::ExitCode {
    frondb_cli::run()
}
