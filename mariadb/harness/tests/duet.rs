//! Runs 3,000 random steps of two transactions on FronDB and InnoDB. A transaction reads its rows
//! by every key, before and after it writes rows that the other one has committed since the
//! reader's snapshot. The test compares the rows of both engines. `SEED=` and `STATEMENTS=` set
//! other values; `MINUTES=` continues with the next seeds for that time.

use std::path::Path;
use std::time::{Duration, Instant};

use frondb_mariadb_harness::differential::duet;
use frondb_mariadb_harness::{Options, Server, variable};

const STEPS: u64 = 3_000;

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn two_transactions_see_the_same_as_with_innodb() {
    let steps = variable("STATEMENTS").filter(|&steps| steps > 0).unwrap_or(STEPS);
    let mut seed = variable("SEED").unwrap_or(1);
    let time = Duration::from_secs(60 * variable("MINUTES").unwrap_or(0));
    let start = Instant::now();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let options = Options::new()
        .plugin_from_environment()
        .set("innodb-flush-log-at-trx-commit=0")
        // ON is the default of MariaDB 11.8; interleavings.rs has both.
        .set_all(["frondb-snapshot-isolation=OFF", "innodb-snapshot-isolation=OFF"])
        .set("frondb-checkpoint-period=1")
        .set("frondb-memory=32M");
    let mut server = Server::start_fresh(&folder.join("duet"), options).unwrap();
    loop {
        println!("seed {seed}");
        let report =
            duet::run(&server, seed, steps, folder).unwrap_or_else(|error| panic!("{error}"));
        println!("{report:?}");
        // Fail if the engines have refused nearly every statement, since such a run compares
        // nothing.
        assert!(report.alike > 4 * report.refused, "seed {seed}: too many refused: {report:?}");
        assert!(report.rows > steps, "seed {seed}: too little was read: {report:?}");
        if start.elapsed() >= time {
            break;
        }
        seed += 1;
    }
    server.stop().unwrap();
}
