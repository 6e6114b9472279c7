//! Recovery and failures of the log as text: see `testdata/` for the cases.
//!
//! | directive | what it does |
//! |---|---|
//! | `faults` | from now on the device has the faults of the input's script |
//! | `run` | each line of the input is a command (below); prints the result of each |
//! | `trace` | the same with the calls to the device |
//!
//! Commands: `open [START [DURABLE]]`, `append TEXT...` (one record per word), `fill N` (a record
//! of N bytes), `write`, `sync`, `wait LSN`, `recycle LSN`, `keep_spares yes|no`,
//! `end_segment BYTES`, `kill` (drops the log), `power lose|keep`, `flip FILE OFFSET`, `zero FILE
//! FROM TO`, `cut FILE LEN`, `remove FILE`, `list` (without `LOG.mark` and `LOG`), `positions`,
//! `unmarked` (from now on each open finds a `LOG.mark` that records nothing, so only the log
//! itself can prove damage), `old` (no mark, and no file says that there was one).
//!
//! Rewrite the expectations with `REWRITE=1 cargo test -p frondb-wal --test scripts`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::Write;
use std::sync::Arc;

use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{Device, OpenOptions, SharedDevice};
use frondb_testkit::faults::Script;
use frondb_testkit::trace::Detail;
use frondb_testkit::{CrashMode, FaultDevice, Faults, MemoryDevice, Trace, TraceDevice};
use frondb_wal::owner::OWNER_FILE;
use frondb_wal::{MARK_FILE, Wal, WalOptions};

/// trace(faults(memory)), and the log on it.
struct Stack {
    memory: MemoryDevice,
    faults: Arc<FaultDevice>,
    trace: Arc<TraceDevice>,
    wal: Option<Wal>,
    unmarked: bool,
}

impl Stack {
    fn new(memory: MemoryDevice) -> Self {
        let inner: SharedDevice = Arc::new(memory.clone());
        let faults = Arc::new(Faults::over(inner, &Script::default()));
        let trace = Arc::new(Trace::over(Arc::clone(&faults) as _, Detail::Mutations));
        Self { memory, faults, trace, wal: None, unmarked: false }
    }

    fn wal(&self) -> Result<&Wal> {
        self.wal.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "the log is not open"))
    }

    fn command(&mut self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index).map_or(0, |word| word.parse().unwrap());
        match words[0] {
            "open" => return self.open(Lsn(number(1)), Lsn(number(2))),
            "append" => {
                let mut ends = Vec::new();
                for word in &words[1..] {
                    let appended = self.wal()?.append(&[word.as_bytes()])?;
                    ends.push(format!("{word}@{}..{}", appended.start, appended.end));
                }
                return Ok(ends.join(" "));
            }
            "fill" => {
                let appended = self.wal()?.append(&[&vec![b'.'; number(1) as usize]])?;
                return Ok(format!("{}..{}", appended.start, appended.end));
            }
            "write" => self.wal()?.write_out()?,
            "sync" => self.wal()?.sync()?,
            "wait" => self.wal()?.sync_to(Lsn(number(1)))?,
            "recycle" => self.wal()?.recycle(Lsn(number(1)))?,
            "keep_spares" => self.wal()?.keep_spares(words[1] == "yes")?,
            "end_segment" => self.wal()?.end_segment(number(1))?,
            "kill" => self.wal = None,
            "power" => {
                let mode =
                    if words[1] == "keep" { CrashMode::KeepAll } else { CrashMode::LoseUnsynced };
                let unmarked = self.unmarked;
                *self = Self { unmarked, ..Self::new(self.memory.crash(mode)) };
            }
            "positions" => {
                let wal = self.wal()?;
                let (durable, written) = (wal.durable_lsn(), wal.written_lsn());
                return Ok(format!("durable {durable} written {written} end {}", wal.end_lsn()));
            }
            "old" => support::unmark(&self.memory)?,
            "unmarked" => self.unmarked = true,
            "list" => return self.list(),
            _ => self.damage(&words)?,
        }
        Ok("ok".to_owned())
    }

    fn open(&mut self, start: Lsn, durable: Lsn) -> Result<String> {
        self.wal = None;
        if self.unmarked {
            support::forget_mark(&self.memory);
        }
        let options = WalOptions { segment_bytes: 4096, reserve_bytes: 0, ..support::small() };
        let device: SharedDevice = Arc::clone(&self.trace) as _;
        let (records, wal, torn) = support::recover(&device, &options, start, durable)?;
        let mut text: Vec<String> = records
            .iter()
            .map(|record| match record.len() {
                ..20 => String::from_utf8_lossy(record).into_owned(),
                long => format!("({long} bytes)"),
            })
            .collect();
        text.push(format!("end {}", wal.end_lsn()));
        text.extend(torn.map(|torn| torn.to_string()));
        self.wal = Some(wal);
        Ok(text.join(" "))
    }

    fn list(&self) -> Result<String> {
        let mut files = Vec::new();
        for name in self.memory.list("")? {
            if name == MARK_FILE || name == OWNER_FILE {
                continue;
            }
            let len = self.memory.open(&name, OpenOptions::READ)?.len()?;
            files.push(format!("{name}:{len}"));
        }
        Ok(files.join(" "))
    }

    /// Changes files without the log's knowledge.
    fn damage(&self, words: &[&str]) -> Result<()> {
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let file = || self.memory.open(words[1], OpenOptions::WRITE);
        match words[0] {
            "flip" => {
                let mut byte = [0];
                file()?.read_exact_at(number(2), &mut byte)?;
                file()?.write_at(number(2), &[byte[0] ^ 1])
            }
            "zero" => file()?.write_at(number(2), &vec![0; (number(3) - number(2)) as usize]),
            "cut" => file()?.set_len(number(2)),
            "remove" => self.memory.remove(words[1]),
            other => panic!("unknown command {other:?}"),
        }
    }

    fn run(&mut self, input: &str, trace: bool) -> String {
        let mut output = String::new();
        for line in input.lines() {
            let result = self.command(line).unwrap_or_else(|error| error.to_string());
            let calls = self.trace.take();
            calls.lines().filter(|_| trace).for_each(|call| writeln!(output, "  {call}").unwrap());
            writeln!(output, "{line} -> {result}").unwrap();
        }
        output
    }
}

#[test]
fn appends_syncs_and_recoveries_give_the_outputs_of_the_scripts() {
    datadriven::walk("tests/testdata", |file| {
        let mut stack = Stack::new(MemoryDevice::new());
        file.run(|case| match case.directive.as_str() {
            "faults" => {
                stack.faults.set_script(&case.input.parse().unwrap());
                String::new()
            }
            "run" => stack.run(&case.input, false),
            "trace" => stack.run(&case.input, true),
            other => panic!("unknown directive {other:?}"),
        });
    });
}
