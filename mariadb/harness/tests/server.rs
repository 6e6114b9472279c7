//! Tests the harness itself: a server starts with the plugin, is killed, and has its rows after a
//! restart.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

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
    client.allow_several_statements().unwrap();
    let replies =
        client.query_all("SELECT a FROM t; UPDATE t SET b = 'z'; SELECT b FROM t").unwrap();
    let sizes: Vec<usize> = replies.iter().map(|reply| reply.rows.len()).collect();
    assert_eq!((sizes, replies[1].affected), (vec![2, 0, 2], 2));
    assert_eq!(client.query_all("SELECT 1; SELECT no; SELECT 2").unwrap_err().code(), Some(1054));
    assert_eq!(client.number("SELECT 3").unwrap(), 3);
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

/// The modes of all files, and of all folders, below a folder.
fn modes(dir: &std::path::Path) -> (Vec<u32>, Vec<u32>) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let (mut files, mut folders) = (Vec::new(), vec![mode(dir)]);
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let (more, below) = modes(&path);
            files.extend(more);
            folders.extend(below);
        } else {
            files.push(mode(&path));
        }
    }
    (files, folders)
}

/// The engine's files have the same modes as the server's files.
#[test]
#[ignore = "needs a server: make test-mariadb"]
fn files_have_the_modes_of_the_server() {
    for (environment, file, folder_mode) in
        [(&[][..], 0o660, 0o700), (&[("UMASK", "0600"), ("UMASK_DIR", "0750")], 0o600, 0o750)]
    {
        let mut options = Options::new().plugin_from_environment();
        for (name, value) in environment {
            options = options.environment(name, value);
        }
        let mut server = Server::start_fresh(&folder("modes"), options).unwrap();
        let mut client = server.connect_to("test").unwrap();
        client
            .run([
                "CREATE TABLE t (a INT) ENGINE=FronDB",
                "INSERT INTO t SELECT seq FROM seq_1_to_50000",
            ])
            .unwrap();
        let (files, folders) = modes(&server.data().join("#sql-frondb"));
        assert!(files.len() > 5, "{files:?}");
        assert!(files.iter().all(|mode| *mode == file), "{files:?}");
        assert!(folders.iter().all(|mode| *mode == folder_mode), "{folders:?}");
        server.stop().unwrap();
    }
}
