//! The dashboard and the alert rules name only metrics that the real mysqld_exporter reports for a
//! server, and promtool accepts the rules and their tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use frondb_mariadb_harness::{Options, Server, free_port};

const PREFIX: &str = "mysql_global_status_frondb_";
/// Longest start of the exporter.
const TIMEOUT: Duration = Duration::from_secs(60);

fn dashboard(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard").join(file)
}

/// FronDB's metrics that a text names.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.match_indices(PREFIX)
        .map(|(at, _)| text[at..].chars().take_while(|c| is_name(*c)).collect())
        .collect()
}

/// The exporter's process. Dropping the exporter kills the process.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
#[ignore = "needs a server and prometheus-mysqld-exporter: make test-mariadb"]
fn every_metric_of_the_dashboard_is_exported() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics");
    let server = Server::start_fresh(&folder, Options::new().plugin_from_environment()).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run(["CREATE TABLE t (a INT PRIMARY KEY) ENGINE=FronDB", "INSERT INTO t VALUES (1), (2)"])
        .unwrap();
    let port = free_port().unwrap();
    // Versions before 0.15 read the variable, later ones the file.
    let file = folder.join("exporter.cnf");
    let client = format!("[client]\nuser=root\nsocket={}\n", server.socket().display());
    std::fs::write(&file, client).unwrap();
    let _exporter = Exporter(
        Command::new("prometheus-mysqld-exporter")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg(format!("--config.my-cnf={}", file.display()))
            .env("DATA_SOURCE_NAME", format!("root@unix({})/", server.socket().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let begin = Instant::now();
    let page = loop {
        match get(port, "/metrics") {
            Ok(page) if page.contains("mysql_up 1") => break page,
            found => assert!(begin.elapsed() < TIMEOUT, "{found:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let exported = metrics(&page);
    for file in ["frondb.json", "alerts.yml", "alerts_test.yml"] {
        let named = metrics(&fs::read_to_string(dashboard(file)).unwrap());
        assert!(named.len() > 4, "{file}: {named:?}");
        let missing: Vec<_> = named.difference(&exported).collect();
        assert!(missing.is_empty(), "{file} names what is not exported: {missing:?}");
    }
    let commits = page.lines().find_map(|line| line.strip_prefix(&format!("{PREFIX}commits ")));
    assert!(commits.unwrap().parse::<f64>().unwrap() > 0.0);
}

#[test]
#[ignore = "needs promtool: make test-mariadb"]
fn promtool_accepts_the_alert_rules_and_their_tests() {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let done =
            Command::new("promtool").args(arguments).current_dir(dashboard("")).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
