//! The harness itself: a server comes up with the plugin, is killed, and has its rows afterwards.

use frondb_mariadb_harness::{Error, Options, Server};

fn folder(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn rows_survive_a_kill_and_a_restart() {
    let options = Options::new().plugin_from_environment();
    let mut server = Server::start_fresh(&folder("server"), options.clone()).unwrap();
    let mut client = server.connect_to("test").unwrap();
    client.run(["CREATE TABLE t (a INT PRIMARY KEY, b TEXT) ENGINE=FronDB"]).unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES (1,'x'),(2,NULL)").unwrap().affected, 2);
    let twice = client.query("INSERT INTO t VALUES (1,'y')").unwrap_err();
    assert_eq!(twice.code(), Some(1062));
    server.kill().unwrap();
    assert!(matches!(client.query("SELECT 1"), Err(Error::Lost(_))));
    server.start().unwrap();
    let mut client = server.connect_to("test").unwrap();
    let reply = client.query("SELECT a,b FROM t ORDER BY a").unwrap();
    assert_eq!(
        reply.rows,
        [[Some(b"1".to_vec()), Some(b"x".to_vec())], [Some(b"2".to_vec()), None]]
    );
    server.restart_with(options.set("frondb-memory=64M")).unwrap();
    let mut client = server.connect_to("test").unwrap();
    assert_eq!(client.number("SELECT count(*) FROM t").unwrap(), 2);
    assert_eq!(client.number("SELECT @@frondb_memory").unwrap(), 64 << 20);
    server.stop().unwrap();
}

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn a_server_that_cannot_start_shows_its_log() {
    let options = Options::new().plugin_from_environment().set("no-such-variable=1");
    let error = Server::start_fresh(&folder("refused"), options).unwrap_err();
    assert!(error.to_string().contains("no-such-variable"), "{error}");
}
