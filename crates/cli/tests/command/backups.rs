//! Backups by command: whole, incremental, damaged, restored.

use frondb_testkit::TempDir;

use crate::program::frondb;

#[test]
fn a_database_is_backed_up_and_restored() {
    let temp = TempDir::new("cli-backup");
    let at = |name: &str| temp.path().join(name);
    let path = |name: &str| at(name).to_str().unwrap().to_owned();
    let db = at("db");
    frondb("create", &db, &["t"]).ok();
    frondb("put", &db, &["t", "a", "1"]).ok();
    let made = frondb("backup", &db, &[&path("full"), "--json"]).ok().json();
    assert_eq!(made[0]["incremental"], false);
    assert!(made[0]["bytes"].as_u64() > Some(0));
    frondb("put", &db, &["t", "b", "2"]).ok();
    let limits = ["--bytes-per-second", "1GiB"];
    let args = [&path("inc"), "--since", &path("full"), limits[0], limits[1]];
    frondb("backup", &db, &args.map(|arg| arg as &str)).ok();
    frondb("backup", &db, &[&path("inc")]).fails(3, "not empty");
    frondb("backup", &db, &[&path("db/inside")]).fails(2, "overlap");
    frondb("backup", &db, &[&path("more"), "--since", &path("none")]).fails(1, "no directory");
    frondb("put", &db, &["t", "c", "3"]).ok();

    let found = frondb("verify-backup", &at("inc"), &["--json"]).ok().json();
    assert_eq!(found[0]["incremental"], true);
    assert_eq!(found[0]["faults"].as_array().map(Vec::len), Some(0));
    frondb("restore", &at("inc"), &[&path("copy")]).fails(2, "incremental");
    let restored = frondb("restore", &at("full"), &[&path("inc"), &path("copy")]).ok();
    assert!(restored.text().contains("bytes restored"), "{}", restored.text());
    assert_eq!(frondb("scan", &at("copy"), &["t"]).ok().text(), "a\t1\nb\t2\n");

    let manifest = std::fs::read(at("full/manifest")).unwrap();
    let flipped: Vec<u8> = manifest.iter().map(|byte| byte ^ 1).collect();
    std::fs::write(at("inc/manifest"), flipped).unwrap();
    frondb("verify-backup", &at("inc"), &[]).fails(6, "make a new backup");
    frondb("restore", &at("full"), &[&path("inc"), &path("again")]).fails(6, "make a new backup");
    assert!(!at("again").exists());
    std::fs::remove_file(at("inc/BACKUP")).unwrap();
    frondb("verify-backup", &at("inc"), &[]).fails(1, "no backup");
}
