//! Changes that rewrite the rows, read all of them or add columns, while others write.
//!
//! Triggers repeat each write in a table that is never altered.

use std::path::Path;

use frondb_core::prng::Prng;
use frondb_mariadb_harness::{Client, Options, Server};

use crate::writers::{ROWS, seed, write_beside};

const CHANGES: usize = 24;

const TRIGGERS: [&str; 3] = [
    "CREATE TRIGGER i AFTER INSERT ON t FOR EACH ROW \
     INSERT INTO m VALUES (new.id, new.a, new.u, new.v, new.w)",
    "CREATE TRIGGER d AFTER DELETE ON t FOR EACH ROW \
     DELETE FROM m WHERE id = old.id AND a = old.a",
    "CREATE TRIGGER c AFTER UPDATE ON t FOR EACH ROW \
     UPDATE m SET id = new.id, a = new.a, u = new.u, v = new.v, w = new.w \
     WHERE id = old.id AND a = old.a",
];

/// The state of the table after the changes so far.
#[derive(Clone, Default)]
struct Table {
    is_wide_key: bool,
    has_virtual: bool,
    has_unique: bool,
    has_extra: bool,
    length: u32,
}

/// Draws one change; returns its statement and the table's state after it.
fn change(prng: &mut Prng, table: &Table) -> (String, Table) {
    let mut after = table.clone();
    let sql = match prng.below(8) {
        0 => "FORCE".to_owned(),
        1 => format!("COMPRESSION={}", ["lz4", "zstd", "none"][prng.index(3)]),
        2 => {
            after.is_wide_key = !table.is_wide_key;
            let key = if after.is_wide_key { "a, id" } else { "id" };
            format!("DROP PRIMARY KEY, ADD PRIMARY KEY ({key})")
        }
        3 => {
            after.length += 120;
            format!("MODIFY v VARCHAR({})", after.length)
        }
        4 => {
            after.has_virtual = !table.has_virtual;
            let add = "ADD g INT AS (a + coalesce(u, 0)) VIRTUAL, ADD KEY kg (g, v(3))";
            if after.has_virtual { add } else { "DROP KEY kg, DROP g" }.to_owned()
        }
        5 => {
            after.has_extra = !table.has_extra;
            let add = "ADD x INT NOT NULL DEFAULT 7 FIRST, ADD KEY kx (x, a), ADD KEY ka (a)";
            // Drop key kx too: without column x it would stay as a new index of column a.
            if after.has_extra { add } else { "DROP KEY ka, DROP x, DROP KEY kx" }.to_owned()
        }
        6 => {
            after.has_unique = !table.has_unique;
            if after.has_unique { "ADD UNIQUE KEY ku (u)" } else { "DROP KEY ku" }.to_owned()
        }
        _ => {
            let null = if table.is_wide_key || prng.chance(1, 2) { "NOT NULL" } else { "NULL" };
            format!("MODIFY a INT {null}, MODIFY w TEXT AFTER id")
        }
    };
    (format!("ALTER TABLE t {sql}, ALGORITHM=INPLACE, LOCK=NONE"), after)
}

fn sums(client: &mut Client, table: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let sql = format!(
        "SELECT count(*), coalesce(sum(crc32(concat_ws(',', id, a, ifnull(u, 'null'), v, w))), 0) \
         FROM {table}"
    );
    client.query(sql).unwrap().rows
}

fn check(client: &mut Client, sql: &str) {
    client.query("LOCK TABLES t WRITE, m WRITE").unwrap();
    assert_eq!(sums(client, "t"), sums(client, "m"), "after {sql}");
    let checked = client.query("CHECK TABLE t EXTENDED").unwrap().rows;
    let last = checked.last().and_then(|row| row[3].clone()).unwrap();
    assert_eq!(String::from_utf8_lossy(&last), "OK", "after {sql}: {checked:?}");
    client.query("UNLOCK TABLES").unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_table_is_rebuilt_beside_writers() {
    let mut prng = Prng::new(seed());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("online-rebuild");
    let options = Options::new().plugin_from_environment().set("frondb-memory=64M");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let mut client = server.connect_to("test").unwrap();
    let columns = "id INT, a INT, u INT, v VARCHAR(30), w TEXT";
    client.query(format!("CREATE TABLE t ({columns}, PRIMARY KEY (id)) ENGINE=FronDB")).unwrap();
    client.query(format!("CREATE TABLE m ({columns}, PRIMARY KEY (id, a)) ENGINE=FronDB")).unwrap();
    client.run(TRIGGERS).unwrap();
    client
        .query(format!(
            "INSERT INTO t SELECT seq, seq % 97, seq, concat('v', seq % 1000), repeat('w', 50) \
             FROM seq_1_to_{ROWS}"
        ))
        .unwrap();
    let mut table = Table { length: 30, ..Table::default() };
    write_beside(&server, Prng::new(prng.next_u64()), move || {
        for _ in 0..CHANGES {
            let (sql, after) = change(&mut prng, &table);
            match client.query(&sql) {
                Ok(_) => table = after,
                // Two rows have the same new key; then nothing has changed.
                Err(error) => assert_eq!(error.code(), Some(1062), "{sql}: {error}"),
            }
            check(&mut client, &sql);
        }
    });
    server.stop().unwrap();
}
