//! An event log: events of many streams in the order of their numbers, and readers that continue
//! where they stopped, also after a restart.
//!
//! `cargo run --release -p frondb --example event_log`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use frondb::tuple::{Tuple, decode_as, prefix_end};
use frondb::{Db, Error, Options, Result, TransactionOptions, Tree, TreeOptions, Wait};

struct Log {
    db: Db,
    /// (stream, number) -> event
    events: Tree,
    /// stream -> number of the next event
    heads: Tree,
    /// (reader, stream) -> number of the next event to read
    positions: Tree,
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

impl Log {
    fn open(path: &std::path::Path) -> Result<Self> {
        let db = Db::open(path, Options::default())?;
        let tree = |name| db.open_or_create_tree(name, TreeOptions::new());
        let (events, heads, positions) = (tree("events")?, tree("heads")?, tree("positions")?);
        Ok(Self { db, events, heads, positions })
    }

    /// Appends events to a stream, all or none, and returns the number of the first. The lock on
    /// the head of the stream keeps other writers of the stream waiting, so no number is missing.
    fn append(&self, stream: &str, events: &[String]) -> Result<u64> {
        let txn = self.db.begin(TransactionOptions::new())?;
        let first = number(txn.get_for_update(&self.heads, stream, Wait::Timeout)?);
        let mut next = first;
        for event in events {
            txn.put(&self.events, Tuple::new().with(stream).with(next), event)?;
            next += 1;
        }
        txn.put(&self.heads, stream, next.to_be_bytes())?;
        txn.commit()?;
        Ok(first)
    }

    /// Returns up to `most` events of a stream that the reader has not confirmed, with their
    /// numbers.
    fn unread(&self, reader: &str, stream: &str, most: usize) -> Result<Vec<(u64, String)>> {
        let position = number(self.positions.get(Tuple::new().with(reader).with(stream))?);
        let from = Tuple::new().with(stream).with(position).into_bytes();
        let to = prefix_end(Tuple::new().with(stream).as_bytes()).unwrap_or_default();
        let events = self.events.range(from..to)?.take(most).map(|entry| {
            let (key, event) = entry?;
            let (_stream, number): (String, u64) = decode_as(&key)?;
            Ok::<_, Error>((number, String::from_utf8_lossy(&event).into_owned()))
        });
        events.collect()
    }

    /// Confirms that the reader has processed all events up to `last`.
    fn confirm(&self, reader: &str, stream: &str, last: u64) -> Result<()> {
        self.positions.put(Tuple::new().with(reader).with(stream), (last + 1).to_be_bytes())
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("frondb-event-log-{}", std::process::id()));
    let log = Log::open(&path)?;
    // Four writers at the same time.
    std::thread::scope(|scope| {
        let write = |writer: u64| {
            for n in 0..5 {
                let events: Vec<String> = (0..10).map(|i| format!("{writer} {n} {i}")).collect();
                log.append("orders", &events)?;
            }
            log.append("payments", &[format!("paid by {writer}")])
        };
        let writers: Vec<_> = (0..4).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().try_for_each(|it| it.join().expect("a writer panicked").map(drop))
    })?;

    let first = log.unread("mailer", "orders", 150)?;
    assert!((0..150).eq(first.iter().map(|(number, _)| *number)), "no number is missing");
    log.confirm("mailer", "orders", 149)?;
    log.db.close()?;

    let log = Log::open(&path)?;
    let rest = log.unread("mailer", "orders", 1_000)?;
    assert!((150..200).eq(rest.iter().map(|(number, _)| *number)), "continues where it stopped");
    assert_eq!(log.unread("archive", "payments", 1_000)?.len(), 4, "readers are independent");
    println!("{} and {} events read", first.len(), rest.len());
    log.db.close()?;
    std::fs::remove_dir_all(&path).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
