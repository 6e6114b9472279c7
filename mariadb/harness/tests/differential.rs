//! Runs 20,000 random statements on FronDB and InnoDB. Every kind of statement, every type and
//! every collation must occur 50 times, and FronDB's plans may read hardly more rows than InnoDB's.
//! `SEED=` and `STATEMENTS=` set other values; STATEMENTS=0
//! runs without end, from a seed of the clock. `MINUTES=` continues with the next seeds for that
//! many minutes, even after a failure.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frondb_mariadb_harness::{Options, Server, differential, variable};

const STATEMENTS: u64 = 20_000;
const SEED: u64 = 1;
/// Rows and entries that FronDB's plans may read for each one of InnoDB's; 1.000 on MariaDB 10.11.
const READS: f64 = 1.02;

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn frondb_answers_as_innodb_does() {
    let statements = variable("STATEMENTS").unwrap_or(STATEMENTS);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut seed = variable("SEED").unwrap_or(if statements == 0 { now } else { SEED });
    let first = seed;
    let time = variable("MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let start = Instant::now();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let options = Options::new()
        .plugin_from_environment()
        // Other tests cover durability.
        .set("innodb-flush-log-at-trx-commit=0")
        // Rows move from memtables to runs as often as possible.
        .set("frondb-checkpoint-period=1")
        .set("frondb-memory=32M");
    let mut server = Server::start_fresh(&folder.join("differential"), options).unwrap();
    let mut failures = Vec::new();
    let (mut all, mut runs) = (differential::Counts::default(), 0);
    loop {
        println!("seed {seed}");
        let count = if statements == 0 { STATEMENTS } else { statements };
        match differential::run(&mut server, seed, count, folder) {
            Ok(counts) => {
                println!("{}", counts.report());
                all.merge(&counts);
                runs += 1;
            }
            Err(error) if time.is_some() => {
                println!("{error}");
                failures.push(error.to_string());
                // After a failure `run` searches for a shorter list of statements that fails too.
                // If the failure is a crash, the search has crashed the server again.
                if server.connect().is_err() {
                    server.kill().and_then(|()| server.start()).unwrap();
                }
            }
            Err(error) => panic!("{error}"),
        }
        if time.map_or(statements != 0, |time| start.elapsed() >= time) {
            break;
        }
        seed += 1;
    }
    // Compare the sum over all seeds, so that one unlucky seed does not fail a long run.
    let rare = all.rare(differential::LEAST * runs);
    let is_rare = (statements == 0 || statements >= STATEMENTS) && !rare.is_empty();
    assert!(!is_rare, "{runs} runs from seed {first}, too rare: {}", rare.join(", "));
    let reads = all.reads_to_innodb();
    assert!(reads <= READS, "FronDB's plans read {reads:.3} times the rows that InnoDB's read");
    assert!(failures.is_empty(), "{} seeds:\n{}", failures.len(), failures.join("\n"));
    server.stop().unwrap();
}
