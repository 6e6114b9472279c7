//! Connections that write random rows of the table `t (id, a, u, v, w)`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use frondb_core::prng::Prng;
use frondb_mariadb_harness::{Client, Server};

pub(crate) const ROWS: u64 = 10_000;
const WRITERS: u64 = 3;
/// Errors that writers may get: a duplicate key, a deadlock, a lock timeout.
const OF_WRITERS: [u16; 3] = [1062, 1213, 1205];

pub(crate) fn seed() -> u64 {
    let given = std::env::var("FRONDB_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("FRONDB_TEST_SEED={seed}");
    seed
}

/// Draws one statement of a writer.
fn statement(prng: &mut Prng) -> String {
    let id = prng.range(1..ROWS * 3 / 2);
    let (a, v) = (prng.below(100), prng.below(1000));
    match prng.below(10) {
        0..=2 => {
            let u = if prng.chance(9, 10) { id } else { prng.range(1..ROWS * 2) };
            let w = "w".repeat(prng.index(60));
            format!("INSERT INTO t (id, a, u, v, w) VALUES ({id}, {a}, {u}, 'v{v}', '{w}')")
        }
        3 | 4 => format!("UPDATE t SET a = {a}, v = 'v{v}' WHERE id = {id}"),
        5 => format!("UPDATE t SET u = {} WHERE id = {id}", prng.range(1..ROWS * 2)),
        6 => format!("UPDATE t SET id = {} WHERE id = {id}", prng.range(1..ROWS * 3 / 2)),
        7 => format!(
            "UPDATE t SET w = repeat('x', {a}), u = NULL WHERE id BETWEEN {id} AND {}",
            id + 3
        ),
        _ => format!("DELETE FROM t WHERE id = {id}"),
    }
}

fn write(mut client: Client, mut prng: Prng, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        client.query("BEGIN").unwrap();
        let mut error = None;
        for _ in 0..prng.range(1..6) {
            error = client.query(statement(&mut prng)).err();
            // A deadlock has rolled back the whole transaction.
            if error.as_ref().is_some_and(|error| error.code() == Some(1213)) {
                break;
            }
            if let Some(error) = &error {
                assert!(error.code().is_some_and(|code| OF_WRITERS.contains(&code)), "{error}");
            }
        }
        let undoes = error.is_some() || prng.chance(1, 5);
        client.query(if undoes { "ROLLBACK" } else { "COMMIT" }).unwrap();
    }
}

/// Calls `change` while writers run.
pub(crate) fn write_beside(server: &Server, mut prng: Prng, change: impl FnOnce()) {
    let ends = AtomicBool::new(false);
    thread::scope(|threads| {
        for _ in 0..WRITERS {
            let (client, prng) = (server.connect_to("test").unwrap(), Prng::new(prng.next_u64()));
            let ends = &ends;
            threads.spawn(move || write(client, prng, ends));
        }
        // Stop the writers even if a check in `change` fails; otherwise the scope would wait for
        // them forever.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
        ends.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
