//! `make sanitize`: runs the tests of the crates that contain `unsafe` under the address sanitizer
//! (nightly) or, without a nightly toolchain, under valgrind. The C programs of crates/capi also
//! run under valgrind, which finds errors in code that was compiled without the sanitizer.
//!
//! The command finds these crates by searching the source for `unsafe`, so it needs no list.

use crate::step::Cmd;
use crate::tidy::code_of_line;
use crate::workspace::{SourceFile, members};
use crate::{Result, install};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the tests of all crates with `unsafe`.
pub(crate) fn run() -> Result {
    let packages = packages_with_unsafe()?;
    if packages.is_empty() {
        eprintln!("no crate contains unsafe code");
        return Ok(());
    }
    eprintln!("crates with unsafe code: {}", packages.join(", "));
    let selected: Vec<String> = packages.iter().map(|package| format!("-p {package}")).collect();
    let selected = selected.join(" ");
    let (tool, result) = match install::nightly() {
        Ok(()) => ("address sanitizer", address_sanitizer(&selected)),
        Err(reason) => {
            eprintln!("{reason}\nfalling back to valgrind");
            ("valgrind", valgrind(&selected))
        }
    };
    result?;
    c_programs()?;
    eprintln!("{tool} found nothing in the tests of {}", packages.join(", "));
    Ok(())
}

/// Flags for the C code of dependencies, which is compiled with the sanitizer too. First flag: GCC
/// makes a constant array of a function (`getAllMatchesFns` of zstd) a global, but poisons it at
/// the end of its scope, so the next call would report stack-use-after-scope. Second flag: zstd
/// leaves memory poisoned that it returns to an allocator other than malloc.
pub(crate) const C_FLAGS: &str =
    "-fno-sanitize-address-use-after-scope -DZSTD_ASAN_DONT_POISON_WORKSPACE=1";

/// Runs the tests under the address sanitizer. `--target` keeps the sanitizer out of build scripts
/// and procedural macros. Leaks are errors: a part that is dropped frees all its memory.
fn address_sanitizer(packages: &str) -> Result {
    let args = format!("+nightly test --no-fail-fast --lib --tests --target {TARGET} {packages}");
    Cmd::new("cargo", &args)
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CFLAGS", C_FLAGS)
        // C programs that use a library built with the sanitizer must link the sanitizer's runtime.
        .env("FRONDB_C_FLAGS", "-fsanitize=address")
        .target_folder("sanitize")
        .run()
}

/// Runs the C programs under valgrind, which checks accesses, frees and leaks. The check for
/// undefined values is off: LLVM may evaluate both sides of an `&&` of safe code, and valgrind
/// would report the side whose value is not needed. Handles are in tables of the library, so
/// valgrind does not report a leaked handle; the programs count the handles themselves.
fn c_programs() -> Result {
    install::apt("valgrind", "valgrind", || install::on_path("valgrind"))?;
    let runner = "valgrind --quiet --error-exitcode=99 --leak-check=full --undef-value-errors=no \
                  --errors-for-leak-kinds=definite --fair-sched=yes";
    Cmd::new("cargo", "test --package frondb-capi --test c_programs")
        .env("FRONDB_C_RUNNER", runner)
        .run()
}

/// Runs the tests under valgrind. Leaks are not errors here: a test process may end without freeing
/// its caches.
fn valgrind(packages: &str) -> Result {
    install::apt("valgrind", "valgrind", || install::on_path("valgrind"))?;
    let runner = "valgrind --quiet --error-exitcode=99 --leak-check=no --fair-sched=yes";
    Cmd::new("cargo", &format!("test --no-fail-fast --lib --tests --target {TARGET} {packages}"))
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner)
        .target_folder("sanitize")
        .run()
}

fn packages_with_unsafe() -> Result<Vec<String>> {
    let mut packages = Vec::new();
    for member in members()? {
        let outer = ["bench-peers", "xtask"].contains(&member.folder.as_str());
        if !outer && member.rust_files()?.iter().any(has_unsafe) {
            packages.push(member.package);
        }
    }
    Ok(packages)
}

fn has_unsafe(file: &SourceFile) -> bool {
    let is_unsafe = |word: &str| word == "unsafe";
    file.text.lines().any(|line| {
        code_of_line(line).split(|c: char| !c.is_alphanumeric() && c != '_').any(is_unsafe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_is_found_in_code_and_not_in_comments_or_lint_names() {
        let file = |text: &str| SourceFile { path: String::new(), text: text.to_owned() };
        assert!(has_unsafe(&file("let x = unsafe { *p };")));
        assert!(!has_unsafe(&file("// unsafe is not used\n#![deny(unsafe_code)]")));
    }
}
