//! A node of a Galera cluster refuses FronDB tables: otherwise all nodes would have their
//! definitions, but only this node their rows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use frondb_mariadb_harness::{Options, Server, free_port};

/// The provider, from Debian's package `galera-4`, on which the server package depends.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
/// Longest time for a node to form a new cluster.
const TIMEOUT: Duration = Duration::from_secs(60);
const ER_GALERA_REPLICATION_NOT_SUPPORTED: u16 = 4165;

/// Options of a cluster with one node.
fn cluster(port: u16) -> Options {
    let listens = format!("gmcast.listen_addr=tcp://127.0.0.1:{port};base_port={port}");
    Options::new().plugin_from_environment().set_all([
        "wsrep-on=ON".to_owned(),
        format!("wsrep-provider={PROVIDER}"),
        format!("wsrep-provider-options={listens}"),
        "wsrep-cluster-address=gcomm://".to_owned(),
        "wsrep-node-address=127.0.0.1".to_owned(),
        "binlog-format=ROW".to_owned(),
        "innodb-autoinc-lock-mode=2".to_owned(),
    ])
}

/// Waits until the node has joined its cluster; it answers earlier.
fn wait_until_ready(server: &Server) {
    let mut client = server.connect().unwrap();
    let begin = Instant::now();
    loop {
        let status = client.query("SHOW STATUS LIKE 'wsrep_ready'").unwrap();
        if status.rows[0][1].as_deref() == Some(b"ON") {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "{}", server.log().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_cluster_node_refuses_tables_whose_rows_are_not_replicated() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("galera");
    let mut server = Server::start_fresh(&folder, cluster(free_port().unwrap())).unwrap();
    wait_until_ready(&server);
    let mut client = server.connect_to("test").unwrap();
    client.run(["CREATE TABLE theirs (a INT PRIMARY KEY) ENGINE=InnoDB"]).unwrap();
    for sql in [
        "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=FronDB",
        "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=FronDB PARTITION BY HASH (a) PARTITIONS 2",
        "CREATE TABLE t ENGINE=FronDB SELECT * FROM theirs",
        "ALTER TABLE theirs ENGINE=FronDB",
    ] {
        let error = client.query(sql).unwrap_err();
        assert_eq!(error.code(), Some(ER_GALERA_REPLICATION_NOT_SUPPORTED), "{sql}: {error}");
    }
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'test'";
    assert_eq!(client.number(tables).unwrap(), 1);

    client
        .run([
            "CREATE TEMPORARY TABLE own (a INT PRIMARY KEY) ENGINE=FronDB",
            "INSERT INTO own VALUES (1)",
            "SET SESSION wsrep_on=OFF",
            "CREATE TABLE local (a INT PRIMARY KEY, b INT) ENGINE=FronDB",
            "SET SESSION wsrep_on=ON",
            // A table that existed before can still be used and changed.
            "INSERT INTO local VALUES (1, 10), (2, 20)",
            "ALTER TABLE local ADD KEY (b)",
            "ALTER TABLE local MODIFY b BIGINT",
            "OPTIMIZE TABLE local",
        ])
        .unwrap();
    assert_eq!(client.number("SELECT sum(b) FROM local").unwrap(), 30);

    // Without a provider, wsrep-on has no effect.
    server.restart_with(Options::new().plugin_from_environment().set("wsrep-on=ON")).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client.run(["CREATE TABLE t (a INT PRIMARY KEY) ENGINE=FronDB"]).unwrap();
    server.stop().unwrap();
}
