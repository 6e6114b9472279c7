//! The committed `include/frondb.h` must equal what cbindgen generates from the source.
//! `cargo xtask header` runs this test with REWRITE=1, which writes the header.

#![allow(clippy::expect_used, reason = "a test")]

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};

/// The source files, in the order in which the header lists their declarations. Files without
/// declarations for C are left out. For `mod name;` in any file, cbindgen reads `src/name.rs`, so a
/// file in a folder must not have the name of a file in `src`.
const SOURCES: [&str; 41] = [
    "version",
    "error",
    "error_fields",
    "slice",
    "options",
    "update",
    "tree_options",
    "db",
    "tree",
    "batch",
    "buffer",
    "cursor",
    "cursor/rows",
    "cursor/moves",
    "cursor/reads",
    "snapshot",
    "transaction/begin_options",
    "transaction",
    "transaction/reads",
    "transaction/locking",
    "transaction/overlay",
    "transaction/writes",
    "transaction/savepoints",
    "transaction/end",
    "entries",
    "transaction/bulk_statement",
    "two_phase",
    "locks",
    "deadlock",
    "transactions",
    "files",
    "stats",
    "list",
    "verify",
    "optimize",
    "device",
    "backup",
    "salvage",
    "bulk",
    "log",
    "events",
];
const LAST: [&str; 2] = ["tuple", "handle"];

const HEAD: &str = "\
/*
 * FronDB for C and C++. Generated from crates/capi/src by `cargo xtask header`: do not edit.
 * docs/operating/c-api.md explains how to build with it and has an example.
 *
 * Errors. A function that can fail returns an error, or NULL on success. The caller owns the error
 * and frees it with frondb_error_free(). After an error no result is written, except that handles
 * are set to NULL and flags to false.
 *
 * Handles. A pointer to an opaque type is a handle: a number that is looked up and never
 * dereferenced. The caller owns it and frees it once with the function of its type. A pointer that is
 * NULL, was freed or is of another type causes an error of the kind FRONDB_INVALID and no harm.
 * Handles may be freed in any order. After frondb_db_close(), calls with the handles of the database
 * that read or write data fail with FRONDB_CLOSED; calls that only report still work.
 *
 * Threads. Every function says which threads may call it. If that is \"one at a time\" for an object,
 * a second thread that calls at the same time gets an error of the kind FRONDB_BUSY.
 *
 * Memory. Slices and strings that are passed to a function must stay unchanged until it returns.
 * Memory that a function returns belongs to its object and is valid as long as the comment says. No
 * function throws. None may be called from a signal handler or in a forked child.
 */";

const TAIL: &str = "\
/* The bytes at an address. */
static inline frondb_slice frondb_bytes(const void *data, size_t len) {
  frondb_slice slice;
  slice.data = (const uint8_t *)data;
  slice.len = len;
  return slice;
}

/* The characters of a string, without its final zero byte. */
static inline frondb_slice frondb_text(const char *text) {
  return frondb_bytes(text, strlen(text));
}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn config() -> Config {
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        header: Some(HEAD.to_owned()),
        include_guard: Some("FRONDB_H".to_owned()),
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h", "string.h"].map(str::to_owned).into(),
        no_includes: true,
        after_includes: Some(versions()),
        documentation_style: DocumentationStyle::Doxy,
        usize_is_size_t: true,
        style: Style::Type,
        line_length: 100,
        tab_width: 2,
        ..Config::default()
    };
    // The source has wrapper types for the caller's memory, which are plain pointers in C.
    for (wrapper, pointer) in [
        ("Text", "const char *"),
        ("OptionalText", "const char *"),
        ("Texts", "const char *const *"),
        ("TreeHandles", "frondb_tree *const *"),
        ("Slices", "const frondb_slice *"),
        ("Writes", "const frondb_write *"),
        ("OutSlices", "frondb_slice *"),
        ("OutBytes", "void *"),
    ] {
        config.export.exclude.push(wrapper.to_owned());
        config.export.rename.insert(wrapper.to_owned(), pointer.to_owned());
    }
    // Include this type by name: only a wrapper refers to it, so cbindgen would leave it out.
    config.export.include.push("frondb_write".to_owned());
    config.function.sort_by = Some(cbindgen::SortKey::None);
    config
}

fn versions() -> String {
    let [major, minor, patch] = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    ];
    format!(
        "\n/* The version of this header; frondb_version() is that of the library. */\n\
         #define FRONDB_VERSION \"{}\"\n#define FRONDB_VERSION_MAJOR {major}\n\
         #define FRONDB_VERSION_MINOR {minor}\n#define FRONDB_VERSION_PATCH {patch}\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn generated() -> String {
    let mut builder = Builder::new().with_config(config());
    for name in SOURCES.iter().chain(&LAST) {
        builder = builder.with_src(root().join(format!("src/{name}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().expect("the source can be read").write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    // After each of these pointers, cbindgen leaves the blank that followed the type's name.
    let text = ["const char *", "frondb_slice *", "frondb_write *", "void *", "*const *"]
        .iter()
        .fold(text, |text, pointer| text.replace(&format!("{pointer} "), pointer));
    // Insert the tail inside the part that C++ reads as C.
    let (before, after) = text.rsplit_once("#ifdef __cplusplus\n}").expect("the end of it");
    format!("{before}{TAIL}\n#ifdef __cplusplus\n}}{after}")
}

#[test]
fn the_header_is_what_the_source_says() {
    let path = root().join("include/frondb.h");
    let wanted = generated();
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &wanted).expect("the header can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{} differs: run `cargo xtask header`", path.display());
}

/// Returns the files of a folder and of all folders below it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("there is a source");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Every name in a comment is declared in the header, so that a reader who searches for the name
/// finds it.
#[test]
fn every_name_of_a_comment_is_declared() {
    let header = generated();
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let ours =
            words.filter(|word| word.len() > 7 && word.to_lowercase().starts_with("frondb_"));
        ours.filter(|word| !word.ends_with('_')).map(str::to_owned).collect()
    };
    let is_comment = |line: &&str| line.trim_start().starts_with(['*', '/']);
    let declared: Vec<String> =
        header.lines().filter(|line| !is_comment(line)).flat_map(words).collect();
    let named: Vec<String> = header.lines().filter(is_comment).flat_map(words).collect();
    assert!(named.len() > 300, "{}", named.len());
    // The name of a metric, which is not declared.
    let missing = named.iter().filter(|name| *name != "frondb_latency_seconds");
    let missing: Vec<_> = missing.filter(|name| !declared.contains(name)).collect();
    assert!(missing.is_empty(), "comments name what does not exist: {missing:?}");
}

/// Every function of the source is in the header, and its comment says which threads may call it.
/// If a function is missing there, its file is missing in [`SOURCES`].
#[test]
fn every_function_is_declared_with_its_threads() {
    let header = generated();
    let mut functions = 0;
    for path in sources(&root().join("src")) {
        let text = std::fs::read_to_string(path).expect("a text");
        for (before, name) in text.match_indices("pub extern \"C\" fn ").map(|(at, start)| {
            let name = &text[at + start.len()..];
            (&text[..at], name.split('(').next().unwrap_or_default())
        }) {
            functions += 1;
            let lines = header.lines().map(str::trim_start);
            let code = lines.filter(|line| !line.starts_with("* ") && !line.starts_with("/*"));
            let declared = code.filter(|line| line.contains(&format!("{name}("))).count();
            assert_eq!(declared, 1, "{name} is not in the header, or more than once");
            let (_, comment) = before.rsplit_once("\n}\n").unwrap_or(("", before));
            assert!(comment.contains("/// Threads: "), "{name} does not say its threads");
        }
    }
    assert!(functions > 100, "{functions}");
}
