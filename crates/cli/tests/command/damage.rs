//! `verify` finds a damaged block and names its file and offset; everything else stays readable.

use std::path::{Path, PathBuf};

use frondb_testkit::TempDir;
use serde_json::Value;

use crate::program::{frondb, frondb_with};

/// Returns bytes that no codec shrinks, so that they are in the file as they are.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    frondb_core::prng::Prng::new(7).fill(&mut bytes);
    bytes
}

/// Returns the files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Copies a closed database. Every open continues the merges and so may move data; a copy that was
/// never opened has the same bytes at the same offsets.
fn copy(from: &Path) -> TempDir {
    let to = TempDir::new("cli-verify-copy");
    for file in files(from) {
        let target = to.path().join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
    to
}

#[test]
fn verify_lists_damaged_blocks_with_their_places() {
    let temp = TempDir::new("cli-verify");
    let dir = temp.path();
    frondb("create", dir, &["large", "small"]).ok();
    frondb("put", dir, &["small", "k", "v"]).ok();
    let mut random = frondb_core::prng::Prng::new(3);
    let mut table = String::from("k,v\n");
    for _ in 0..60_000 {
        let (key, value) = (random.next_u64(), random.next_u64());
        table.push_str(&format!("{key:016x},{value:016x}{key:016x}\n"));
    }
    frondb_with("load", dir, &["large", "-", "--format", "csv"], table.as_bytes()).ok();
    let sound = &frondb("verify", dir, &["--json"]).ok().json()[0];
    assert_eq!(sound["trees"], 2);
    assert!(sound["runs"].as_u64().unwrap() > 0, "something is on disk: {sound}");

    // Flip a bit in every 64 KiB of the data file to find blocks, because part of the file is free
    // space. Then damage one of these blocks alone.
    let everywhere = copy(dir);
    let data = everywhere.path().join("data-0000.fdb");
    let mut broken = std::fs::read(&data).unwrap();
    broken.iter_mut().step_by(64 << 10).for_each(|byte| *byte ^= 0x10);
    std::fs::write(&data, broken).unwrap();
    let verified = frondb("verify", everywhere.path(), &["--json"]).fails(6, " found in");
    let in_large = |fault: &&Value| fault["tree"] == "large" && fault["place"].is_object();
    let faults = verified.json().remove(0)["faults"].take();
    let block = faults.as_array().unwrap().iter().find(in_large).unwrap()["place"].clone();
    assert_eq!(block["file"], "data-0000.fdb");

    let once = copy(dir);
    let dir = once.path();
    let data = dir.join("data-0000.fdb");
    let mut broken = std::fs::read(&data).unwrap();
    broken[block["offset"].as_u64().unwrap() as usize] ^= 0x10;
    std::fs::write(&data, broken).unwrap();
    let verified = frondb("verify", dir, &["--json"]).fails(6, " found in");
    let faults = verified.json().remove(0)["faults"].take();
    for fault in faults.as_array().unwrap() {
        assert_eq!(fault["tree"], "large");
        assert_eq!(fault["kind"], "Corruption");
    }
    assert!(faults.as_array().unwrap().iter().any(|fault| fault["place"] == block), "{faults}");
    let offset = format!("at offset {} of data-0000.fdb", block["offset"]);
    frondb("verify", dir, &["large"]).fails(6, "hint: check the disk");
    frondb("verify", dir, &["small"]).ok();
    let scan = frondb("scan", dir, &["large", "--count"]);
    match block["what"] == "data block" {
        true => drop(scan.fails(6, &offset)),
        // The position of runs varies, so the damaged block may be one that a scan does not read,
        // for example a filter.
        false => assert_eq!(scan.ok().text(), "60000\n"),
    }
    assert_eq!(frondb("get", dir, &["small", "k"]).ok().text(), "v\n");
}

#[test]
fn a_damaged_large_value_is_named_and_the_rest_is_readable() {
    let temp = TempDir::new("cli-damage");
    let dir = temp.path();
    frondb("create", dir, &["large", "small"]).ok();
    frondb("put", dir, &["small", "k", "v"]).ok();
    // A value over 64 KiB has extents of its own in a data file, where the search below finds it.
    let value = noise(300_000);
    frondb_with("put", dir, &["large", "blob", "--file", "-"], &value).ok();
    let sound = &frondb("verify", dir, &["--json"]).ok().json()[0];
    assert_eq!(sound["faults"].as_array().map(Vec::len), Some(0), "{sound}");

    let (file, at) = files(dir)
        .into_iter()
        .find_map(|file| {
            let bytes = std::fs::read(&file).unwrap();
            let part = &value[200_000..200_016];
            bytes.windows(16).position(|window| window == part).map(|at| (file, at))
        })
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&file, bytes).unwrap();

    let name = file.strip_prefix(dir).unwrap().to_str().unwrap();
    let get = frondb("get", dir, &["large", "blob", "--raw", "--json"]);
    assert_eq!(get.code, 2, "--raw and --json exclude each other");
    let damaged = frondb("get", dir, &["large", "blob", "--json"]).fails(6, name).error();
    assert_eq!(damaged["kind"], "Corruption");
    assert_eq!(damaged["place"]["file"], name);
    let offset = damaged["place"]["offset"].as_u64().unwrap() as usize;
    assert!(offset <= at && at - offset < value.len(), "{offset} is near {at}");
    let found = &frondb("verify", dir, &["--json"]).fails(6, "1 fault found in").json()[0];
    assert_eq!(found["values"], 1);
    assert_eq!(found["faults"][0]["place"]["file"], name);
    assert_eq!(frondb("get", dir, &["small", "k"]).ok().text(), "v\n");
}

/// Copies a database and changes bytes of the file `name` from `offset` on. A negative `offset`
/// counts back from the end of the used part.
fn broken(from: &Path, name: &str, offset: i64, with: &[u8]) -> TempDir {
    let to = copy(from);
    let path = to.path().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() as i64 + 1;
    let at = usize::try_from(if offset < 0 { used + offset } else { offset }).unwrap();
    bytes[at..at + with.len()].iter_mut().zip(with).for_each(|(byte, with)| *byte ^= with);
    std::fs::write(path, bytes).unwrap();
    to
}

#[test]
fn salvage_saves_what_is_certain_and_lists_the_rest() {
    let temp = TempDir::new("cli-salvage");
    let dir = temp.path();
    frondb("create", dir, &["large", "small"]).ok();
    frondb("put", dir, &["small", "k", "v"]).ok();
    let mut table = String::from("k,v\n");
    let mut random = frondb_core::prng::Prng::new(3);
    (0..60_000).for_each(|row| table.push_str(&format!("{row:06},{:016x}\n", random.next_u64())));
    frondb_with("load", dir, &["large", "-", "--format", "csv"], table.as_bytes()).ok();
    let out = TempDir::new("cli-salvage-to");
    let to = |name: &str| out.path().join(name).to_str().unwrap().to_owned();

    // One byte of the manifest: the open is refused, and salvage repairs it.
    let one = broken(dir, "MANIFEST-000001", -30, &[0x55]);
    frondb("trees", one.path(), &[]).fails(6, "MANIFEST-000001");
    let saved = frondb("salvage", one.path(), &[&to("one"), "--json"]).ok().json().remove(0);
    assert_eq!(saved["repaired"][0]["place"]["file"], "MANIFEST-000001");
    let scan = |dir: &str, tree: &str| {
        frondb("scan", Path::new(dir), &[tree, "--count"]).ok().text().trim().to_owned()
    };
    assert_eq!(
        (scan(&to("one"), "large"), scan(&to("one"), "small")),
        ("60000".into(), "1".into())
    );
    frondb("salvage", one.path(), &[&to("one")]).fails(3, "not empty");

    // Two bytes: no row is certain.
    let two = broken(dir, "MANIFEST-000001", -30, &[0x55, 0x55]);
    let none = frondb("salvage", two.path(), &[&to("two"), "--json"]).fails(6, "--uncertain");
    assert_eq!(none.json()[0]["cut"][0]["place"]["file"], "MANIFEST-000001");
    assert!(!Path::new(&to("two")).exists());
    let none = frondb("salvage", two.path(), &[&to("two")]).fails(6, "--uncertain");
    assert!(none.text().contains("saved nothing, and created no database"), "{}", none.text());
    // Follow the hint literally.
    frondb("salvage", two.path(), &[&to("two"), "--uncertain"]).fails(6, "older");
    assert_eq!(scan(&to("two"), "small.uncertain"), "1");
    // Without the manifest no command helps, and the hint names none.
    std::fs::remove_file(two.path().join("MANIFEST-000001")).unwrap();
    let nothing = frondb("salvage", two.path(), &[&to("nothing")]).fails(6, "backup");
    assert!(!nothing.err.contains("frondb salvage"), "{}", nothing.err);
    let inside = one.path().join("saved");
    frondb("salvage", one.path(), &[inside.to_str().unwrap()]).fails(2, "outside of the database");
    assert!(!inside.exists());

    // Damage some blocks (not every byte belongs to a block), and truncate a data file: saved and
    // lost rows add up.
    let block = copy(dir);
    let data = block.path().join("data-0000.fdb");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes.iter_mut().step_by(200 << 10).for_each(|byte| *byte ^= 0x10);
    std::fs::write(&data, bytes).unwrap();
    let short = copy(dir);
    let data =
        std::fs::File::options().write(true).open(short.path().join("data-0000.fdb")).unwrap();
    let used = std::fs::read(dir.join("data-0000.fdb")).unwrap();
    let used = used.iter().rposition(|&byte| byte != 0).unwrap() as u64;
    data.set_len(used / 2).unwrap();
    for (from, name) in [(&block, "block"), (&short, "short")] {
        let before =
            files(from.path()).iter().map(|f| std::fs::read(f).unwrap()).collect::<Vec<_>>();
        let saved =
            frondb("salvage", from.path(), &[&to(name), "--json"]).fails(6, "could be saved");
        let saved = saved.json().remove(0);
        let after =
            files(from.path()).iter().map(|f| std::fs::read(f).unwrap()).collect::<Vec<_>>();
        assert!(before == after, "the damaged database is as it was");
        let large =
            saved["trees"].as_array().unwrap().iter().find(|t| t["tree"] == "large").unwrap();
        let rows: u64 = scan(&to(name), "large").parse().unwrap();
        assert_eq!(large["entries"], rows);
        let row = |end: &Value, none: u64| {
            end.as_str().map_or(none, |key| {
                let digits: String = key.chars().take_while(char::is_ascii_digit).collect();
                // A bound may be shorter than a key: pad its digits with zeros.
                format!("{digits:0<6}").parse::<u64>().unwrap()
            })
        };
        let lost = large["lost"].as_array().unwrap();
        // A run has its index at its end, so a truncated file loses more.
        assert!(
            !lost.is_empty() && (rows > 1000 || name == "short"),
            "{name}: {rows} rows, {lost:?}"
        );
        // A bound with more than six characters is above the key of its digits, so that row is lost
        // too.
        let gone: u64 = lost
            .iter()
            .map(|range| {
                let inclusive = range["to"].as_str().is_some_and(|to| to.len() > 6);
                row(&range["to"], 60_000) + u64::from(inclusive) - row(&range["from"], 0)
            })
            .sum();
        assert!(rows + gone >= 60_000, "{name}: {rows} saved, {gone} in ranges");
        // The row of `small` may be in a damaged block.
        let small =
            saved["trees"].as_array().unwrap().iter().find(|t| t["tree"] == "small").unwrap();
        let lost = small["lost"].as_array().unwrap().len() as u64;
        assert!(small["entries"].as_u64().unwrap() + lost > 0, "{small}");
    }
}
