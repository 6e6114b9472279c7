//! `cargo xtask package-files TO=..`: puts the files of all packages into a folder, from which
//! debian/*.install takes them. debian/rules calls it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{built, version};
use crate::install_c::{self, Installation};
use crate::workspace::root;
use crate::{Result, mariadb, variables};

/// Each program, the folder of its completions for a shell, and the file that clap writes.
const COMPLETIONS: [(&str, &str, &str); 6] = [
    ("bash-completion/completions", "frondb", "frondb.bash"),
    ("bash-completion/completions", "frondb-convert", "frondb-convert.bash"),
    ("fish/vendor_completions.d", "frondb.fish", "frondb.fish"),
    ("fish/vendor_completions.d", "frondb-convert.fish", "frondb-convert.fish"),
    ("zsh/vendor-completions", "_frondb", "_frondb"),
    ("zsh/vendor-completions", "_frondb-convert", "_frondb-convert"),
];

/// Builds what is not built, and writes all files.
pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["TO"])?;
    let to = variables.last().map(|(_, to)| PathBuf::from(to));
    let to = to.ok_or("package-files needs TO=, a folder")?;
    built::build()?;
    let from = built::folder();
    let version = install_c::version()?;
    Installation {
        from: &from,
        prefix: Path::new("/usr"),
        lib: &format!("lib/{}-linux-gnu", std::env::consts::ARCH),
        dest_dir: &to.display().to_string(),
        keep_symbols: true,
    }
    .install(&version)?;
    let plugin = mariadb::packaged(&from.join("plugin"), &built::paths()?)?;
    copy(&plugin, &to.join("usr/lib/mysql/plugin/ha_frondb.so"))?;
    for program in ["frondb", "frondb-convert"] {
        copy(&from.join(program), &to.join("usr/bin").join(program))?;
    }
    texts(&from, &to)?;
    // The plugin's package depends on these versions.
    write(&to.join("server"), &version::server()?)
}

/// Copies manual pages, completions, the lists of crates and the example.
fn texts(from: &Path, to: &Path) -> Result {
    let share = to.join("usr/share");
    for page in files(&from.join("man"))? {
        let name = page.file_name().unwrap_or_default();
        copy(&page, &share.join("man/man1").join(name))?;
    }
    for (folder, name, file) in COMPLETIONS {
        copy(&from.join("completions").join(file), &share.join(folder).join(name))?;
    }
    for list in files(&from.join("crates"))? {
        let package = list.file_name().unwrap_or_default();
        copy(&list, &share.join("doc").join(package).join("crates"))?;
    }
    let examples = share.join("doc/libfrondb-dev/examples");
    copy(&root().join("crates/capi/examples/counters.c"), &examples.join("counters.c"))
}

/// Returns the files of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn copy(from: &Path, to: &Path) -> Result {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

fn write(to: &Path, text: &str) -> Result {
    fs::write(to, text).map_err(|e| format!("cannot write {}: {e}", to.display()))
}
