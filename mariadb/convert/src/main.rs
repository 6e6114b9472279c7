//! The program `frondb-convert`. All its code is in the library of this package.

fn main() -> std::process::ExitCode {
    frondb_convert::run()
}
