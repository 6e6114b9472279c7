//! Faults, traces and throttling by script: see `testdata/` for the cases.
//!
//! | directive | what it does |
//! |---|---|
//! | `device [bandwidth=B] [calls=N]` | a new in-memory device; the input is its fault script |
//! | `heal` | empties the fault script |
//! | `run` | each line of the input is a call; prints the trace and the results |
//!
//! Rewrite the expectations with `REWRITE=1 cargo test -p frondb-testkit --test scripts`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use frondb_core::Result;
use frondb_core::clock::{Clock, ManualClock, SharedClock};
use frondb_device::{Device, OpenOptions, SharedFile};
use frondb_testkit::faults::Script;
use frondb_testkit::throttle::Limits;
use frondb_testkit::trace::Detail;
use frondb_testkit::{FaultDevice, Faults, MemoryDevice, Throttle, Trace, TraceDevice};

/// Devices, each of which wraps the next: trace, faults, throttle, memory.
struct Stack {
    faults: Arc<FaultDevice>,
    trace: TraceDevice,
    clock: Arc<ManualClock>,
    files: BTreeMap<String, SharedFile>,
}

impl Stack {
    fn new(limits: Limits, script: &Script) -> Self {
        let clock = Arc::new(ManualClock::stepping());
        let shared: SharedClock = Arc::clone(&clock) as SharedClock;
        let slow = Throttle::over(Arc::new(MemoryDevice::new()), limits, shared);
        let faults = Arc::new(Faults::over(Arc::new(slow), script));
        let trace = Trace::over(Arc::clone(&faults) as _, Detail::All);
        Self { faults, trace, clock, files: BTreeMap::new() }
    }

    fn file(&mut self, name: &str) -> Result<SharedFile> {
        if !self.files.contains_key(name) {
            let file = self.trace.open(name, OpenOptions::CREATE)?;
            self.files.insert(name.to_owned(), file);
        }
        Ok(Arc::clone(&self.files[name]))
    }

    /// Makes one call and returns its result as text.
    fn call(&mut self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let ok = |()| "ok".to_owned();
        match words[0] {
            "write" => {
                let bytes = words[3..].join(" ");
                self.file(words[1])?.write_at(number(2), bytes.as_bytes()).map(ok)
            }
            "zeros" => {
                let bytes = vec![0; usize::try_from(number(3)).unwrap()];
                self.file(words[1])?.write_at(number(2), &bytes).map(ok)
            }
            "writev" => {
                let bufs: Vec<&[u8]> = words[3..].iter().map(|word| word.as_bytes()).collect();
                self.file(words[1])?.write_vectored_at(number(2), &bufs).map(ok)
            }
            "read" => {
                let mut bytes = vec![0; usize::try_from(number(3)).unwrap()];
                let read = self.file(words[1])?.read_at(number(2), &mut bytes)?;
                Ok(format!("{:?}", String::from_utf8_lossy(&bytes[..read])))
            }
            "sync" => self.file(words[1])?.sync().map(ok),
            "set_len" => self.file(words[1])?.set_len(number(2)).map(ok),
            "allocate" => self.file(words[1])?.allocate(number(2), number(3)).map(ok),
            "punch" => self.file(words[1])?.punch(number(2), number(3)).map(ok),
            "exists" => self.trace.exists(words[1]).map(|exists| exists.to_string()),
            "list" => self.trace.list("").map(|names| names.join(" ")),
            "remove" => self.trace.remove(words[1]).map(ok),
            "rename" => self.trace.rename(words[1], words[2]).map(ok),
            "create_dir" => self.trace.create_dir(words[1]).map(ok),
            "sync_dir" => self.trace.sync_dir("").map(ok),
            "sub" => {
                let file = self.trace.subdevice(words[1])?.open(words[2], OpenOptions::CREATE)?;
                file.write_at(0, b"sub").map(ok)
            }
            "time" => Ok(format!("{:?}", self.clock.now())),
            "injected" => Ok(self.faults.injected().to_string()),
            other => panic!("unknown call {other:?}"),
        }
    }

    fn run(&mut self, input: &str) -> String {
        let mut output = String::new();
        for line in input.lines() {
            let result = match self.call(line) {
                Ok(text) => text,
                Err(error) => error.to_string(),
            };
            let trace = self.trace.take();
            for call in trace.lines() {
                writeln!(output, "  {call}").unwrap();
            }
            writeln!(output, "{line} -> {result}").unwrap();
        }
        output
    }
}

#[test]
fn devices_of_tests_behave_as_the_scripts_say() {
    datadriven::walk("tests/testdata", |file| {
        let mut stack = Stack::new(Limits::default(), &Script::default());
        file.run(|case| match case.directive.as_str() {
            "device" => {
                let mut case = case.clone();
                let limits = Limits {
                    bytes_per_second: case.take_arg("bandwidth").unwrap_or(0),
                    calls_per_second: case.take_arg("calls").unwrap_or(0),
                };
                match case.input.parse::<Script>() {
                    Ok(script) => {
                        stack = Stack::new(limits, &script);
                        let printed = script.to_string();
                        assert_eq!(printed.parse::<Script>().unwrap(), script);
                        printed
                    }
                    Err(error) => format!("{error}\n"),
                }
            }
            "heal" => {
                stack.faults.set_script(&Script::default());
                String::new()
            }
            "run" => stack.run(&case.input),
            other => panic!("unknown directive {other:?}"),
        });
    });
}
