//! The program `frondb`; everything is in the library beside it, where tests reach it.

fn main() -> std::process::ExitCode {
    frondb_cli::run()
}
