//! Text scripts: what the planner decides from numbers (`testdata/plan`), and what changes do to a
//! trunk (`testdata/install`). `REWRITE=1` rewrites the expected outputs.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use datadriven::walk;

#[test]
fn plans() {
    walk("tests/testdata/plan", |file| {
        let mut script = support::plan_script::PlanScript::default();
        file.run(|case| script.run(&case.directive, &case.args, &case.input));
    });
}

#[test]
fn installs() {
    walk("tests/testdata/install", |file| {
        let mut script = support::install_script::InstallScript::default();
        file.run(|case| script.run(&case.directive, &case.args, &case.input));
    });
}
