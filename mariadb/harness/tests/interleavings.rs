//! Scripts of two transactions at all isolation levels, on FronDB and InnoDB in one server. Each
//! step has the same outcome on both engines, or the difference is in
//! src/interleavings/differences.md with a reason that mariadb/docs/interleavings.md explains.
//! `REWRITE=1` rewrites the rows of the table in differences.md.

use std::path::Path;

use frondb_mariadb_harness::{Options, Server, interleavings};

#[test]
#[ignore = "needs a server: make test-mariadb"]
fn steps_of_two_transactions_match_innodb() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interleavings");
    // The binary log has statements as text where the engines allow that format.
    let options = Options::new()
        .plugin_from_environment()
        .set("innodb-flush-log-at-trx-commit=0")
        .set("log-bin=log")
        .set("binlog-format=MIXED")
        .set("log-bin-trust-function-creators=ON");
    let mut server = Server::start_fresh(&folder, options).unwrap();
    let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = harness.join("src/interleavings/differences.md");
    let page = harness.join("../docs/interleavings.md");
    let rewrite = std::env::var_os("REWRITE").is_some();
    let count = interleavings::run(&server, &known, &page, rewrite);
    let count = count.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(count, 225, "45 scripts at 5 levels");
    server.stop().unwrap();
}
