//! `make test`: all checks and tests that a change must pass, in one run with one summary.
//!
//! Cheap checks run first, so that a small mistake shows within seconds. A failed step does not
//! stop the steps after it. Then everything is built with one build profile, so that clippy shares
//! build scripts, and shuttle shares dependencies, with the tests. The plugin is built as it ships; a
//! thread installs what its build and its tests need from the start on. At the end all test programs run, several at
//! the same time: while one program waits for a server, others use the processors.

use crate::pool::{self, Job};
use crate::programs::{self, Program};
use crate::step::Cmd;
use crate::summary::Summary;
use crate::{
    Result, api, crates, docs, fuzz, install, layers, mariadb, modules, node, python, report,
    shuttle, subjects, tidy, toolchain,
};

pub(crate) fn run() -> Result {
    install::c_compiler()?;
    install::rust_components()?;
    let mut summary = Summary::default();
    let fetching = std::thread::spawn(mariadb::fetch);
    summary.step("version of Rust", toolchain::check);
    summary.step("format", || Cmd::new("cargo", "fmt --all --check").run());
    summary.step("layers", || report("layers", layers::check()));
    summary.step("modules", || report("modules", modules::check()));
    summary.step("tidy", || report("tidy", tidy::check()));
    summary.step("crates", || report("crates", crates::check()));
    summary.step("subjects", || report("subjects", subjects::check()));
    summary.step("fuzzers", fuzz::check);
    summary
        .step("lints", || Cmd::new("cargo", "clippy --quiet --all-targets -- -D warnings").run());
    summary.step("documentation", docs::check);
    summary.step("public interface", api::check);
    summary.step("tools for Python", python::tools);
    summary.step("node", node::tools);
    let (mut jobs, mut built) = (Vec::new(), Vec::new());
    summary.step("build", || {
        (jobs, built) = tests()?;
        Ok(())
    });
    summary.step("build for shuttle", || {
        jobs.extend(shuttle::jobs()?);
        Ok(())
    });
    summary.step("build of the plugin", || {
        // The build fetches what is still missing, and reports why it cannot.
        let _ = fetching.join();
        jobs.extend(mariadb::test_jobs(&built)?);
        Ok(())
    });
    pool::run(&mut summary, jobs);
    summary.finish()
}

/// Builds all tests. Returns a job for each program, and the programs.
fn tests() -> Result<(Vec<Job>, Vec<Program>)> {
    let built =
        programs::build("all", Cmd::new("cargo", "test --quiet --lib --bins --tests --examples"))?;
    let tests = built.iter().map(|it| Job::tests("tests", &it.source, 0, it.command("--quiet")));
    let mut jobs: Vec<Job> = tests.collect();
    let name = "documentation tests";
    let command = Cmd::new("cargo", "test --quiet --no-fail-fast --doc");
    jobs.push(Job::tests(name, name, 0, command).taking(20.0));
    Ok((jobs, built))
}
