//! The program `frondb-convert`; all its code is in the library of this package.

fn main() -> std::process::ExitCode {
    frondb_convert::run()
}
