//! `make test`: everything that must hold before a change lands, in one run and one summary.
//!
//! Cheap checks come first, so a slip shows in seconds; a failed step does not hide those after it.
//! One build profile serves all of it: clippy shares build scripts with the tests, and shuttle, which
//! needs other compiler flags, has its own folder below `target/` with only the crates it tests. What
//! needs a MariaDB server comes last, with the plugin built as it is shipped.

use crate::step::{Cmd, Summary};
use crate::{Result, install, layers, mariadb, report, shuttle, tidy};

/// Runs the whole suite.
pub(crate) fn run() -> Result {
    install::c_compiler()?;
    install::rust_components()?;
    let mut summary = Summary::default();
    summary.step("format", || Cmd::new("cargo", "fmt --all --check").run());
    summary.step("layers", || report("layers", layers::check()));
    summary.step("tidy", || report("tidy", tidy::check()));
    summary
        .step("lints", || Cmd::new("cargo", "clippy --quiet --all-targets -- -D warnings").run());
    summary.tests("tests", || {
        Cmd::new("cargo", "test --quiet --no-fail-fast --lib --bins --tests --examples").run_tests()
    });
    summary.tests("documentation tests", || {
        Cmd::new("cargo", "test --quiet --no-fail-fast --doc").run_tests()
    });
    summary.tests("shuttle", shuttle::run_counted);
    mariadb::test_steps(&mut summary);
    summary.finish()
}
