//! Compiles the C programs in `tests/c` and the example of docs/operating/c-api.md with the
//! committed header. Runs each with the shared library, and with the static library under the C
//! compiler's address sanitizer, which also finds leaks.
//!
//! `make sanitize` also runs the programs with Rust code under the address sanitizer
//! (FRONDB_C_FLAGS has the flags for the C compiler) and under FRONDB_C_RUNNER, a command such as
//! valgrind.

#![allow(clippy::expect_used, reason = "a test")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use frondb_testkit::TempDir;

const FLAGS: &[&str] = &["-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-O1", "-pthread"];
/// The system libraries that the static library needs (`--print native-static-libs`).
const SYSTEM: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

fn crate_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Returns the path of a library that cargo has built into the directory of this test program.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let path = test.parent().expect("a folder").join(name);
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

/// Runs a command and panics if it fails.
fn run(command: &mut Command) {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    assert!(
        output.status.success(),
        "{shown}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn cc(source: &Path, program: &Path, flags: &[&str]) -> Command {
    let mut cc = Command::new("cc");
    let given = std::env::var("FRONDB_C_FLAGS").unwrap_or_default();
    cc.args(["-std=gnu99", "-D_GNU_SOURCE"]).args(FLAGS).args(flags).args(given.split_whitespace());
    cc.arg("-I").arg(crate_dir().join("include")).arg("-I").arg(crate_dir().join("tests/c"));
    cc.arg(source).arg("-o").arg(program);
    cc
}

/// Runs a program, under FRONDB_C_RUNNER if that is set. The argument of the program is the path of
/// a database that does not exist yet. The loader searches `libraries`.
fn execute(program: &Path, dir: &TempDir, libraries: &Path) {
    run_in(program, dir, Some(libraries));
}

fn run_in(program: &Path, dir: &TempDir, libraries: Option<&Path>) {
    let runner = std::env::var("FRONDB_C_RUNNER").unwrap_or_default();
    let words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let words: Vec<&OsStr> = words.collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(dir.path().join("db")).env_remove("LD_LIBRARY_PATH");
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    run(&mut command);
}

/// Runs a program with the shared library, which the loader finds by its soname like an installed
/// one.
fn with_shared(source: &Path) {
    let dir = TempDir::new("c-shared");
    let shared = library("libfrondb_capi.so");
    let soname = format!(
        "libfrondb.so.{}.{}",
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR")
    );
    std::os::unix::fs::symlink(&shared, dir.path().join(&soname)).expect("a link");
    let program = dir.path().join("program");
    run(cc(source, &program, &[]).arg(dir.path().join(&soname)));
    execute(&program, &dir, dir.path());
}

/// Runs a program with the static library, under the address sanitizer if the C compiler has one.
fn with_static(source: &Path) {
    let dir = TempDir::new("c-static");
    let program = dir.path().join("program");
    // The sanitizer cannot run together with another tool such as valgrind.
    let has_runner = std::env::var_os("FRONDB_C_RUNNER").is_some();
    let flags: &[&str] = if has_runner || !has_sanitizer() { &[] } else { &["-fsanitize=address"] };
    run(cc(source, &program, flags).arg(library("libfrondb_capi.a")).args(SYSTEM));
    execute(&program, &dir, dir.path());
}

fn has_sanitizer() -> bool {
    let dir = TempDir::new("c-sanitizer");
    let source = dir.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source");
    let program = dir.path().join("empty");
    let built = cc(&source, &program, &["-fsanitize=address"]).output();
    built.is_ok_and(|output| output.status.success())
        && Command::new(program).output().is_ok_and(|output| output.status.success())
}

macro_rules! programs {
    ($($name:ident),*) => {
        /// Checks that each program in the folder is in the list.
        #[test]
        fn every_program_is_run() {
            let known = [$(concat!(stringify!($name), ".c")),*];
            for entry in std::fs::read_dir(crate_dir().join("tests/c")).expect("the folder") {
                let name = entry.expect("an entry").file_name();
                let name = name.to_string_lossy();
                assert!(name == "check.h" || known.contains(&name.as_ref()), "{name} is not run");
            }
        }

        $(mod $name {
            fn source() -> std::path::PathBuf {
                super::crate_dir().join(concat!("tests/c/", stringify!($name), ".c"))
            }

            #[test]
            fn runs_with_the_shared_library() {
                super::with_shared(&source());
            }

            #[test]
            fn runs_with_the_static_library() {
                super::with_static(&source());
            }
        })*
    };
}

programs!(
    backups,
    bad_calls,
    basics,
    bulk,
    cursors,
    damage,
    entries,
    operating,
    threads,
    transactions,
    updates,
    waits
);

#[test]
fn the_example_runs() {
    let source = crate_dir().join("examples/counters.c");
    with_shared(&source);
    with_static(&source);
}

/// A program can be built with the flags that pkg-config prints for an installed library. If
/// pkg-config is not installed, the test reads the .pc file itself.
#[test]
fn an_installed_library_is_found() {
    let dir = TempDir::new("c-install");
    let prefix = dir.path().join("prefix");
    let libraries = library("libfrondb_capi.so");
    let mut install = Command::new(env!("CARGO"));
    install.args(["run", "--quiet", "--package", "xtask", "--", "install-c"]);
    install.arg(format!("PREFIX={}", prefix.display()));
    install.arg(format!("FROM={}", libraries.parent().expect("a folder").display()));
    // xtask itself does not run under the sanitizer.
    run(install.env_remove("RUSTFLAGS").current_dir(crate_dir()));

    // The installed library has no debug symbols; they are in a file beside it.
    let installed = prefix.join("lib/libfrondb.so");
    let file = std::fs::canonicalize(&installed).expect("a library");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let symbols = prefix.join("lib/.debug").join(format!("{name}.debug"));
    assert!(has_symbols(&libraries) && !has_symbols(&file) && has_symbols(&symbols));
    assert!(!has_symbols(&prefix.join("lib/libfrondb.a")));
    let bytes = |path: &Path| std::fs::metadata(path).expect("a file").len();
    let (built, kept) = (bytes(&libraries), bytes(&file));
    // With the sanitizer, its code is a larger part of the library, so symbols are a smaller part.
    let part = if std::env::var_os("FRONDB_C_FLAGS").is_some() { 2 } else { 3 };
    assert!(kept < built / part, "{kept} of {built} bytes are installed");
    if !cfg!(debug_assertions) {
        assert!(kept < 8 << 20, "the library has {kept} bytes");
    }

    let pc = prefix.join("lib/pkgconfig/frondb.pc");
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "frondb"]);
    let answer = ask.env("PKG_CONFIG_PATH", pc.parent().expect("a folder")).output();
    let flags = match answer {
        Ok(answer) => {
            assert!(answer.status.success(), "{answer:?}");
            String::from_utf8_lossy(&answer.stdout).into_owned()
        }
        Err(_) => flags_of(&std::fs::read_to_string(&pc).expect("the file is there")),
    };
    let program = dir.path().join("program");
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let mut command = Command::new("cc");
    command.arg(crate_dir().join("examples/counters.c")).args(&flags).arg("-o").arg(&program);
    let given = std::env::var("FRONDB_C_FLAGS").unwrap_or_default();
    run(command.args(given.split_whitespace()));
    // Only the program's own search path tells the loader where the library is.
    run_in(&program, &dir, None);
}

/// Returns whether a file names a section with debug symbols.
fn has_symbols(file: &Path) -> bool {
    let name = b"\0.debug_line\0";
    let bytes = std::fs::read(file).expect("a file");
    bytes.windows(name.len()).any(|window| window == name)
}

/// Returns what `pkg-config --cflags --libs` prints for the simple .pc file of FronDB.
fn flags_of(pc: &str) -> String {
    let field = |name: &str| pc.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
    let flags = format!("{} {}", field("Cflags:"), field("Libs:"));
    let folders = flags.replace("${includedir}", field("includedir="));
    let folders = folders.replace("${libdir}", field("libdir="));
    folders.replace("${prefix}", field("prefix="))
}

/// The header compiles on its own as strict C99 and C++11.
#[test]
fn the_header_is_clean_c_and_cpp() {
    let dir = TempDir::new("c-header");
    let text = "#include <frondb.h>\nint main(void) { return frondb_version()[0] == 0; }\n";
    for (compiler, standard, name) in
        [("cc", "-std=c99", "a.c"), ("c++", "-std=c++11", "a.cc"), ("c++", "-std=c++20", "b.cc")]
    {
        let source = dir.path().join(name);
        std::fs::write(&source, text).expect("a source");
        if compiler == "c++" && Command::new(compiler).arg("--version").output().is_err() {
            // The project requires only a C compiler.
            eprintln!("there is no C++ compiler: the header is not compiled as C++");
            continue;
        }
        let mut command = Command::new(compiler);
        command.arg(standard).args(FLAGS).arg("-fsyntax-only").arg("-Wconversion");
        run(command.arg("-I").arg(crate_dir().join("include")).arg(source));
    }
}
