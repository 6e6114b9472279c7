//! Indexes that are built while others write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frondb_core::prng::Prng;
use frondb_mariadb_harness::{Client, Options, Server};

use crate::writers::{ROWS, seed, write_beside};

const CHANGES: usize = 12;

/// The name of an index, and its first column.
type Known = (String, &'static str);

/// Runs one ALTER and updates the list of indexes. An ALTER that fails with a duplicate key leaves
/// the list as it is.
fn change(client: &mut Client, prng: &mut Prng, known: &mut Vec<Known>, number: usize) {
    let (kind, column) =
        *prng.pick(&[("KEY", "a"), ("KEY", "u"), ("KEY", "v"), ("UNIQUE KEY", "u")]).unwrap();
    let clustering = if prng.chance(1, 3) { " CLUSTERING=YES" } else { "" };
    let mut sql = format!("ALTER TABLE t ADD {kind} k{number} ({column}){clustering}");
    let mut after = known.clone();
    after.push((format!("k{number}"), column));
    if prng.chance(1, 3) {
        sql += &format!(", ADD KEY k{number}b (v(2), a DESC)");
        after.push((format!("k{number}b"), "v"));
    }
    while after.len() > 4 {
        let (name, _) = after.remove(prng.index(known.len().min(after.len())));
        if known.iter().any(|(is, _)| *is == name) {
            sql += &format!(", DROP KEY {name}");
        } else {
            after.push((name, column));
        }
    }
    match client.query(format!("{sql}, ALGORITHM=NOCOPY, LOCK=NONE")) {
        Ok(_) => *known = after,
        Err(error) => assert_eq!(error.code(), Some(1062), "{sql}: {error}"),
    }
}

fn check(client: &mut Client, columns: &str, known: &[Known]) {
    let sums =
        format!("SELECT count(*), coalesce(sum(crc32(concat_ws(',', {columns}))), 0) FROM t");
    client.query("LOCK TABLES t WRITE, t AS n READ").unwrap();
    let want = client.query(format!("{sums} USE INDEX ()")).unwrap().rows;
    for (name, column) in known {
        // Read all rows by the index, and then only the index entries.
        let ordered =
            format!("(SELECT * FROM t FORCE INDEX ({name}) ORDER BY {column} LIMIT 1000000) t");
        let got = client.query(sums.replace("FROM t", &format!("FROM {ordered}"))).unwrap().rows;
        assert_eq!(got, want, "by {name}");
        let alone = format!(
            "SELECT count({column}) + (SELECT count(*) FROM t AS n FORCE INDEX ({name}) \
             WHERE n.{column} IS NULL) \
             FROM t FORCE INDEX ({name}) WHERE {column} >= 0 OR {column} < 0"
        );
        let count = client.query(alone).unwrap().single();
        assert_eq!(count.map(String::into_bytes), want[0][0], "entries of {name}");
    }
    client.query("UNLOCK TABLES").unwrap();
}

fn build_beside_writers(name: &str, definition: &str) {
    let mut prng = Prng::new(seed());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options::new().plugin_from_environment().set("frondb-memory=64M");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run([
            format!(
                "CREATE TABLE t ({definition}, a INT, u INT, v VARCHAR(30), w TEXT) ENGINE=FronDB"
            ),
            format!(
                "INSERT INTO t SELECT seq, seq % 97, seq, concat('v', seq % 1000), repeat('w', 50) \
                 FROM seq_1_to_{ROWS}"
            ),
        ])
        .unwrap();
    let mut known = Vec::new();
    write_beside(&server, Prng::new(prng.next_u64()), move || {
        for number in 0..CHANGES {
            change(&mut client, &mut prng, &mut known, number);
            check(&mut client, "id, a, u, v, w", &known);
        }
    });
    server.stop().unwrap();
}

/// Number of attempts to add an index while writers use group commit; `ATTEMPTS=` sets another
/// number.
const ATTEMPTS: usize = 25;

/// With the binary log, every commit is prepared for a moment. Neither the writers nor the index
/// build may wait forever.
#[test]
#[ignore = "needs a server: make test-mariadb"]
fn an_index_is_added_beside_writers_in_group_commit() {
    let attempts = std::env::var("ATTEMPTS").ok().and_then(|attempts| attempts.parse().ok());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("online-index-binlog");
    let options = Options::new().plugin_from_environment().set("log-bin=log").set("server-id=1");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client
        .run([
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, u INT) ENGINE=FronDB",
            "INSERT INTO t SELECT seq, seq % 97, seq FROM seq_1_to_2000",
        ])
        .unwrap();
    let ends = AtomicBool::new(false);
    let refused = thread::scope(|threads| {
        for writer in 0..4 {
            let (mut client, ends) = (server.connect_to("test").unwrap(), &ends);
            // Each writer changes only its own rows, so writers wait for each other only in group
            // commit.
            threads.spawn(move || {
                let mut written = 0_u64;
                while !ends.load(Ordering::Relaxed) {
                    let id = 1 + writer + 4 * (written % 500);
                    client.query(format!("UPDATE t SET a = a + 1 WHERE id = {id}")).unwrap();
                    written += 1;
                }
                println!("writer {writer}: {written} commits");
            });
        }
        let mut refused = Vec::new();
        for number in 0..attempts.unwrap_or(ATTEMPTS) {
            let kind = ["KEY k (a)", "UNIQUE KEY k (u, a)"][number % 2];
            let add = format!("ALTER TABLE t ADD {kind}, ALGORITHM=NOCOPY, LOCK=NONE");
            match client.query(&add) {
                Ok(_) => drop(client.query("ALTER TABLE t DROP KEY k").unwrap()),
                Err(error) => refused.push(format!("attempt {number}: {error}")),
            }
        }
        ends.store(true, Ordering::Relaxed);
        refused
    });
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
    let mut client = server.connect_to("test").unwrap();
    client.query("ALTER TABLE t ADD KEY k (a)").unwrap();
    check(&mut client, "id, a, u", &[("k".to_owned(), "a")]);
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn an_index_built_beside_writers_has_every_row() {
    build_beside_writers("online-index", "id INT PRIMARY KEY");
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn an_index_of_a_table_with_a_hidden_primary_key_has_every_row() {
    build_beside_writers("online-index-hidden", "id INT, KEY (id)");
}
