//! Tests that change the server's headers as earlier releases did. The checks must report each
//! change by name.
//!
//! The tests need the server's packages and the built plugin: `make test-mariadb` runs them.

use std::os::unix::fs::symlink;

use super::*;

/// A header, a text in it, and the text that replaces it.
const CHANGES: [(&str, &str, &str); 4] = [
    ("sql_class.h", "  query_id_t query_id;", "  ulonglong inserted; query_id_t query_id;"),
    (
        "handler.h",
        "  virtual int close(void)=0;",
        "  virtual int inserted() { return 0; }\n  virtual int close(void)=0;",
    ),
    ("handler.h", "enum enum_alter_inplace_result {", "enum enum_alter_inplace_result { INSERTED,"),
    ("handler.h", "  KEY  *key_info_buffer;", "  void *inserted; KEY  *key_info_buffer;"),
];

/// Sentences that the comparison of debug information must report.
const FOUND: [&str; 5] = [
    "THD::query_id is at byte",
    "handler::close is virtual function",
    "HA_ALTER_INPLACE_NOT_SUPPORTED is",
    "Alter_inplace_info::unsupported_reason is at byte",
    "Alter_inplace_info::key_count is at byte",
];

/// Makes a folder of the server's headers, some of them changed. The unchanged headers are links in
/// the same folder, because an include searches the folder of the including header first.
fn changed_headers(place: &Path) -> PathBuf {
    let sql = source::get().unwrap().join("sql");
    let changed = place.join("changed");
    let _ = fs::remove_dir_all(&changed);
    fs::create_dir_all(&changed).unwrap();
    for entry in fs::read_dir(sql).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let to = changed.join(&name);
        if CHANGES.iter().all(|(file, ..)| *file != name) {
            symlink(&path, &to).unwrap();
            continue;
        }
        let mut text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for (_, old, new) in CHANGES.iter().filter(|(file, ..)| *file == name) {
            assert!(text.contains(old), "{name} does not have {old:?}");
            text = text.replacen(old, new, 1);
        }
        fs::write(&to, text).unwrap();
    }
    changed
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn changed_headers_are_found_by_name() {
    let place = folder().join("layout");
    fs::create_dir_all(&place).unwrap();
    let sql = source::get().unwrap().join("sql");
    let changed = changed_headers(&place);
    let right = debug_info::read(&compile(&place, "right", &sql).unwrap()).unwrap();
    let wrong = debug_info::read(&compile(&place, "wrong", &changed).unwrap()).unwrap();
    let plugin = folder().join("build/ha_frondb.so");
    let used = used::find(&plugin, &root().join("mariadb/src"), &source::get().unwrap()).unwrap();
    let (_, drifts) = compare::compare(&wrong, &right);
    let found: Vec<_> =
        drifts.iter().filter(|d| used.concerns(d)).map(|d| d.sentence.as_str()).collect();
    for sentence in FOUND {
        assert!(found.iter().any(|f| f.contains(sentence)), "{sentence} is missing: {found:#?}");
    }
    assert_eq!(compare::compare(&right, &right).1, []);
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn calls_of_the_server_show_changed_headers() {
    let place = folder().join("layout");
    let sql = source::get().unwrap().join("sql");
    let said = |name: &str, sql: &Path| {
        let to = place.join(name);
        let source = root().join("mariadb");
        let mut command = with_headers("-O1 -rdynamic", sql).unwrap();
        command = command.arg("-I").arg(&source.join("src").display().to_string());
        for file in ["tests/abi.cc", "src/plugin/abi.cc", "src/foreign/server_lists.cc"] {
            command = command.arg(&source.join(file).display().to_string());
        }
        let command = command.arg("-lmariadbd").arg("-ldl").arg("-o");
        command.arg(&to.display().to_string()).run().unwrap();
        Cmd::new(&to.display().to_string(), "").output().unwrap()
    };
    assert_eq!(said("abi-right", &sql).trim(), "");
    let found = said("abi-wrong", &changed_headers(&place));
    for sentence in [
        "of the class `handler` is handler::",
        "the class THD has other places in the server for",
        "query_id",
    ] {
        assert!(found.contains(sentence), "{sentence} is missing: {found}");
    }
}
