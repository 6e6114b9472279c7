//! Kills a server in the middle of DDL. After a restart each table is complete and has either its
//! old or its new definition. Trees that were only half created or dropped have been removed, and
//! no other trees.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use frondb_mariadb_harness::{Client, Options, Server};

const ROWS: u64 = 500;

/// A statement, and the crash points at which the server dies while the statement runs.
struct Case {
    statement: &'static str,
    places: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        statement: "CREATE TABLE made (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=FronDB",
        places: &["create: trees made", "create: recorded"],
    },
    Case { statement: "DROP TABLE t", places: &["drop: record removed", "drop: trees dropped"] },
    Case {
        statement: "RENAME TABLE t TO renamed",
        places: &["rename: not recorded", "rename: recorded"],
    },
    Case { statement: "TRUNCATE TABLE t", places: &["truncate: trees made", "truncate: recorded"] },
    Case {
        statement: "ALTER TABLE t ADD KEY kb (b, a), DROP KEY ka, ALGORITHM=NOCOPY",
        places: &[
            "build: begun",
            "build: loaded",
            "alter: not recorded",
            "alter: recorded",
            "alter: trees dropped",
        ],
    },
    Case {
        statement: "ALTER TABLE t FORCE, ADD KEY kb (b), ALGORITHM=INPLACE",
        places: &[
            "build: begun",
            "build: loaded",
            "alter: not recorded",
            "alter: recorded",
            "alter: trees dropped",
        ],
    },
    Case {
        statement: "ALTER TABLE p ADD KEY kb (b), ALGORITHM=NOCOPY",
        places: &["build: begun", "build: loaded", "alter: not recorded", "alter: recorded"],
    },
    Case {
        statement: "ALTER TABLE t ADD c INT DEFAULT 7 FIRST, MODIFY b INT AFTER c, ALGORITHM=INSTANT",
        places: &["alter: not recorded", "alter: recorded"],
    },
    Case {
        statement: "ALTER TABLE p DROP b, ADD b BIGINT NOT NULL DEFAULT 7 FIRST, ALGORITHM=INSTANT",
        places: &["alter: not recorded", "alter: recorded"],
    },
    Case {
        statement: "ALTER TABLE p COMPRESSION=aggressive, ALGORITHM=INSTANT",
        places: &["alter: packing changed", "alter: not recorded", "alter: recorded"],
    },
    Case {
        statement: "ALTER TABLE t RENAME KEY ka TO kc, RENAME TO renamed, ALGORITHM=INSTANT",
        places: &[
            "alter: not recorded",
            "alter: recorded",
            "rename: not recorded",
            "rename: recorded",
        ],
    },
    Case {
        statement: "ALTER TABLE t MODIFY b BIGINT, ADD KEY kb (b), ALGORITHM=COPY",
        places: &[
            "create: trees made",
            "create: recorded",
            "load: finished",
            "rename: not recorded",
            "rename: recorded",
            "drop: record removed",
            "drop: trees dropped",
        ],
    },
    Case {
        statement: "CREATE OR REPLACE TABLE t (a INT PRIMARY KEY, b INT, KEY ka (b)) ENGINE=FronDB \
                    SELECT seq AS a, 1 AS b FROM seq_1_to_10",
        places: &[
            "create: trees made",
            "create: recorded",
            "load: finished",
            "drop: record removed",
        ],
    },
    Case {
        statement: "CREATE TABLE made (a INT PRIMARY KEY, b INT, CONSTRAINT made_f FOREIGN KEY (b) \
                    REFERENCES parent (a)) ENGINE=FronDB",
        places: &["create: trees made", "create: recorded"],
    },
    Case {
        statement: "ALTER TABLE child ADD CONSTRAINT f2 FOREIGN KEY (a) REFERENCES parent (a), LOCK=NONE",
        places: &["foreign key: begun", "alter: not recorded", "alter: recorded"],
    },
    Case {
        statement: "ALTER TABLE child DROP FOREIGN KEY f1, ADD CONSTRAINT f2 FOREIGN KEY (b) \
                    REFERENCES parent (a) ON DELETE CASCADE, ALGORITHM=COPY",
        places: RENAMES,
    },
    Case { statement: "ALTER TABLE parent ADD c INT, ALGORITHM=COPY", places: RENAMES },
    Case {
        statement: "RENAME TABLE parent TO renamed",
        places: &["rename: not recorded", "rename: recorded"],
    },
    Case {
        statement: "DROP TABLE child",
        places: &["drop: record removed", "drop: trees dropped"],
    },
    Case { statement: "DROP DATABASE test", places: &["drop: record removed"] },
];

/// Crash points of an ALTER by copy: the server renames the old table, and then renames the copy to
/// the table's name.
const RENAMES: &[&str] =
    &["create: recorded", "rename: not recorded", "rename: recorded", "drop: record removed"];

fn set_up(client: &mut Client) {
    client
        .run([
            "CREATE DATABASE IF NOT EXISTS test".to_owned(),
            "USE test".to_owned(),
            "SET foreign_key_checks = 0".to_owned(),
            "DROP TABLE IF EXISTS t, p, made, renamed, other, child, parent".to_owned(),
            "SET foreign_key_checks = 1".to_owned(),
            "CREATE TABLE other (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=FronDB".to_owned(),
            format!("INSERT INTO other SELECT seq, seq FROM seq_1_to_{ROWS}"),
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY ka (b)) ENGINE=FronDB".to_owned(),
            format!("INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}"),
            "CREATE TABLE p (a INT PRIMARY KEY, b INT) ENGINE=FronDB PARTITION BY HASH (a) PARTITIONS 3"
                .to_owned(),
            format!("INSERT INTO p SELECT seq, seq FROM seq_1_to_{ROWS}"),
            "CREATE TABLE parent (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=FronDB".to_owned(),
            format!("INSERT INTO parent SELECT seq, seq FROM seq_1_to_{ROWS}"),
            "CREATE TABLE child (a INT PRIMARY KEY, b INT, \
             CONSTRAINT f1 FOREIGN KEY (b) REFERENCES parent (a)) ENGINE=FronDB"
                .to_owned(),
            format!("INSERT INTO child SELECT seq, seq FROM seq_1_to_{ROWS}"),
        ])
        .unwrap();
}

fn texts(client: &mut Client, statement: &str) -> Vec<Vec<String>> {
    let text = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap_or_default()).unwrap();
    let rows = client.query(statement).unwrap_or_else(|e| panic!("{statement}: {e}")).rows;
    rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

/// Compares the number of entries in each index of each table with the number of rows; returns the
/// number of trees that the tables need.
fn check(client: &mut Client, case: &str) -> usize {
    let mut trees = 0;
    let of_frondb = "SELECT table_schema, table_name FROM information_schema.tables WHERE engine = 'FronDB' \
                     AND table_schema NOT IN ('information_schema') ORDER BY 1, 2";
    for table in texts(client, of_frondb) {
        let name = format!("{}.{}", table[0], table[1]);
        let rows = client.number(&format!("SELECT count(*) FROM {name} USE INDEX ()"));
        let rows = rows.unwrap_or_else(|e| panic!("{case}: {name}: {e}"));
        let indexes = texts(
            client,
            &format!(
                "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = '{}' \
                 AND table_name = '{}'",
                table[0], table[1]
            ),
        );
        for index in &indexes {
            let sum = format!(
                "SELECT count(*) FROM {name} FORCE INDEX (`{}`) WHERE b IS NOT NULL",
                index[0]
            );
            let of_index = client.number(&sum).unwrap_or_else(|e| panic!("{case}: {sum}: {e}"));
            assert_eq!(of_index, rows, "{case}: {sum}");
        }
        let whole = [0, 10, ROWS];
        assert!(whole.contains(&rows), "{case}: {name} has {rows} rows");
        if rows == ROWS {
            // Each row has the definition with which it is read: `b` is the written value, or 7,
            // the default of the added column.
            let sum = ROWS * (ROWS + 1) / 2;
            let a = client.number(&format!("SELECT sum(a) FROM {name}")).unwrap();
            let b = client.number(&format!("SELECT sum(b) FROM {name}")).unwrap();
            assert_eq!(a, sum, "{case}: sum of {name}.a");
            assert!([sum, 7 * ROWS].contains(&b), "{case}: sum of {name}.b is {b}");
        }
        let partitions = client
            .number(&format!(
                "SELECT greatest(1, count(partition_name)) FROM information_schema.partitions \
                 WHERE table_schema = '{}' AND table_name = '{}'",
                table[0], table[1]
            ))
            .unwrap();
        trees += indexes.len() * usize::try_from(partitions).unwrap();
    }
    trees
}

/// Checks that each foreign key is in its table's definition, connects existing tables, and is
/// enforced.
fn check_foreign_keys(client: &mut Client, case: &str) {
    let shown = "SELECT constraint_name, table_name, referenced_table_name \
                 FROM information_schema.referential_constraints WHERE constraint_schema = 'test' ORDER BY 1";
    let kept = "SELECT constraint_name, table_name, referenced_table_name \
                FROM information_schema.frondb_foreign_keys WHERE index_name IS NOT NULL \
                AND referenced_index_name IS NOT NULL ORDER BY 1";
    let keys = texts(client, shown);
    assert_eq!(keys, texts(client, kept), "{case}: not all foreign keys belong to tables");
    for key in &keys {
        let (name, child, parent) = (&key[0], &key[1], &key[2]);
        let orphan = format!("INSERT INTO test.{child} (a, b) VALUES (9999, 9999)");
        assert!(client.query(&orphan).is_err(), "{case}: {name} of {child} is not checked");
        let rows = client.number(&format!("SELECT count(*) FROM test.{child}")).unwrap();
        let cascades = "SELECT count(*) FROM information_schema.frondb_foreign_keys WHERE delete_rule = 'CASCADE'";
        if rows > 0 && client.number(cascades).unwrap() == 0 {
            let parted = format!("DELETE FROM test.{parent} WHERE a = 1");
            assert!(client.query(&parted).is_err(), "{case}: {name} of {parent} is not checked");
        }
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_crash_in_ddl_leaves_the_old_or_the_new() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ddl-crash");
    let options = Options::new().plugin_from_environment().set("frondb-memory=64M");
    let mut server = Server::start_fresh(&folder, options.clone()).unwrap();
    for case in CASES {
        for place in case.places {
            let name = format!("{} at `{place}`", case.statement);
            set_up(&mut server.connect().unwrap());
            server.stop().unwrap();
            server.restart_with(options.clone().environment("FRONDB_CRASH_AT", place)).unwrap();
            let mut client = server.connect_to("test").unwrap();
            assert!(client.query(case.statement).is_err(), "{name}: the server did not die");
            server.wait_for_end().unwrap();
            server.restart_with(options.clone()).unwrap();
            let mut client = server.connect().unwrap();
            let needed = check(&mut client, &name);
            check_foreign_keys(&mut client, &name);
            // The trees of tables, whose names have three parts, are exactly those of the existing
            // tables.
            let there = client
                .number("SELECT count(*) FROM information_schema.frondb_trees WHERE tree_name LIKE 'mariadb/%/%'")
                .unwrap();
            assert_eq!(usize::try_from(there).unwrap(), needed, "{name}: trees of no table");
            assert_eq!(
                client.number("SELECT count(*) FROM test.other").unwrap_or(ROWS),
                ROWS,
                "{name}"
            );
        }
    }
    server.stop().unwrap();
}
