//! Interprets `testdata/plan`.
//!
//! ```text
//! options leaf-min-mib= leaf-max-mib= slice-kib= fanout= writes= growth= garbage= codec=
//!                                     changes the default options
//! tree raw-mib= flush-mib= value-kib= height= snapshot= inputs=
//!                                     sets the context's numbers, and prints limits that follow
//! plan                                prints the plan of the node in each line:
//!   leaf [root] id= base=VIEW or views=VIEW,... codecs=NAME,... of the views block-bytes=
//!        runs=RUN,... deletes= hides-view debt-kib= run-debt-kib= overlap=% tombstones optimize
//!        truncate-prefix truncated=KiB held-by= kept= old-refs= base-refs=
//!   inner [root] runs=RUN,... deletes= children=CHILD,... refs= of the first child
//! ```
//!
//! `set_base`, `runs` and `children` say what VIEW, RUN and CHILD are.

use std::collections::HashMap;

use frondb_core::{NodeId, RunId, SeqNo};
use frondb_trunk::TrunkOptions;
use frondb_trunk::plan::{ChildSummary, Context, RunSummary, Summary, plan_node};

type Args = HashMap<String, Vec<String>>;

/// Bytes of a message in these scripts.
const MESSAGE_BYTES: u64 = 128;

pub(crate) struct PlanScript {
    context: Context,
}

impl Default for PlanScript {
    fn default() -> Self {
        Self {
            context: Context {
                options: TrunkOptions::default(),
                tree_raw_bytes: 1 << 30,
                flush_raw_bytes: 64 << 20,
                value_bytes: 64 << 10,
                height: 2,
                oldest_snapshot: None,
                inputs_max: usize::MAX,
            },
        }
    }
}

impl PlanScript {
    pub(crate) fn run(&mut self, directive: &str, args: &Args, input: &str) -> String {
        match directive {
            "options" => self.options(args),
            "tree" => self.tree(args),
            "plan" => input.lines().map(|line| self.plan(line)).collect(),
            other => panic!("unknown directive {other}"),
        }
    }

    fn options(&mut self, args: &Args) -> String {
        let options = &mut self.context.options;
        *options = TrunkOptions::default();
        for (name, values) in args {
            let number = values[0].parse::<u64>().unwrap_or_default();
            match &**name {
                "codec" => options.base_codec = values[0].parse().unwrap(),
                "leaf-min-mib" => options.leaf_bytes_min = number << 20,
                "leaf-max-mib" => options.leaf_bytes_max = number << 20,
                "slice-kib" => options.slice_bytes_min = number << 10,
                "fanout" => options.fanout = number as usize,
                "writes" => options.writes_before_base = number as u8,
                "growth" => options.growth_percent = number,
                "garbage" => options.garbage_percent = number,
                other => panic!("unknown option {other}"),
            }
        }
        String::new()
    }

    fn tree(&mut self, args: &Args) -> String {
        let context = &mut self.context;
        (context.oldest_snapshot, context.inputs_max) = (None, usize::MAX);
        context.value_bytes = 64 << 10;
        for (name, values) in args {
            let number = values[0].parse::<u64>().unwrap();
            match &**name {
                "raw-mib" => context.tree_raw_bytes = number << 20,
                "flush-mib" => context.flush_raw_bytes = number << 20,
                "value-kib" => context.value_bytes = number << 10,
                "height" => context.height = number as usize,
                "inputs" => context.inputs_max = number as usize,
                "snapshot" => context.oldest_snapshot = Some(SeqNo(number)),
                other => panic!("unknown number {other}"),
            }
        }
        format!(
            "leaf target {} KiB, root children at most {}\n",
            context.leaf_target() >> 10,
            context.root_children_max()
        )
    }

    /// Returns the plan of the node that a line describes: `leaf` or `inner`, then words
    /// `name=value` or `name`.
    fn plan(&self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let kind = words.next().unwrap();
        let mut node = Summary { id: NodeId(1), ..Summary::default() };
        if kind == "leaf" {
            set_base(&mut node, "0");
        }
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number = || value.parse::<u64>().unwrap();
            match name {
                "root" => node.is_root = true,
                "id" => node.id = NodeId(number()),
                "base" | "views" => set_base(&mut node, value),
                "codecs" => {
                    for (view, codec) in node.base_views.iter_mut().zip(value.split(',')) {
                        view.codec = Some(codec.parse().unwrap());
                    }
                }
                "block-bytes" => {
                    node.base_views
                        .iter_mut()
                        .for_each(|view| view.tree_block_bytes = number() as u32);
                }
                "runs" => node.runs = runs(value),
                "deletes" => node.range_deletes = number() as usize,
                "hides-view" => node.hides_view = true,
                "old-refs" => node.old_refs = number(),
                "base-refs" => node.base_refs = number(),
                "refs" => node.children[0].refs = number(),
                "run-debt-kib" => node.run_debt = number() << 10,
                "debt-kib" => node.scan_debt = number() << 10,
                "overlap" => node.overlap_percent = number(),
                "tombstones" => node.compact_tombstones = true,
                "optimize" => node.optimize = true,
                "truncate-prefix" => node.truncate_prefix = true,
                "truncated" => node.truncated_entries = (number() << 10) / MESSAGE_BYTES,
                "held-by" => node.held_by = number() + 1,
                "kept" => node.held_range_deletes = number() as usize,
                "children" => node.children = children(value),
                other => panic!("unknown word {other}"),
            }
        }
        match plan_node(&node, &self.context) {
            None => format!("{line}: nothing\n"),
            Some(planned) => {
                let debt = if planned.is_debt() { ", debt" } else { "" };
                let (plan, priority) = (planned.plan, planned.priority);
                let work = planned.work_bytes >> 10;
                let frees = if planned.frees_space { ", frees space" } else { "" };
                format!("{line}: {plan:?}, priority {priority}, reads {work} KiB{debt}{frees}\n")
            }
        }
    }
}

/// Sets the base to the views in `text`, in key order, each as in [`runs`].
fn set_base(node: &mut Summary, text: &str) {
    node.base_views = runs(text);
    let sum = |of: fn(&RunSummary) -> u64| node.base_views.iter().map(of).sum();
    node.base = RunSummary {
        raw_bytes: sum(|view| view.raw_bytes),
        entries: sum(|view| view.entries),
        deletes: sum(|view| view.deletes),
        ..RunSummary::default()
    };
}

/// `KiB/percent`: the size, and the percentage of deletes among the messages.
fn sized(text: &str) -> RunSummary {
    let (kib, percent) = text.split_once('/').unwrap_or((text, "0"));
    let raw_bytes = kib.parse::<u64>().unwrap() << 10;
    let entries = raw_bytes / MESSAGE_BYTES;
    let deletes = entries * percent.parse::<u64>().unwrap() / 100;
    RunSummary { raw_bytes, entries, deletes, ..RunSummary::default() }
}

/// Runs `KiB/percent@writes*count#id`, newest first, separated by commas. A `!` at the end of a run
/// marks it as damaged. `KiB/percent` is as in [`sized`]; the other parts may be missing.
fn runs(text: &str) -> Vec<RunSummary> {
    let mut runs = Vec::new();
    for part in text.split(',') {
        let is_damaged = part.ends_with('!');
        let part = part.trim_end_matches('!');
        let (part, id) = part.split_once('#').unwrap_or((part, ""));
        let (part, count) = part.split_once('*').unwrap_or((part, "1"));
        let (part, writes) = part.split_once('@').unwrap_or((part, "1"));
        for _ in 0..count.parse::<usize>().unwrap() {
            let own = 1000 + runs.len() as u64;
            let id = RunId(if id.is_empty() { own } else { id.parse().unwrap() });
            let writes = writes.parse().unwrap();
            runs.push(RunSummary { id, writes, is_damaged, ..sized(part) });
        }
    }
    runs
}

/// Children, separated by commas: leaves `KiB/runs*count`, inner nodes
/// `iCHILDREN/runs/deletes*count`. A `!` at the end of a child marks it as damaged.
fn children(text: &str) -> Vec<ChildSummary> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let is_damaged = part.ends_with('!');
        let part = part.trim_end_matches('!');
        let (part, count) = part.split_once('*').unwrap_or((part, "1"));
        let mut numbers = part.trim_start_matches('i').split('/').map(|n| n.parse().unwrap());
        let first: u64 = numbers.next().unwrap();
        let inner = part.starts_with('i');
        let child = ChildSummary {
            raw_bytes: if inner { 1 << 30 } else { first << 10 },
            children: if inner { first as usize } else { 0 },
            runs: numbers.next().unwrap_or(0) as usize,
            range_deletes: numbers.next().unwrap_or(0) as usize,
            refs: 0,
            is_damaged,
        };
        all.extend(std::iter::repeat_n(child, count.parse().unwrap()));
    }
    all
}
