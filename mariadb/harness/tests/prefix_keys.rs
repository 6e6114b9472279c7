//! Reads by indexes on a prefix of a text, on FronDB and on InnoDB: every type that allows such an
//! index, every plan that reads the index without the row (index_merge as a union and as an
//! intersection, MRR, rowid filters), changed rows and partitions.
//!
//! The plans are counted, because a query that the optimizer runs as a table scan proves nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a failed test shows what it printed")]

use std::collections::BTreeMap;
use std::path::Path;

use frondb_mariadb_harness::{Client, Options, Server};

const TYPES: [&str; 13] = [
    "CHAR(20)",
    "VARCHAR(20)",
    "VARCHAR(300)",
    "BINARY(20)",
    "VARBINARY(20)",
    "TINYTEXT",
    "TEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
    "TINYBLOB",
    "BLOB",
    "MEDIUMBLOB",
    "LONGBLOB",
];

/// The keys of each table, of which the first has no text part; then the names of all keys but the
/// first. Different texts of a table differ in their first six characters.
const KEYS: [(&str, &[&str]); 3] = [
    (
        "KEY ka (a), KEY k2 (c(2)), KEY k6 (c(6)), KEY kca (c(6), a), KEY kac (a, c(3))",
        &["k2", "k6", "kca", "kac"],
    ),
    (
        "KEY ka (a), UNIQUE KEY k6 (c(6)), UNIQUE KEY kca (c(2), a), KEY kd (c(4) DESC)",
        &["k6", "kca", "kd"],
    ),
    // Descending parts, in which NULL sorts last.
    (
        "KEY ka (a), KEY k6 (c(6) DESC, a DESC), UNIQUE KEY ku (c(6) DESC, id DESC), KEY kac (a DESC, c(3) DESC)",
        &["k6", "ku", "kac"],
    ),
];
/// For each element of [`KEYS`], whether it has a unique key that refuses equal rows.
const ARE_UNIQUE: [bool; 3] = [false, true, false];

/// Conditions on a text and a number, which become unions and intersections of ranges.
const CONDITIONS: [&str; 14] = [
    "c IN ('a', 'b') OR a IN (-7, -8)",
    "c IN ('105', 'c', '17') OR a IN (3, 9)",
    "c < '11' OR c > '96' OR a = 50",
    "c BETWEEN '12' AND '13x' OR c BETWEEN '150' AND '152' OR a BETWEEN 90 AND 95",
    "c LIKE '15%' OR c LIKE '17%' OR a < 0",
    "c IS NULL OR c = '33' OR a > 195",
    "c IS NULL OR a IN (-7, -8)",
    "a IS NULL OR c IN ('a', 'b')",
    "c > '2longer' AND c <= '31longer' OR a > 180",
    "c IN ('101longer than the key', '77longer than the key') OR a IN (5, 6)",
    "c IN ('12', '13', '14') AND a IN (12, 13, 15)",
    "(c < '15' OR c > '92') AND (a < 16 OR a BETWEEN 93 AND 94)",
    "(c LIKE '1%' OR c LIKE '9%') AND (a < 19 OR a > 100)",
    "(c >= '3' AND c < '5' OR c >= '7') AND a BETWEEN 40 AND 80",
];

/// Ways to run the conditions: optimizer switches, and plans that must occur with them.
const WAYS: [(&str, &[&str]); 3] = [
    ("index_merge_sort_intersection=on", &["sort_union", "sort_intersect"]),
    ("index_merge_sort_intersection=on,mrr=on,mrr_cost_based=off", &["Rowid-ordered scan"]),
    ("index_merge=off,mrr=on,mrr_sort_keys=on,mrr_cost_based=off", &["Rowid-ordered scan"]),
];

/// Fills a table of one of the engines.
fn fill(client: &mut Client, table: &str, unique: bool) {
    let others = if unique { "(-3, 'c')" } else { "(-3, 'a'), (-7, 'a'), (6, '101')" };
    let nulls = "(5, NULL), (16, NULL), (105, NULL), (NULL, NULL), (NULL, '300'), (NULL, '301')";
    // Every other text is longer than its key prefix.
    let texts = "IF(seq % 2, concat(seq, 'longer than the key'), seq)";
    client
        .run([
            format!("INSERT INTO {table} (a, c) VALUES (-1, 'a'), (-2, 'b'), {others}, {nulls}"),
            format!("INSERT INTO {table} (a, c) SELECT seq, left({texts}, 20) FROM seq_1_to_200"),
        ])
        .unwrap();
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut rows = client.query(sql).unwrap_or_else(|error| panic!("{error}: {sql}")).rows;
    rows.sort();
    rows
}

/// The whole EXPLAIN output of a query, as one text.
fn plan(client: &mut Client, sql: &str) -> String {
    let rows = client.query(format!("EXPLAIN {sql}")).unwrap().rows;
    let words: Vec<String> = rows
        .iter()
        .flatten()
        .map(|value| String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned())
        .collect();
    words.join(" ")
}

/// Compares the engines' results of a query, in which `{t}` is the table; returns the number of
/// rows.
fn compare(client: &mut Client, sql: &str, wrong: &mut Vec<String>) -> usize {
    let theirs = rows(client, &sql.replace("{t}", "theirs"));
    compare_with(client, sql, &theirs, wrong)
}

fn compare_with(
    client: &mut Client,
    sql: &str,
    theirs: &[Vec<Option<Vec<u8>>>],
    wrong: &mut Vec<String>,
) -> usize {
    let ours = rows(client, &sql.replace("{t}", "ours"));
    if ours != theirs {
        wrong.push(format!("{} rows, InnoDB {}: {sql}", ours.len(), theirs.len()));
    }
    theirs.len()
}

/// Starts a server and connects to it. `make` creates the tables `ours` and `theirs`.
fn server(name: &str) -> (Server, Client) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options::new().plugin_from_environment().set("innodb-flush-log-at-trx-commit=0");
    let server = Server::start_fresh(&folder, options).unwrap();
    let client = server.connect_to("test").unwrap();
    (server, client)
}

fn make(client: &mut Client, columns: &str, keys: &str, partitions: &str, unique: bool) {
    for (table, engine) in [("ours", "FronDB"), ("theirs", "InnoDB")] {
        client
            .run([
                format!("DROP TABLE IF EXISTS {table}"),
                format!(
                    "CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, {columns}, {keys}) \
                     ENGINE={engine} CHARSET utf8mb4 {partitions}"
                ),
            ])
            .unwrap();
        fill(client, table, unique);
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn every_type_and_plan_finds_the_rows_that_innodb_finds() {
    let (mut server, mut client) = server("prefix-keys");
    let (mut queries, mut found, mut wrong) = (0, 0, Vec::new());
    let mut plans: BTreeMap<&str, usize> = BTreeMap::new();
    for ty in TYPES {
        for (unique, (keys, names)) in ARE_UNIQUE.into_iter().zip(KEYS) {
            make(&mut client, &format!("c {ty}"), keys, "", unique);
            for (switches, wanted) in WAYS {
                client.query(format!("SET optimizer_switch = '{switches}'")).unwrap();
                for key in names {
                    for condition in CONDITIONS {
                        let sql = format!(
                            "SELECT * FROM {{t}} FORCE INDEX (ka, {key}) WHERE {condition}"
                        );
                        found += compare(&mut client, &sql, &mut wrong);
                        queries += 1;
                        let explained = plan(&mut client, &sql.replace("{t}", "ours"));
                        for kind in wanted.iter().filter(|kind| explained.contains(**kind)) {
                            *plans.entry(kind).or_default() += 1;
                        }
                    }
                }
                client.query("SET optimizer_switch = default").unwrap();
            }
        }
    }
    println!("{queries} queries, {found} rows, {plans:?}");
    assert!(wrong.is_empty(), "{} of {queries} wrong:\n{}", wrong.len(), wrong.join("\n"));
    for kind in WAYS.iter().flat_map(|(_, wanted)| *wanted) {
        assert!(plans.get(kind).is_some_and(|&times| times > 50), "{kind}: {plans:?}");
    }
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn statements_that_change_rows_find_them_too() {
    let (mut server, mut client) = server("prefix-keys-changed");
    client.query("SET optimizer_switch = 'index_merge_sort_intersection=on'").unwrap();
    for (unique, (keys, _)) in ARE_UNIQUE.into_iter().zip(KEYS) {
        for condition in CONDITIONS {
            for statement in [
                "DELETE FROM {t}",
                "UPDATE {t} SET a = a + 1000",
                "DELETE x FROM {t} x FORCE INDEX (ka, k6)",
            ] {
                let columns = "c VARCHAR(20)";
                make(&mut client, columns, keys, "", unique);
                let sql = format!("{statement} WHERE {condition}");
                let [ours, theirs] = ["ours", "theirs"]
                    .map(|table| client.query(sql.replace("{t}", table)).unwrap().affected);
                assert_eq!(ours, theirs, "{sql}");
                let mut wrong = Vec::new();
                compare(&mut client, "SELECT * FROM {t} IGNORE INDEX (ka, k6)", &mut wrong);
                assert!(wrong.is_empty(), "{sql}: {wrong:?}");
            }
        }
    }
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn partitions_and_virtual_columns_find_the_rows_that_innodb_finds() {
    let (mut server, mut client) = server("prefix-keys-partitions");
    let mut wrong = Vec::new();
    let mut merges = 0;
    for (columns, text) in
        [("c VARCHAR(20)", "c"), ("c VARCHAR(20), v VARCHAR(30) AS (concat(c, '')) VIRTUAL", "v")]
    {
        for partitions in ["", "PARTITION BY HASH (id) PARTITIONS 3"] {
            let keys = format!("KEY ka (a), KEY k6 ({text}(6)), KEY kac (a, {text}(3))");
            make(&mut client, columns, &keys, partitions, false);
            for (switches, _) in WAYS {
                client.query(format!("SET optimizer_switch = '{switches}'")).unwrap();
                for key in ["k6", "kac"] {
                    for condition in CONDITIONS {
                        // Replace the column here: in the conditions, a `c` before a space is
                        // always the column.
                        let condition = condition.replace("c ", &format!("{text} "));
                        let sql = format!(
                            "SELECT * FROM {{t}} FORCE INDEX (ka, {key}) WHERE {condition}"
                        );
                        // InnoDB reads without an index, because with MRR over partitions it fails
                        // with error 1032.
                        let scan = format!("SELECT * FROM theirs USE INDEX () WHERE {condition}");
                        let theirs = rows(&mut client, &scan);
                        compare_with(&mut client, &sql, &theirs, &mut wrong);
                        merges += usize::from(
                            plan(&mut client, &sql.replace("{t}", "ours")).contains("sort_union"),
                        );
                    }
                }
                client.query("SET optimizer_switch = default").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(merges > 20, "{merges} unions");
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn scans_of_several_indexes_by_mrr_find_all_rows_of_partitions() {
    let (mut server, mut client) = server("prefix-keys-mrr");
    let (mut merges, mut found, mut wrong) = (0, 0, Vec::new());
    for partitions in ["", "PARTITION BY HASH (id) PARTITIONS 3"] {
        for (table, engine) in [("ours", "FronDB"), ("theirs", "InnoDB")] {
            client
                .run([
                    format!("DROP TABLE IF EXISTS {table}"),
                    format!(
                        "CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT, v INT, KEY ka (a), KEY kb (b)) \
                         ENGINE={engine} {partitions}"
                    ),
                    format!("INSERT INTO {table} SELECT seq, seq % 9, seq % 7, seq % 3 FROM seq_1_to_2000"),
                    format!("ANALYZE TABLE {table}"),
                ])
                .unwrap();
        }
        for switches in ["mrr=on", "mrr=on,mrr_sort_keys=on,mrr_cost_based=off"] {
            client
                .query(format!(
                    "SET optimizer_switch = 'index_merge_sort_intersection=on,{switches}'"
                ))
                .unwrap();
            for condition in
                ["a IN (4, 7) AND b = 5", "a IN (4, 7) AND b IN (2, 5)", "a = 3 OR b IN (1, 6)"]
            {
                for ending in ["", " FOR UPDATE", " LOCK IN SHARE MODE"] {
                    let sql = format!(
                        "SELECT id, v FROM {{t}} FORCE INDEX (ka, kb) WHERE {condition}{ending}"
                    );
                    found += compare(&mut client, &sql, &mut wrong);
                    let explained = plan(&mut client, &sql.replace("{t}", "ours"));
                    merges += usize::from(explained.contains("sort_intersect"));
                }
            }
            client.query("SET optimizer_switch = default").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(merges > 0 && found > 0, "{merges} intersections, {found} rows");
    server.stop().unwrap();
}
