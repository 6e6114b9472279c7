//! Text scripts: what the planner decides from numbers (`testdata/plan`), and what changes do to a
//! trunk (`testdata/install`). `REWRITE=1` rewrites the expected outputs.

use datadriven::walk;

#[test]
fn plans_are_those_of_the_scripts() {
    walk("tests/testdata/plan", |file| {
        let mut script = crate::support::plan_script::PlanScript::default();
        file.run(|case| script.run(&case.directive, &case.args, &case.input));
    });
}

#[test]
fn trunks_change_as_the_scripts_say() {
    walk("tests/testdata/install", |file| {
        let mut script = crate::support::install_script::InstallScript::default();
        file.run(|case| script.run(&case.directive, &case.args, &case.input));
    });
}
