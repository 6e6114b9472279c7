//! Keeps data of this version for the upgrade test (`tests/upgrade.rs`), which later versions must be
//! able to open:
//!
//! ```text
//! FRONDB_PLUGIN=target/mariadb/build/ha_frondb.so cargo run --package frondb-mariadb-harness --example keep_data
//! ```
//!
//! It executes `tests/kept/make.sql`, writes the answers to `tests/kept/ask.sql` to `VERSION.txt`, kills
//! the server, and packs the definitions and FronDB's files into `VERSION.tar.gz`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use frondb_mariadb_harness::{Client, Options, Server, Value};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn statements(path: &Path) -> Result<Vec<String>> {
    Ok(fs::read_to_string(path)?.lines().map(|line| line.trim_end_matches(';').into()).collect())
}

fn value(value: &Value) -> String {
    value.as_ref().map_or("NULL".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The questions, each with its answer below it, and an empty line after it.
fn answers(client: &mut Client, questions: &[String]) -> Result<String> {
    let mut text = String::new();
    for question in questions {
        text.push_str(&format!("{question}\n----\n"));
        for row in client.query(question)?.rows {
            text.push_str(&row.iter().map(value).collect::<Vec<_>>().join("\t"));
            text.push('\n');
        }
        text.push('\n');
    }
    Ok(text)
}

fn main() -> Result {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
    let folder = std::env::temp_dir().join(format!("frondb-keep-{}", std::process::id()));
    // Small files: they are kept for good.
    let options = Options::new().plugin_from_environment().set_all([
        "frondb-memory=32M",
        "frondb-reserve=0",
        "frondb-log-segment-size=1M",
    ]);
    let mut server = Server::start_fresh(&folder, options)?;
    server.connect()?.run(["CREATE DATABASE kept CHARACTER SET latin1"])?;
    let mut maker = server.connect_to("kept")?;
    maker.run(["SET NAMES utf8mb4"])?;
    maker.run(statements(&kept.join("make.sql"))?)?;
    drop(maker);
    let mut asker = server.connect_to("kept")?;
    asker.run(["SET NAMES utf8mb4"])?;
    let answers = answers(&mut asker, &statements(&kept.join("ask.sql"))?)?;
    server.kill()?;
    let version = env!("CARGO_PKG_VERSION");
    fs::write(kept.join(format!("{version}.txt")), answers)?;
    let packed = kept.join(format!("{version}.tar.gz"));
    let status = Command::new("tar")
        .args(["--create", "--sparse", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mtime=2026-01-01", "--use-compress-program=gzip -9n", "--file"])
        .arg(&packed)
        .arg("--directory")
        .arg(server.data())
        .args(["#sql-frondb", "kept"])
        .status()?;
    if !status.success() {
        return Err("tar failed".into());
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}
