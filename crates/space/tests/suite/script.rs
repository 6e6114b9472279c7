//! Allocation as a script: each file in `testdata` is a sequence of acquisitions and releases, with
//! the resulting extents and the state of the free space after each step.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use datadriven::TestCase;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result};
use frondb_space::{Class, Extent, Reclaim, Space, SpaceOptions, TailMove};
use frondb_testkit::MemoryDevice;

const PAGE: u64 = 4096;

/// A space, and its extents by the names that the script gave them.
struct Script {
    device: MemoryDevice,
    space: Arc<Space>,
    named: BTreeMap<String, Extent>,
}

fn options(case: &TestCase) -> SpaceOptions {
    let bytes = |name: &str, default: u64| {
        case.args.get(name).map_or(default, |values| values[0].parse::<u64>().unwrap() * PAGE)
    };
    SpaceOptions {
        file_bytes_max: bytes("file", 1 << 40),
        grow_bytes: bytes("grow", 1 << 20),
        reserve_bytes: bytes("reserve", 0),
        slack_bytes: bytes("slack", 0),
        direct: false,
    }
}

fn class(word: &str) -> Class {
    match word {
        "merge" => Class::Merge,
        "base" => Class::Base,
        "blob" => Class::Blob,
        _ => panic!("unknown class {word}"),
    }
}

impl Script {
    fn new() -> Self {
        let device = MemoryDevice::new();
        let open = Space::open(Arc::new(device.clone()), SpaceOptions::default(), []);
        Self { device, space: open.unwrap(), named: BTreeMap::new() }
    }

    fn run(&mut self, case: &TestCase) -> String {
        let mut out = String::new();
        match case.directive.as_str() {
            "open" => self.open(case, &mut out),
            "disk" => {
                // `spare` is the number of free pages that the disk has left.
                let pages: u64 = case.args["spare"][0].parse().unwrap();
                self.device.set_capacity(self.device.used_bytes() + pages * PAGE);
            }
            "steps" => {
                for line in case.input.lines() {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let done = match self.step(&words) {
                        Ok(done) => done,
                        Err(error) => format!("{}: {}", error.kind(), error.message()),
                    };
                    writeln!(out, "{line}: {done}").unwrap();
                }
            }
            "free" => {
                for free in self.space.free_extents() {
                    writeln!(out, "{free}").unwrap();
                }
                let stats = self.space.stats();
                let (file, used) = (stats.file_bytes / PAGE, stats.used_bytes / PAGE);
                let (taken, disk) = (stats.allocated_bytes / PAGE, self.device.used_bytes() / PAGE);
                writeln!(out, "pages {file}, used {used}, taken {taken}, disk {disk}").unwrap();
            }
            other => panic!("unknown directive {other}"),
        }
        out
    }

    fn open(&mut self, case: &TestCase, out: &mut String) {
        if case.args.contains_key("new") {
            self.device = MemoryDevice::new();
            self.named.clear();
        }
        for line in case.input.lines() {
            // "name file page pages": an extent that the manifest lists although the script did not
            // acquire it.
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u32>().unwrap();
            let extent = Extent { file: number(1), page: number(2), pages: number(3) };
            self.named.insert(words[0].to_owned(), extent);
        }
        let used: Vec<Extent> = self.named.values().copied().collect();
        match Space::open(Arc::new(self.device.clone()), options(case), used) {
            Ok(space) => self.space = space,
            Err(error) => writeln!(out, "{error}").unwrap(),
        }
    }

    fn step(&mut self, words: &[&str]) -> Result<String> {
        let number = |at: usize| words[at].parse::<u32>().unwrap();
        let done = match words[0] {
            "acquire" => {
                let extent = self.space.acquire(number(2), class(words[3]))?;
                self.keep(words[1], extent)
            }
            "reserved" => {
                let extent = self.space.acquire_reserved(number(2), class(words[3]))?;
                self.keep(words[1], extent)
            }
            "below" => {
                let tail = TailMove { file: 0, limit: number(3) };
                match self.space.acquire_below(number(2), tail)? {
                    Some(extent) => self.keep(words[1], extent),
                    None => "none".to_owned(),
                }
            }
            "shrink" => {
                let extent = self.space.shrink(self.named[words[1]], number(2));
                self.keep(words[1], extent)
            }
            "release" => {
                for name in &words[1..] {
                    self.space.release(self.named.remove(*name).unwrap());
                }
                "ok".to_owned()
            }
            "reclaim" => {
                let mode = if words[1] == "idle" { Reclaim::Idle } else { Reclaim::Busy };
                let mut steps = 0;
                while self.space.reclaim_step(mode)? {
                    steps += 1;
                }
                format!("{steps} steps")
            }
            "lend" => {
                self.space.lend_reserve(u64::from(number(1)) * PAGE)?;
                "ok".to_owned()
            }
            "tail" => match self.space.tail_move_wanted() {
                Some(tail) => format!("file {} behind page {}", tail.file, tail.limit),
                None => "none".to_owned(),
            },
            other => return Err(Error::invalid(format!("step {other}"))),
        };
        Ok(done)
    }

    fn keep(&mut self, name: &str, extent: Extent) -> String {
        self.named.insert(name.to_owned(), extent);
        extent.to_string()
    }
}

#[test]
fn extents_are_placed_where_the_scripts_say() {
    datadriven::walk("tests/testdata", |file| {
        let mut script = Script::new();
        file.run(|case| script.run(case));
    });
}
