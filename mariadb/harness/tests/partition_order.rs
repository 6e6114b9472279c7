//! The server merges partitions in the order of an index: on stored and generated columns, on whole
//! columns and prefixes, for every kind of type. InnoDB's table for the comparison has no
//! partitions: with partitions, InnoDB returns rows of a generated column in a wrong order if the
//! key does not cover the query. The server compares key fields in its own record buffers and
//! computes no generated columns there, so the engine must fill in all key fields. Otherwise the
//! server compares the fields of another row, or freed memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]

use std::path::Path;

use frondb_mariadb_harness::{Client, Options, Server};

/// A type, the expression that computes its values from column `s`, and the forms of its key part:
/// whole column and prefix.
const TYPES: [(&str, &str, &[&str]); 8] = [
    ("INT", "length(s) * 7 % 11", &["g"]),
    ("DOUBLE", "length(s) * 7 % 11 / 3", &["g"]),
    ("DECIMAL(12,3)", "ascii(s) / 7", &["g"]),
    ("CHAR(30)", "reverse(s)", &["g", "g(3)"]),
    ("VARCHAR(300)", "concat(reverse(s), s)", &["g", "g(2)"]),
    ("VARBINARY(60)", "concat(s, 'x')", &["g", "g(2)"]),
    ("TEXT", "concat(s, reverse(s))", &["g(4)"]),
    ("LONGTEXT", "repeat(s, 3000)", &["g(7)"]),
];

const GENERATED: [&str; 2] = ["VIRTUAL", "STORED"];

/// Keys. `{g}` is the form of the key part.
const KEYS: [&str; 4] = ["KEY k ({g}, d)", "KEY k (d, {g})", "KEY k ({g})", "KEY k ({g} DESC, d)"];

/// Queries. `{t}` is the table. Each query determines the order of its result, except the third,
/// which leaves the order of the groups to the server.
const READS: [&str; 14] = [
    "SELECT count(*) FROM {t} FORCE INDEX (k) WHERE d = 3",
    "SELECT count(*) FROM {t}",
    "SELECT d, count(*) FROM {t} FORCE INDEX (k) WHERE d > 1 GROUP BY d",
    "SELECT max(length(g)), min(length(g)) FROM {t}",
    "SELECT g, id FROM {t} FORCE INDEX (k) ORDER BY g, id",
    "SELECT g FROM {t} FORCE INDEX (k) ORDER BY g LIMIT 9",
    "SELECT g FROM {t} FORCE INDEX (k) ORDER BY g DESC LIMIT 9",
    "SELECT left(g, 9), count(*) FROM {t} FORCE INDEX (k) GROUP BY g ORDER BY g",
    "SELECT min(g), max(g) FROM {t} FORCE INDEX (k)",
    "SELECT d, min(g), max(g) FROM {t} FORCE INDEX (k) GROUP BY d ORDER BY d",
    "SELECT g, d FROM {t} FORCE INDEX (k) WHERE d = 2 ORDER BY g, d",
    "SELECT id FROM {t} FORCE INDEX (k) WHERE g > 'C' ORDER BY id",
    "SELECT id FROM {t} FORCE INDEX (k) WHERE d = 2 ORDER BY g DESC, id DESC",
    "SELECT count(*), sum(id) FROM {t} FORCE INDEX (k, ks) WHERE s = 'AB' OR g < 'B' OR d IN (1, 3)",
];

const WAYS: [&str; 2] = ["default", "'mrr=on,mrr_sort_keys=on,mrr_cost_based=off'"];

const PARTITIONS: [&str; 2] = ["", "PARTITION BY HASH (id) PARTITIONS 3"];

fn make(client: &mut Client, column: &str, key: &str, partitions: &str) {
    for (table, engine, partitions) in [("ours", "FronDB", partitions), ("theirs", "InnoDB", "")] {
        client
            .run([
                format!("DROP TABLE IF EXISTS {table}"),
                format!(
                    "CREATE TABLE {table} (id INT PRIMARY KEY, s VARCHAR(30), d INT, {column}, {key}, KEY ks (s)) \
                     ENGINE={engine} CHARSET utf8mb4 {partitions}"
                ),
                format!(
                    "INSERT INTO {table} (id, s, d) SELECT seq, \
                     IF(seq % 10 = 0, NULL, concat(repeat(char(65 + seq * 5 % 7), seq % 3 + 1), seq * 37 % 99)), \
                     seq % 5 FROM seq_1_to_99"
                ),
            ])
            .unwrap();
    }
}

/// The rows of a query, or its error, as text.
fn read(client: &mut Client, sql: &str) -> String {
    match client.query(sql) {
        Ok(reply) => format!("{:?}", reply.rows),
        Err(error) => error.to_string(),
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn partitions_are_merged_in_the_order_of_any_key() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("partition-order");
    let options = Options::new().plugin_from_environment().set("innodb-flush-log-at-trx-commit=0");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    let (mut reads, mut wrong) = (0, Vec::new());
    for (ty, value, parts) in TYPES {
        for generated in GENERATED {
            for partitions in PARTITIONS {
                for (key, part) in
                    KEYS.iter().flat_map(|key| parts.iter().map(move |part| (key, part)))
                {
                    let column = format!("g {ty} AS ({value}) {generated}");
                    let key = key.replace("{g}", part);
                    make(&mut client, &column, &key, partitions);
                    for way in WAYS {
                        client.query(format!("SET optimizer_switch = {way}")).unwrap();
                        for sql in READS {
                            let ours = read(&mut client, &sql.replace("{t}", "ours"));
                            let theirs = read(&mut client, &sql.replace("{t}", "theirs"));
                            reads += 1;
                            if ours != theirs {
                                wrong.push(format!("{column}, {key} {partitions} {way}: {sql}\n  {ours:.300}\n  {theirs:.300}"));
                            }
                        }
                    }
                    client.query("ANALYZE TABLE ours PERSISTENT FOR ALL").unwrap();
                }
            }
        }
    }
    println!("{reads} reads");
    assert!(wrong.is_empty(), "{} of {reads} differ:\n{}", wrong.len(), wrong.join("\n"));
    server.stop().unwrap();
}
