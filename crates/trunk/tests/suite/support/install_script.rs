//! Interprets `testdata/install`. Every change is checked by the lab as it is made; the scripts
//! show the results.
//!
//! ```text
//! new [leaf=bytes]                              an empty trunk, with leaves of this target size
//! options [leaf=bytes]                          changes the target size of leaves
//! flush [snapshots=(n,..)]                      a memtable: words `k=v`, `k=@reference`, `-k`,
//!                                               `a..b` (a range delete; either end may be missing)
//! attach [each] [base] [snapshots=(n,..)]       a large commit: a run a line, oldest first, words
//!                                               as in a flush; a line with only range deletes
//!                                               makes no run. `each`: the runs store a SeqNo per
//!                                               message. `base`: the runs can serve as a base
//! begin job= node= plan=(flush, merge, merge-base, rewrite or truncate-prefix) [runs=] [pieces=]
//!       [from= views=] [snapshots=(n,..)]
//! install job=                                  install a job that `begin` started
//! run node= plan= ..                            begin and install
//! join left= right=                             two neighbours
//! regroup node= fanout=
//! tree                  what the trunk holds
//! read [at=]            what a reader sees, by lookups and by scans in both directions
//! free                  bytes in extents that no run of the trunk has
//! ```
//!
//! A node is `root`, `leaf-k` (the leaf that holds key k) or `parent-k` (the node above that).

use std::collections::HashMap;

use frondb_core::sync::Arc;
use frondb_core::{Direction, MessageKind, NodeId, RangeDelete, SeqNo};
use frondb_trunk::Node;
use frondb_trunk::plan::{Plan, Reason};

use super::lab::{InFlight, Lab, describe, tiny};
use super::messages::Entry;

type Args = HashMap<String, Vec<String>>;

pub(crate) struct InstallScript {
    lab: Lab,
    seq: u64,
    jobs: HashMap<String, InFlight>,
}

impl Default for InstallScript {
    fn default() -> Self {
        Self { lab: Lab::new(tiny(), None), seq: 0, jobs: HashMap::new() }
    }
}

fn text<'a>(args: &'a Args, name: &str) -> Option<&'a str> {
    args.get(name).and_then(|values| values.first()).map(String::as_str)
}

fn number(args: &Args, name: &str) -> Option<u64> {
    text(args, name).map(|text| text.parse().unwrap())
}

fn snapshots(args: &Args) -> Vec<SeqNo> {
    let numbers = args.get("snapshots").map(Vec::as_slice).unwrap_or_default();
    numbers.iter().map(|n| SeqNo(n.parse().unwrap())).collect()
}

impl InstallScript {
    pub(crate) fn run(&mut self, directive: &str, args: &Args, input: &str) -> String {
        match directive {
            "new" => {
                *self = Self::default();
                self.options(args)
            }
            "options" => self.options(args),
            "flush" => self.flush(args, input),
            "attach" => self.attach(args, input),
            "begin" => self.begin(args),
            "install" => self.install(text(args, "job").unwrap()),
            "run" => {
                let job = self.job(args);
                self.finish(job)
            }
            "join" => {
                let (left, right) = (self.node(args, "left"), self.node(args, "right"));
                let holds = |node: &Arc<Node>| node.children().iter().any(|c| c.id == left);
                let parent = self.lab.nodes().into_iter().find(holds).unwrap().id;
                done(self.lab.change(&[], |builder| builder.join(parent, left, right)))
            }
            "regroup" => {
                let node = self.node(args, "node");
                let fanout = number(args, "fanout").unwrap() as usize;
                done(self.lab.change(&[], |builder| builder.regroup(node, fanout)))
            }
            "tree" => describe(&self.lab.trunk),
            "read" => self.read(number(args, "at").map_or(SeqNo::MAX, SeqNo)),
            "free" => format!("{} bytes\n", self.lab.leaked_bytes()),
            other => panic!("unknown directive {other}"),
        }
    }

    fn node(&self, args: &Args, name: &str) -> NodeId {
        let text = text(args, name).unwrap();
        let (what, key) = text.split_once('-').unwrap_or((text, ""));
        let mut path = vec![&self.lab.trunk.root];
        while let Some(child) = path[path.len() - 1].child_for(key.as_bytes()) {
            path.push(child);
        }
        let up = match what {
            "leaf" => 0,
            "parent" => 1,
            "root" => path.len() - 1,
            other => panic!("unknown node {other}"),
        };
        path[path.len() - 1 - up].id
    }

    fn options(&mut self, args: &Args) -> String {
        let options = &mut self.lab.env.options;
        if let Some(bytes) = number(args, "leaf") {
            (options.leaf_bytes_min, options.leaf_bytes_max) = (bytes, bytes);
        }
        String::new()
    }

    fn flush(&mut self, args: &Args, input: &str) -> String {
        let (entries, deletes) = self.messages(input);
        let result = self.lab.flush(entries, deletes, &snapshots(args));
        let new_runs = result.new_runs.iter().map(|placed| {
            let (lo, hi) = (&placed.lo, placed.hi.as_deref());
            let text = |key: &[u8]| key.escape_ascii().to_string();
            let hi = hi.map_or_else(|| "end".into(), text);
            format!("run {} {:?} [{} .. {hi})\n", placed.run.meta().id, placed.place, text(lo))
        });
        format!("up to {}\n{}", self.seq, new_runs.collect::<String>())
    }

    fn attach(&mut self, args: &Args, input: &str) -> String {
        let (base, mut runs, mut all_deletes) = (SeqNo(self.seq), Vec::new(), Vec::new());
        let (each, are_base) = (args.contains_key("each"), args.contains_key("base"));
        for line in input.lines() {
            let (entries, deletes) = self.messages(line);
            all_deletes.extend(deletes);
            if !entries.is_empty() {
                runs.push(self.lab.private_run(entries, base, each, are_base));
            }
        }
        runs.reverse();
        self.lab.attach(&runs, all_deletes, &snapshots(args), are_base);
        format!("up to {}\n", self.seq)
    }

    fn messages(&mut self, input: &str) -> (Vec<Entry>, Vec<RangeDelete>) {
        let (mut entries, mut deletes) = (Vec::new(), Vec::new());
        for word in input.split_whitespace() {
            self.seq += 1;
            let seq = SeqNo(self.seq);
            if let Some((lo, hi)) = word.split_once("..") {
                let hi = (!hi.is_empty()).then(|| hi.as_bytes().into());
                deletes.push(RangeDelete { lo: lo.as_bytes().into(), hi, seq });
            } else if let Some(key) = word.strip_prefix('-') {
                let (kind, value) = (MessageKind::Delete, Vec::new());
                entries.push(Entry { key: key.into(), seq, kind, value });
            } else if let Some((key, reference)) = word.split_once("=@") {
                let (kind, value) = (MessageKind::PutRef, reference.into());
                entries.push(Entry { key: key.into(), seq, kind, value });
            } else {
                let (key, value) = word.split_once('=').unwrap();
                let (kind, value) = (MessageKind::Put, value.into());
                entries.push(Entry { key: key.into(), seq, kind, value });
            }
        }
        (entries, deletes)
    }

    fn job(&self, args: &Args) -> InFlight {
        let plan = match text(args, "plan").unwrap() {
            "flush" => Plan::FlushNode,
            "truncate-prefix" => Plan::TruncatePrefix,
            "merge" => Plan::MergeRuns(number(args, "runs").unwrap() as usize),
            "merge-base" => Plan::MergeBase {
                from: number(args, "from").unwrap() as usize,
                views: number(args, "views").unwrap() as usize,
            },
            "rewrite" => Plan::Rewrite(Reason::Idle, number(args, "pieces").unwrap_or(1)),
            other => panic!("unknown plan {other}"),
        };
        let node = self.node(args, "node");
        self.lab.begin(node, plan, &snapshots(args)).unwrap()
    }

    fn begin(&mut self, args: &Args) -> String {
        let job = self.job(args);
        let mut claimed: Vec<u64> = job.prepared.claimed.iter().map(|run| run.get()).collect();
        claimed.sort_unstable();
        self.jobs.insert(text(args, "job").unwrap().into(), job);
        format!("claims {claimed:?}\n")
    }

    fn install(&mut self, name: &str) -> String {
        let job = self.jobs.remove(name).unwrap();
        self.finish(job)
    }

    fn finish(&mut self, job: InFlight) -> String {
        match self.lab.install(job) {
            None => "discarded\n".into(),
            Some(result) => {
                let new_runs = result.new_runs.iter().map(|placed| placed.run.meta().id.get());
                let mut out = format!("made {:?}", new_runs.collect::<Vec<_>>());
                for reference in result.dropped_refs {
                    out += &format!(", frees @{}", String::from_utf8_lossy(&reference));
                }
                out + "\n"
            }
        }
    }

    fn read(&self, snapshot: SeqNo) -> String {
        let forward = self.lab.scan(Direction::Forward, b"", None, snapshot);
        let mut backward = self.lab.scan(Direction::Backward, b"", None, snapshot);
        backward.reverse();
        assert_eq!(forward, backward);
        let mut out = String::new();
        for (key, value) in &forward {
            assert_eq!(self.lab.get(key, snapshot).as_ref(), Some(value));
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            out += &format!("{}={} ", text(key), text(value));
        }
        // Scans must not find keys that lookups do not show.
        for key in b'a'..=b'z' {
            let shown = forward.iter().find(|entry| entry.0 == [key]).map(|entry| &entry.1);
            assert_eq!(self.lab.get(&[key], snapshot).as_ref(), shown);
        }
        if out.is_empty() { "nothing\n".into() } else { out.trim_end().to_owned() + "\n" }
    }
}

fn done(done: bool) -> String {
    if done { "done\n".into() } else { "not done\n".into() }
}
