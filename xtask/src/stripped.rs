//! Writes libraries for installation: without debug symbols, which are nine tenths of the files
//! that cargo builds.
//!
//! ```text
//!   FOLDER/libfrondb.so.0.2.0                 code, and the names of exported functions
//!   FOLDER/.debug/libfrondb.so.0.2.0.debug    functions and lines, compressed
//! ```
//! gdb, perf and the backtrace of a panic find the second file through the section `.gnu_debuglink`
//! of the first file, which has the second file's name and checksum. Distributions may put the
//! second file into a separate package. The files in target/ keep their symbols.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::install::{apt, on_path};
use crate::step::Cmd;

/// The folder of the debug symbols, below the library's folder.
pub(crate) const DEBUG: &str = ".debug";

/// Sections of a Rust object that only a linker with Rust's link-time optimization reads.
const BITCODE: [&str; 2] = [".llvmbc", ".llvmcmd"];

/// Writes a shared library without its debug symbols to `to`, and the symbols into the folder
/// [`DEBUG`] beside `to`. A running program keeps the file that it has loaded.
pub(crate) fn shared(from: &Path, to: &Path) -> Result {
    let (folder, name) = match (to.parent(), to.file_name()) {
        (Some(folder), Some(name)) => (folder.join(DEBUG), name.to_string_lossy()),
        _ => return Err(format!("{} names no file", to.display())),
    };
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let debug = folder.join(format!("{name}.debug"));
    objcopy(&["--only-keep-debug", "--compress-debug-sections"], from, &debug)?;
    objcopy(&["--strip-all", &format!("--add-gnu-debuglink={}", debug.display())], from, to)
}

/// Writes a static library without debug symbols. Backtraces of a program that is linked with it
/// have no source lines of the library.
pub(crate) fn archive(from: &Path, to: &Path) -> Result {
    let bitcode = BITCODE.map(|section| format!("--remove-section={section}"));
    objcopy(&["--strip-debug", &bitcode[0], &bitcode[1]], from, to)
}

/// Replaces `to` by the output of objcopy. A process that has `to` open keeps the old file.
fn objcopy(options: &[&str], from: &Path, to: &Path) -> Result {
    apt("objcopy", "binutils", || on_path("objcopy"))?;
    let _ = fs::remove_file(to);
    let command =
        options.iter().fold(Cmd::new("objcopy", ""), |command, option| command.arg(option));
    command.arg(&from.display().to_string()).arg(&to.display().to_string()).run()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds a small library of C with debug symbols, shared and static: `NAME.so` and `NAME.a`.
    pub(crate) fn build(folder: &Path, name: &str) {
        fs::create_dir_all(folder).unwrap();
        let at = |end: &str| folder.join(format!("{name}{end}")).display().to_string();
        fs::write(at(".c"), "int frondb_test(int a) { return a + 1; }\n").unwrap();
        Cmd::new("cc", "-g -fPIC -c -o").arg(&at(".o")).arg(&at(".c")).run().unwrap();
        Cmd::new("cc", "-g -shared -o").arg(&at(".so")).arg(&at(".o")).run().unwrap();
        let _ = fs::remove_file(at(".a"));
        Cmd::new("ar", "rcs").arg(&at(".a")).arg(&at(".o")).run().unwrap();
    }

    pub(crate) fn has_section(file: &Path, name: &str) -> bool {
        let bytes = fs::read(file).unwrap();
        let name = [b"\0", name.as_bytes(), b"\0"].concat();
        bytes.windows(name.len()).any(|window| window == name)
    }

    #[test]
    fn debug_symbols_lie_apart_and_are_found() {
        let folder = crate::workspace::target_folder().join("stripped-test");
        let _ = fs::remove_dir_all(&folder);
        build(&folder, "built");
        let (to, static_to) = (folder.join("to.so"), folder.join("to.a"));
        shared(&folder.join("built.so"), &to).unwrap();
        archive(&folder.join("built.a"), &static_to).unwrap();
        let debug = folder.join(DEBUG).join("to.so.debug");
        assert!(has_section(&folder.join("built.so"), ".debug_info"));
        assert!(!has_section(&to, ".debug_info") && has_section(&to, ".gnu_debuglink"));
        assert!(has_section(&debug, ".debug_info") && !has_section(&static_to, ".debug_info"));
        let found = Cmd::new("nm", "--dynamic").arg(&to.display().to_string()).output().unwrap();
        assert!(found.contains("frondb_test"), "{found}");
        let found = Cmd::new("nm", "").arg(&static_to.display().to_string()).output().unwrap();
        assert!(found.contains("frondb_test"), "{found}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
