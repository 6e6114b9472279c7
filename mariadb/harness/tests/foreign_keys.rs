//! Runs 5,000 random statements on families of tables with foreign keys, on FronDB and InnoDB. Two
//! thirds use one connection, with ALTER, DROP, TRUNCATE and RENAME, and with foreign_key_checks on
//! and off. The others use two connections. `SEED=` and `STATEMENTS=` set other values; `MINUTES=`
//! continues with the next seeds for that time, even after a failure.

use std::path::Path;
use std::time::{Duration, Instant};

use frondb_mariadb_harness::differential::foreign;
use frondb_mariadb_harness::{Options, Server, variable};

const STATEMENTS: u64 = 5_000;

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn foreign_keys_work_as_with_innodb() {
    let statements = variable("STATEMENTS").filter(|&count| count > 0).unwrap_or(STATEMENTS);
    let mut seed = variable("SEED").unwrap_or(1);
    let minutes = variable("MINUTES");
    let time = Duration::from_secs(60 * minutes.unwrap_or(0));
    let start = Instant::now();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let options = Options::new()
        .plugin_from_environment()
        .set("innodb-flush-log-at-trx-commit=0")
        // ON is the default of MariaDB 11.8; interleavings.rs has both.
        .set_all(["frondb-snapshot-isolation=OFF", "innodb-snapshot-isolation=OFF"])
        .set("frondb-checkpoint-period=1")
        .set("frondb-memory=32M");
    let mut server = Server::start_fresh(&folder.join("foreign_keys"), options).unwrap();
    let mut failures = Vec::new();
    loop {
        println!("seed {seed}");
        match foreign::run(&mut server, seed, statements, folder) {
            Ok(report) => {
                println!("{report:?}");
                // Fail if the engines have refused nearly every statement or foreign key, since
                // such a run compares nothing.
                let done: u64 = report.done.values().sum();
                assert!(done > report.errors.values().sum(), "seed {seed}: {report:?}");
                let is_whole = statements >= STATEMENTS;
                assert!(!is_whole || report.actions.len() > 12, "seed {seed}: {report:?}");
            }
            Err(error) if minutes.is_some() => {
                println!("{error}");
                failures.push(error.to_string());
                if server.connect().is_err() {
                    server.kill().and_then(|()| server.start()).unwrap();
                }
            }
            Err(error) => panic!("{error}"),
        }
        if start.elapsed() >= time {
            break;
        }
        seed += 1;
    }
    assert!(failures.is_empty(), "{} seeds:\n{}", failures.len(), failures.join("\n"));
    server.stop().unwrap();
}
