//! Script tests of several transactions at a time, each in its own thread. The output of a script
//! does not depend on time: a call returns an answer, or it is found to wait for a lock.
//! `REWRITE=1` rewrites the outputs.
//!
//! A case is `new` (an empty database; `key=value` words are its rows) or `run`, whose lines are
//! `name: command`. A line that waits shows `waits`; `name: wait` shows its answer. Commands:
//! `begin LEVEL` (`ru`, `rc`, `rr`, `si`, `ser`), `statement`, `snapshot`, `get`, `update`
//! (get-for-update), `share`, `multi`, `exists`, `put`, `insert`, `insert-or-share` (`held`: the
//! transaction had an exclusive lock of the row before), `release-undone`, `delete`,
//! `delete-range`, `append` (the update function),
//! `scan [from to] [update|share [entries]] [nowait|skip|show] [backward] [limit=n] [unlock]`
//! (`show` marks an entry that it has not locked with `?`), `lock-range share|update lo [hi]`,
//! `release-key`, `savepoint`, `rollback-to`, `release`, `prepare`, `commit`, `rollback`, `cancel`.
//!
//! Some names have commands of their own: `batch: put|delete|delete-range ...` writes a plain
//! batch; `build: snapshot [now]` shows what an index build would read; `prepared: list` and
//! `prepared: commit|rollback xid` handle prepared transactions; `db: checkpoint|reopen`;
//! `flush: now`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use datadriven::{TestCase, walk};
use frondb::{
    Batch, Canceller, CursorOptions, Db, Durability, Isolation, LockMode, Result, Savepoint,
    Transaction, TransactionCursorOptions, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_testkit::MemoryDevice;

use crate::support;

/// A thread that runs one transaction after another.
struct Session {
    commands: Sender<String>,
    answers: Receiver<String>,
    /// The id under which a command waits, or waited when it was last looked at.
    waits: Option<u64>,
    /// The answer of a command that waited, until the script asks for it.
    answer: Option<String>,
}

impl Session {
    /// Whether a command that waited has answered.
    fn has_answered(&mut self) -> bool {
        if self.answer.is_none() {
            self.answer = self.answers.try_recv().ok();
        }
        self.answer.is_some()
    }

    fn wait(&mut self) -> String {
        self.waits = None;
        self.answer.take().unwrap_or_else(|| self.answers.recv().unwrap())
    }
}

struct World {
    device: Arc<MemoryDevice>,
    db: Db,
    tree: Tree,
    sessions: BTreeMap<String, Session>,
    /// The transaction id and the canceller of each session.
    handles: Arc<frondb_core::sync::Mutex<BTreeMap<String, (u64, Canceller)>>>,
}

fn world(rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> World {
    let device = Arc::new(MemoryDevice::new());
    let db = support::open_small(device.clone());
    let tree = db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap();
    let mut batch = Batch::new();
    rows.for_each(|(key, value)| batch.put(&tree, &key, &value));
    db.write(&batch, Durability::NoSync).unwrap();
    World { device, db, tree, sessions: BTreeMap::new(), handles: Arc::default() }
}

impl World {
    fn run(&mut self, case: &TestCase) -> String {
        let mut shown = String::new();
        for line in case.input.lines() {
            let (name, command) = line.split_once(": ").unwrap();
            let answer = self.line(name, command, &shown);
            shown.push_str(&format!("{name}: {answer}\n"));
        }
        shown
    }

    fn line(&mut self, name: &str, command: &str, shown: &str) -> String {
        match (name, command) {
            ("prepared", "list") => {
                let names = self.db.prepared();
                let names = names.into_iter().map(|name| String::from_utf8(name).unwrap());
                return format!("[{}]", names.collect::<Vec<_>>().join(" "));
            }
            ("prepared", _) => {
                let (what, xid) = command.split_once(' ').unwrap();
                let decided = match what {
                    "commit" => self.db.commit_prepared(xid.as_bytes(), Durability::NoSync),
                    _ => self.db.rollback_prepared(xid.as_bytes()),
                };
                return show(decided.map(|()| String::new()));
            }
            ("db", "checkpoint") => return show(self.db.checkpoint().map(|()| String::new())),
            ("db", "reopen") => return self.reopen(),
            ("flush", _) => return show(self.db.flush().map(|()| String::new())),
            (_, "cancel") => {
                self.handles.lock()[name].1.cancel();
                return "cancelled".into();
            }
            _ => {}
        }
        let (db, tree, handles) = (self.db.clone(), self.tree.clone(), Arc::clone(&self.handles));
        let session = self.sessions.entry(name.into()).or_insert_with(|| {
            let (commands, inbox) = channel::<String>();
            let (outbox, answers) = channel();
            let name = name.to_owned();
            std::thread::spawn(move || {
                let mut actor = Actor {
                    name,
                    db,
                    tree,
                    handles,
                    transaction: None,
                    savepoints: BTreeMap::new(),
                };
                for command in inbox {
                    let answer = actor.run(&command);
                    if outbox.send(answer).is_err() {
                        return;
                    }
                }
            });
            Session { commands, answers, waits: None, answer: None }
        });
        if command == "wait" {
            assert!(session.waits.is_some(), "{name} does not wait; so far: {shown}");
            return session.wait();
        }
        assert!(session.waits.is_none(), "{name} waits; so far: {shown}");
        let known: Vec<u64> = self.db.lock_waits().iter().map(|wait| wait.transaction).collect();
        session.commands.send(command.into()).unwrap();
        loop {
            match self.sessions[name].answers.recv_timeout(Duration::from_millis(1)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => panic!("{name} has ended"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(id) = self.wait_of(name, &known) {
                self.sessions.get_mut(name).unwrap().waits = Some(id);
                return "waits".into();
            }
        }
    }

    /// Returns the id under which the session waits for a lock, if it does, and if no call of
    /// another session is about to end: that could release the lock. `known` are the ids that
    /// waited before the session's command.
    fn wait_of(&mut self, name: &str, known: &[u64]) -> Option<u64> {
        // What has answered before the list is made has released its locks.
        let others = self.sessions.values_mut().filter(|session| session.waits.is_some());
        let running: Vec<u64> = others
            .filter_map(|other| if other.has_answered() { None } else { other.waits })
            .collect();
        let waiting: Vec<u64> = self.db.lock_waits().iter().map(|wait| wait.transaction).collect();
        if !running.iter().all(|id| waiting.contains(id)) {
            return None;
        }
        let handles = self.handles.lock();
        if let Some((id, _)) = handles.get(name) {
            return waiting.contains(id).then_some(*id);
        }
        // A plain batch or an index build waits under a transaction id that belongs to no session.
        // An id that already waited before the command belongs to another call, however late that
        // call answers.
        let is_session = |id: &u64| handles.values().any(|(other, _)| other == id);
        waiting.into_iter().find(|id| !is_session(id) && !known.contains(id))
    }

    /// Closes and reopens the database. Transactions that are not prepared are rolled back.
    fn reopen(&mut self) -> String {
        self.sessions.clear();
        self.handles.lock().clear();
        self.db.close().unwrap();
        self.db = support::open_small(self.device.clone());
        self.tree = self.db.open_tree("t").unwrap();
        "ok".into()
    }
}

struct Actor {
    name: String,
    db: Db,
    tree: Tree,
    handles: Arc<frondb_core::sync::Mutex<BTreeMap<String, (u64, Canceller)>>>,
    transaction: Option<Transaction>,
    savepoints: BTreeMap<String, Savepoint>,
}

fn show(result: Result<String>) -> String {
    match result {
        Ok(shown) if shown.is_empty() => "ok".into(),
        Ok(shown) => shown,
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn value(found: Option<Vec<u8>>) -> String {
    found.map_or_else(|| "none".into(), |value| String::from_utf8(value).unwrap())
}

impl Actor {
    fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split_whitespace().collect();
        show(self.command(&words))
    }

    fn command(&mut self, words: &[&str]) -> Result<String> {
        let word = |i: usize| words.get(i).map_or(&b""[..], |word| word.as_bytes());
        if self.name == "batch" {
            return self.batch(words);
        }
        if self.name == "build" {
            return self.build(words);
        }
        if words[0] == "begin" {
            return self.begin(words[1]);
        }
        let wait = if words.contains(&"nowait") {
            Wait::NoWait
        } else if words.contains(&"skip") {
            Wait::SkipLocked
        } else if words.contains(&"show") {
            Wait::ShowLocked
        } else {
            Wait::Timeout
        };
        let transaction = self.transaction.as_ref().unwrap();
        let tree = &self.tree;
        let nothing = |()| String::new();
        match words[0] {
            "statement" => transaction.begin_statement().map(nothing),
            "snapshot" => transaction.take_snapshot().map(nothing),
            "get" => transaction.get(tree, word(1)).map(value),
            "update" => transaction.get_for_update(tree, word(1), wait).map(value),
            "share" => transaction.get_for_share(tree, word(1), wait).map(value),
            "exists" => transaction.exists(tree, word(1)).map(|is| is.to_string()),
            "multi" => {
                let keys: Vec<&[u8]> = words[1..].iter().map(|key| key.as_bytes()).collect();
                let values = transaction.multi_get(tree, &keys)?;
                Ok(values.into_iter().map(value).collect::<Vec<_>>().join(" "))
            }
            "put" => transaction.put(tree, word(1), word(2)).map(nothing),
            "insert" => transaction.insert(tree, word(1), word(2)).map(nothing),
            "insert-or-share" => {
                let inserted = transaction.insert_or_share(tree, word(1), word(2));
                inserted.map(|is_new| if is_new { String::new() } else { "ok, held".into() })
            }
            "release-undone" => transaction.release_undone(tree, word(1)).map(nothing),
            "delete" => transaction.delete(tree, word(1)).map(nothing),
            "append" => transaction.update(tree, word(1), word(2)).map(nothing),
            "lock-range" => {
                let mode = if words[1] == "share" { LockMode::Shared } else { LockMode::Exclusive };
                let hi = words.get(3).filter(|hi| **hi != "nowait").map(|hi| hi.as_bytes());
                transaction.lock_range(tree, word(2), hi, mode, wait).map(nothing)
            }
            "release-key" => transaction.release_key(tree, word(1)).map(nothing),
            "delete-range" => {
                let hi = words.get(2).map(|hi| hi.as_bytes());
                transaction.delete_range(tree, word(1), hi).map(nothing)
            }
            "scan" => self.scan(words, wait),
            "savepoint" => {
                let savepoint = transaction.set_savepoint()?;
                self.savepoints.insert(words[1].into(), savepoint);
                Ok(String::new())
            }
            "rollback-to" => transaction.roll_back_to(self.savepoints[words[1]]).map(nothing),
            "release" => transaction.release(self.savepoints[words[1]]).map(nothing),
            "prepare" => transaction.prepare(word(1)).map(nothing),
            "commit" => transaction.commit().map(nothing),
            "rollback" => transaction.rollback().map(nothing),
            other => panic!("unknown command {other}"),
        }
    }

    fn begin(&mut self, level: &str) -> Result<String> {
        let isolation = match level {
            "ru" => Isolation::ReadUncommitted,
            "rc" => Isolation::ReadCommitted,
            "rr" | "si" => Isolation::RepeatableRead,
            "ser" => Isolation::Serializable,
            other => panic!("unknown level {other}"),
        };
        let options = TransactionOptions::new()
            .isolation(isolation)
            .snapshot_isolation(level == "si")
            .lock_timeout(Duration::from_secs(60))
            .durability(Durability::NoSync);
        let transaction = self.db.begin(options)?;
        let handle = (transaction.id(), transaction.canceller());
        self.handles.lock().insert(self.name.clone(), handle);
        self.transaction = Some(transaction);
        self.savepoints.clear();
        Ok(String::new())
    }

    fn scan(&self, words: &[&str], wait: Wait) -> Result<String> {
        let bounds: Vec<&[u8]> = words[1..]
            .iter()
            .take_while(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|word| word.as_bytes())
            .collect();
        let mut options = TransactionCursorOptions::new();
        options = match bounds[..] {
            [] => options,
            [from] => options.range(from..),
            [from, to, ..] => options.range(from..to),
        };
        if words.contains(&"update") {
            options = options.for_update(wait);
        } else if words.contains(&"share") {
            options = options.for_share(wait);
        }
        if words.contains(&"entries") {
            options = options.without_gaps();
        }
        let limit = words.iter().find_map(|word| word.strip_prefix("limit="));
        let limit: usize = limit.map_or(usize::MAX, |limit| limit.parse().unwrap());
        let backward = words.contains(&"backward");
        let mut cursor = self.transaction.as_ref().unwrap().cursor_with(&self.tree, options)?;
        let mut shown = Vec::new();
        while shown.len() < limit && if backward { cursor.prev()? } else { cursor.next()? } {
            let (key, value) = (cursor.key().to_vec(), cursor.value()?.to_vec());
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let mark = if wait == Wait::ShowLocked && !cursor.is_locked() { "?" } else { "" };
            shown.push(format!("{}={}{mark}", text(key), text(value)));
            if words.contains(&"unlock") {
                cursor.unlock()?;
            }
        }
        Ok(if shown.is_empty() { "empty".into() } else { shown.join(" ") })
    }

    /// Makes the snapshot of an index build; returns the rows that the snapshot sees. With `now`,
    /// does not wait for writers.
    fn build(&self, words: &[&str]) -> Result<String> {
        let timeout = match words {
            ["snapshot"] => Duration::from_secs(60),
            ["snapshot", "now"] => Duration::ZERO,
            _ => panic!("build: {words:?}"),
        };
        let snapshot = self.db.snapshot_behind_writers(&[&self.tree], timeout)?;
        let mut cursor = self.tree.cursor_with(CursorOptions::new().at(&snapshot))?;
        let mut shown = Vec::new();
        while cursor.next()? {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            shown.push(format!("{}={}", text(cursor.key()), text(cursor.value()?)));
        }
        Ok(if shown.is_empty() { "empty".into() } else { shown.join(" ") })
    }

    fn batch(&self, words: &[&str]) -> Result<String> {
        let mut batch = Batch::new();
        let key = words[1].as_bytes();
        match words[0] {
            "put" => batch.put(&self.tree, key, words[2].as_bytes()),
            "delete" => batch.delete(&self.tree, key),
            "delete-range" => {
                batch.delete_range(&self.tree, key, words.get(2).map(|hi| hi.as_bytes()));
            }
            other => panic!("unknown command {other}"),
        }
        self.db.write(&batch, Durability::NoSync).map(|()| String::new())
    }
}

#[test]
fn sessions_see_and_wait_as_the_scripts_say() {
    walk("tests/testdata/transaction", |file| {
        let mut world = world(std::iter::empty());
        file.run(|case| match case.directive.as_str() {
            "new" => {
                let rows = case.args.iter().map(|(key, values)| {
                    (key.clone().into_bytes(), values[0].clone().into_bytes())
                });
                world = self::world(rows);
                String::new()
            }
            "run" => world.run(case),
            other => panic!("unknown case {other}"),
        });
    });
}
