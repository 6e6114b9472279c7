//! Statements whose counts and errors applications use, on FronDB and on InnoDB: REPLACE and
//! similar statements with the numbers of rows that they report, and copies of tables with dates
//! that a strict session cannot write.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use frondb_mariadb_harness::{Client, Error, Options, Server};

fn server(name: &str) -> (Server, Client) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options::new().plugin_from_environment();
    let server = Server::start_fresh(&folder, options).unwrap();
    let client = server.connect_to("test").unwrap();
    (server, client)
}

/// The outcome of a statement as text.
fn outcome(client: &mut Client, sql: &str) -> String {
    match client.query(sql) {
        Ok(reply) => {
            let rows: Vec<String> = reply
                .rows
                .iter()
                .flatten()
                .map(|value| String::from_utf8_lossy(value.as_deref().unwrap_or(b"NULL")).into())
                .collect();
            format!(
                "{} affected, {} warnings, {} [{}]",
                reply.affected,
                reply.warnings,
                reply.info,
                rows.join(" ")
            )
        }
        Err(Error::Server { code, message, .. }) => format!("{code}: {message}"),
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// Runs a statement on both engines, with `{t}` replaced by the table; the outcomes must be equal.
fn same(client: &mut Client, sql: &str) -> String {
    let ours = outcome(client, &sql.replace("{t}", "ours"));
    let theirs = outcome(client, &sql.replace("{t}", "theirs")).replace("theirs", "ours");
    assert_eq!(ours, theirs, "{sql}");
    ours
}

fn is_error(outcome: &str) -> bool {
    outcome.split_once(':').is_some_and(|(code, _)| code.parse::<u16>().is_ok())
}

/// Whether both outcomes are successes or have the same error number. `by_text`: also compares the
/// texts of the errors; for statements in which both engines reach the same wrong value first.
fn are_alike(ours: &str, theirs: &str, by_text: bool) -> bool {
    if !is_error(ours) && !is_error(theirs) {
        return true;
    }
    if by_text {
        ours == theirs
    } else {
        ours.split_once(':').map(|(code, _)| code) == theirs.split_once(':').map(|(code, _)| code)
    }
}

fn make(client: &mut Client, definition: &str) {
    for (table, engine) in [("ours", "FronDB"), ("theirs", "InnoDB")] {
        client.run([format!("DROP TABLE IF EXISTS {table}")]).unwrap();
        client.run([format!("CREATE TABLE {table} ({definition}) ENGINE={engine}")]).unwrap();
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn replace_and_its_like_count_rows_as_innodb_does() {
    let (mut server, mut client) = server("strict-counts");
    let file = server.data().join("test/rows.csv");
    std::fs::write(&file, "1,x,2,2.5,text\n2,y,\\N,\\N,\\N\n").unwrap();
    for keys in ["", ", KEY (c)", ", UNIQUE KEY (b)", ", UNIQUE KEY (b), KEY (d, c)"] {
        for columns in [
            "c INT, d DECIMAL(5,2), e TEXT",
            "c BIT(3), d DOUBLE, e BLOB, f INT AS (a + 1) VIRTUAL, g INT AS (a) STORED",
        ] {
            make(&mut client, &format!("a INT PRIMARY KEY, b CHAR(3) NOT NULL, {columns}{keys}"));
            let names = "(a, b, c, d, e)";
            for values in [
                "(1, 'x', 2, 2.5, 'text')",
                "(1, 'x', 2, 2.5, 'text')",
                "(1, 'X', 2, 2.5, 'text')",
                "(1, 'X', 2, 2.5, 'texts')",
                "(1, 'X', 2, 2.5, NULL)",
                "(1, 'X', 2, 2.5, NULL)",
                "(1, 'X', 2, 2.5, '')",
                "(1, 'X', 3, 2.5, ''), (1, 'X', 3, 2.5, '')",
                "(2, 'y', NULL, NULL, NULL), (1, 'X', 3, 2.5, '')",
                "(3, 'y', 0, 0, 'other')",
            ] {
                same(&mut client, &format!("REPLACE INTO {{t}} {names} VALUES {values}"));
                let update = format!(
                    "INSERT INTO {{t}} {names} VALUES {values} ON DUPLICATE KEY UPDATE e = VALUES(e)"
                );
                same(&mut client, &update);
                same(&mut client, "SELECT * FROM {t} ORDER BY a");
            }
            same(
                &mut client,
                &format!("REPLACE INTO {{t}} {names} SELECT a, b, c, d, e FROM theirs"),
            );
            for _ in 0..2 {
                let load = format!(
                    "LOAD DATA INFILE '{}' REPLACE INTO TABLE {{t}} FIELDS TERMINATED BY ',' {names}",
                    file.display()
                );
                same(&mut client, &load);
            }
            same(&mut client, "UPDATE {t} SET e = e");
            same(&mut client, "SELECT * FROM {t} ORDER BY a");
        }
    }
    make(
        &mut client,
        "a INT PRIMARY KEY, b INT, t TIMESTAMP(6) DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP(6)",
    );
    for _ in 0..2 {
        same(&mut client, "REPLACE INTO {t} (a, b) VALUES (1, 1)");
    }
    server.stop().unwrap();
}

/// Changes for which InnoDB may or may not copy the table. Both engines must answer alike.
const ALIKE: [&str; 40] = [
    "OPTIMIZE TABLE {t}",
    "ALTER TABLE {t} FORCE",
    "ALTER TABLE {t} ENGINE = {e}",
    "ALTER TABLE {t} ADD PRIMARY KEY (b)",
    "ALTER TABLE {t} DROP KEY d, DROP COLUMN g, DROP COLUMN d",
    "ALTER TABLE {t} ADD COLUMN z INT DEFAULT 7, ADD KEY (n)",
    "ALTER TABLE {t} ADD COLUMN z INT DEFAULT (3 + 4), ADD KEY (n)",
    "ALTER TABLE {t} ADD COLUMN z INT FIRST",
    "ALTER TABLE {t} MODIFY i TIME FIRST",
    "ALTER TABLE {t} ADD KEY (t, s)",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT '0000-00-00'",
    "ALTER TABLE {t} ADD COLUMN z DATE NOT NULL",
    "ALTER TABLE {t} ADD COLUMN z DATE NOT NULL, FORCE",
    "ALTER TABLE {t} MODIFY t DATE NOT NULL",
    "ALTER TABLE {t} MODIFY t DATETIME(3), FORCE",
    "ALTER TABLE {t} MODIFY d DATETIME",
    "ALTER TABLE {t} MODIFY n DATE",
    "ALTER TABLE {t} MODIFY b BIGINT NOT NULL",
    "ALTER TABLE {t} MODIFY n VARCHAR(300) CHARSET utf8mb4",
    "ALTER TABLE {t} MODIFY n ENUM('0000-00-00', '2023-02-30')",
    "ALTER TABLE {t} CONVERT TO CHARSET utf8mb4",
    "ALTER TABLE {t} ADD CHECK (a < 10)",
    "ALTER TABLE {t} ALGORITHM = COPY, FORCE",
    // These changes compute values, which this strict session itself writes.
    "ALTER TABLE {t} ADD COLUMN z DATE AS (n) STORED",
    "ALTER TABLE {t} ADD COLUMN z DATE AS (d) STORED",
    "ALTER TABLE {t} ADD COLUMN z DATETIME AS (n) STORED FIRST, FORCE",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT (n)",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT (n), ADD KEY (n)",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT ('0000-00-00'), ADD KEY (n)",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT (0), FORCE",
    "ALTER TABLE {t} ADD COLUMN z DATE DEFAULT (CURRENT_DATE), FORCE",
    "ALTER TABLE {t} ADD COLUMN z VARCHAR(20) AS (cast(n AS DATE)) STORED",
    "ALTER TABLE {t} ADD COLUMN z VARCHAR(20) DEFAULT (cast(n AS DATE)), FORCE",
    "ALTER TABLE {t} MODIFY n ENUM('0000-00-00', '2023-02-30'), ADD COLUMN z DATE AS (n) STORED",
    "ALTER TABLE {t} MODIFY g DATE AS (n) STORED",
    "ALTER TABLE {t} MODIFY g VARCHAR(20) AS (cast(n AS DATE)) STORED",
    "ALTER TABLE {t} MODIFY g DATE, FORCE",
    "ALTER TABLE {t} MODIFY d DATE AS (n) STORED",
    "ALTER TABLE {t} ADD COLUMN z DATE AS (n) VIRTUAL",
    "ALTER TABLE {t} ADD COLUMN z DATE AS (n) VIRTUAL, ADD KEY (z)",
];

/// Changes of a table with a primary key, for the same comparison.
const ALIKE_WITH_KEY: [&str; 5] = [
    "ALTER TABLE {t} DROP PRIMARY KEY",
    "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (b, a)",
    "ALTER TABLE {t} MODIFY a BIGINT",
    "ALTER TABLE {t} DROP COLUMN y, ADD UNIQUE KEY (b)",
    "ALTER TABLE {t} MODIFY s TIMESTAMP(2) NULL DEFAULT NULL, FORCE",
];

/// Changes of a table with virtual columns, for the same comparison.
const ALIKE_WITH_VIRTUAL: [&str; 6] = [
    "ALTER TABLE {t} ADD KEY (v)",
    "ALTER TABLE {t} ADD UNIQUE KEY (v, w), ADD KEY (t)",
    "ALTER TABLE {t} ADD COLUMN z INT AS (a + 1) VIRTUAL, ADD KEY (z)",
    "ALTER TABLE {t} ADD KEY (v), MODIFY n DATE",
    "ALTER TABLE {t} ADD KEY (v, x)",
    "ALTER TABLE {t} DROP COLUMN v, ADD KEY (w)",
];

/// Changes for which InnoDB copies a table with virtual columns and then refuses its dates.
/// `FronDB` rewrites the rows in place, or only reads them, and keeps the dates.
const IN_PLACE: [&str; 3] = [
    "ALTER TABLE {t} MODIFY y YEAR NOT NULL",
    "ALTER TABLE {t} ADD COLUMN z DATE AS (n) VIRTUAL, FORCE",
    "ALTER TABLE {t} ADD COLUMN z INT AS (a + 1) VIRTUAL, FORCE",
];

const VIRTUAL: &str =
    "v INT AS (a * 2) VIRTUAL, w INT AS (year(t)) VIRTUAL, x DATE AS (t) VIRTUAL, KEY (a)";

/// A session that writes dates without checks, and a session that is as strict as possible.
const LAX: &str = "SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'";
const STRICT: &str = "SET sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'";

/// Creates tables with dates of all kinds.
fn make_with_dates(client: &mut Client, key: &str) {
    client.run([LAX]).unwrap();
    let definition = "a INT, b INT NOT NULL, d DATE, t DATETIME(3) NOT NULL, s TIMESTAMP(2) NOT NULL DEFAULT NOW(2), \
                      y YEAR, i TIME, n VARCHAR(300), g DATE AS (d) STORED, KEY (d)";
    make(client, &format!("{definition}, {key}"));
    let zero = "'0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', 0, '0:0', '0000-00-00'";
    let wrong = "'2023-02-31', '2023-00-01 10:11:12.123', '2023-02-03 04:05:06.78', 2023, '1:2', '2023-02-30'";
    let values = format!("(1, 1, {zero}), (2, 2, {wrong})");
    same(client, &format!("INSERT INTO {{t}} (a, b, d, t, s, y, i, n) VALUES {values}"));
}

/// Runs an ALTER on both tables in a strict session; returns both outcomes.
fn alter_both(client: &mut Client, alter: &str) -> [String; 2] {
    client.run([STRICT]).unwrap();
    let done = [("ours", "FronDB"), ("theirs", "InnoDB")].map(|(table, engine)| {
        let sql = alter.replace("{t}", table).replace("{e}", engine);
        outcome(client, &sql).replace("theirs", "ours")
    });
    // The session must still have its mode.
    let mode = client.value("SELECT @@sql_mode").unwrap();
    assert!(mode.contains("NO_ZERO_DATE") && mode.contains("NO_ZERO_IN_DATE"), "{alter}: {mode}");
    client.run([LAX]).unwrap();
    done
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn dates_that_are_stored_stay_where_innodb_keeps_them_and_no_new_ones_are_written() {
    let (mut server, mut client) = server("strict-dates");
    let mut wrong = Vec::new();
    let plain = ALIKE.iter().map(|&alter| (alter, "KEY (a)"));
    let keyed = ALIKE_WITH_KEY.iter().map(|&alter| (alter, "PRIMARY KEY (a)"));
    let computed = ALIKE_WITH_VIRTUAL.iter().map(|&alter| (alter, VIRTUAL));
    for (alter, key) in plain.chain(keyed).chain(computed) {
        make_with_dates(&mut client, key);
        let [ours, theirs] = alter_both(&mut client, alter);
        // OPTIMIZE returns rows even if it fails.
        let answers = alter.starts_with("OPTIMIZE");
        assert!(!answers || ours.ends_with("status OK]"), "{ours}");
        // The engines differ in how many rows they copy, but not in their errors. InnoDB builds the
        // index of a virtual column first, so then the error may be about another value.
        if !are_alike(&ours, &theirs, !alter.contains("VIRTUAL, ADD KEY") && key != VIRTUAL) {
            wrong.push(format!("{alter}\n  {ours}\n  InnoDB: {theirs}"));
            continue;
        }
        let [ours, theirs] = ["ours", "theirs"]
            .map(|table| outcome(&mut client, &format!("SELECT * FROM {table} ORDER BY a")));
        if ours != theirs {
            wrong.push(format!("{alter}\n  {ours}\n  InnoDB: {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    for alter in IN_PLACE {
        make_with_dates(&mut client, VIRTUAL);
        let stored = "SELECT a, b, d, t, s, y, i, n, v FROM ours ORDER BY a";
        let before = outcome(&mut client, stored);
        let [ours, theirs] = alter_both(&mut client, alter);
        assert!(ours.starts_with("0 affected"), "{alter}: {ours}");
        assert!(theirs.starts_with("1292"), "InnoDB does not copy for {alter} any more: {theirs}");
        assert_eq!(outcome(&mut client, stored), before, "{alter}");
    }
    server.stop().unwrap();
}
