//! `include/frondb.h` is what cbindgen writes from the source: `cargo xtask header` writes it anew
//! (this test with REWRITE=1), and a committed header that differs fails.

#![allow(clippy::expect_used, reason = "a test")]

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};

/// The order of the header. Files that declare nothing for C are not in it.
const SOURCES: [&str; 26] = [
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
    "snapshot",
    "transaction",
    "entries",
    "two_phase",
    "locks",
    "deadlock",
    "transactions",
    "files",
    "figures",
    "list",
    "verify",
    "salvage",
    "bulk",
    "log",
];
const LAST: [&str; 2] = ["tuple", "handle"];

const HEAD: &str = "\
/*
 * FronDB for C and C++. Written from crates/capi/src by `cargo xtask header`: do not edit it.
 * docs/operating/c-api.md tells how to build with it and shows a program.
 *
 * Errors. A function that can fail returns an error, or NULL if it succeeded. The error belongs to
 * the caller, who frees it with frondb_error_free(). Results are then not written, but that a place
 * for a handle is NULL and a flag is false.
 *
 * Handles. A pointer to one of the opaque types is a handle: a number that is looked up and never
 * followed. It belongs to the caller, who frees it once with the function of its type. One that is
 * NULL, was freed or is of another type makes an error of the kind FRONDB_INVALID and does no harm.
 * Nothing has to be freed in an order; frondb_db_close() ends them all.
 *
 * Threads. Every function says which threads may call it. Where that is \"one at a time\" for an
 * object and a second thread calls, that thread gets an error of the kind FRONDB_BUSY.
 *
 * Memory. Slices and strings that are given to a function must stay as they are until it returns.
 * What a function gives to look at belongs to its object and is good as long as its comment says.
 * No function throws, and none may be called from a signal handler or in a forked child.
 */";

const TAIL: &str = "\
/* The bytes at an address. */
static inline frondb_slice frondb_bytes(const void *data, size_t len) {
  frondb_slice slice;
  slice.data = (const uint8_t *)data;
  slice.len = len;
  return slice;
}

/* The characters of a string, without the zero byte behind them. */
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
    // What wraps the caller's memory in the source is a plain pointer in C.
    for (wrapper, pointer) in [
        ("Text", "const char *"),
        ("TreeHandles", "frondb_tree *const *"),
        ("Slices", "const frondb_slice *"),
        ("Writes", "const frondb_write *"),
        ("OutSlices", "frondb_slice *"),
        ("OutBytes", "void *"),
    ] {
        config.export.exclude.push(wrapper.to_owned());
        config.export.rename.insert(wrapper.to_owned(), pointer.to_owned());
    }
    // Only a wrapper names it.
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
    // A renamed type keeps the blank that a name would have behind it.
    let text = ["const char *", "frondb_slice *", "frondb_write *", "void *", "*const *"]
        .iter()
        .fold(text, |text, pointer| text.replace(&format!("{pointer} "), pointer));
    // Inside the part that C++ reads as C.
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

/// Every function of the source is in the header: a file that is missing above would show here.
#[test]
fn every_function_is_declared_with_its_threads() {
    let header = generated();
    let mut functions = 0;
    for entry in std::fs::read_dir(root().join("src")).expect("there is a source") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a text");
        for (before, name) in text.match_indices("pub extern \"C\" fn ").map(|(at, start)| {
            let name = &text[at + start.len()..];
            (&text[..at], name.split('(').next().unwrap_or_default())
        }) {
            functions += 1;
            assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
            let (_, comment) = before.rsplit_once("\n}\n").unwrap_or(("", before));
            assert!(comment.contains("/// Threads: "), "{name} does not say its threads");
        }
    }
    assert!(functions > 100, "{functions}");
}
