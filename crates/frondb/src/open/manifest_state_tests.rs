//! Script tests of manifest edits: each line is an edit, which the test encodes and decodes, and
//! the output is the state of the manifest after these edits. `REWRITE=1` rewrites the outputs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datadriven::walk;
use frondb_commit::LargestIds;
use frondb_core::codec::Reader;
use frondb_records::{PendingPart, decode_edit, encode_edit, range_delete};

use super::*;

fn run(tree: TreeId, id: u64, page: u32, seq: u64) -> RunMeta {
    RunMeta {
        id: RunId(id),
        tree,
        extents: vec![Extent { file: 0, page, pages: 1 }],
        blocks_bytes: 100,
        blocks: 1,
        index_bytes: 10,
        filter_bytes: 0,
        filter_parts: 0,
        index_parts: 1,
        top_index_bytes: 0,
        entries: 1,
        deletes: 0,
        updates: 0,
        refs: 0,
        raw_bytes: 50,
        min_seq: SeqNo(1),
        max_seq: SeqNo(seq),
        per_entry_seqs: false,
        unique_keys: true,
        seq_shift: 0,
        writes: 1,
        first_key: (*b"a").into(),
        last_key: (*b"z").into(),
        codec: None,
        dictionary: None,
        tree_block_bytes: 0,
    }
}

/// Returns the default options, changed by the words `codec=` and `fanout=`.
fn options(words: &[&str]) -> TreeOptions {
    let mut options = TreeOptions::default();
    for word in words {
        match word.split_once('=').unwrap() {
            ("codec", codec) => options.trunk.base_codec = codec.parse().unwrap(),
            ("fanout", fanout) => options.trunk.fanout = fanout.parse().unwrap(),
            _ => panic!("{word}"),
        }
    }
    options
}

/// Parses a line `verb tree word...`, in which a word is a name, a number or `key=value`.
fn parse(line: &str) -> Edit {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |name: &str| -> u64 {
        let word = words.iter().find_map(|word| word.strip_prefix(&format!("{name}=")));
        word.unwrap_or_else(|| panic!("{line}: no {name}")).parse().unwrap()
    };
    let tree = TreeId(words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0));
    let third = |i: usize| words[i].parse::<u64>().unwrap();
    match words[0] {
        "create" => Edit::CreateTree {
            tree,
            name: words[2].into(),
            options: TreeOptions::default(),
            root: NodeId(number("root")),
        },
        "rename" => Edit::RenameTree { tree, name: words[2].into() },
        "set-options" => Edit::SetOptions { tree, options: options(&words[2..]) },
        "created-by" => Edit::CreatedBy { tree, txn: third(2) },
        "drop" => Edit::DropTree { tree },
        "add-run" => Edit::AddRun(run(tree, third(2), number("page") as u32, number("seq"))),
        "pending" => Edit::Pending(PendingPart {
            txn: third(2),
            part: number("part") as u32,
            tree,
            offset: number("behind"),
            numbers: number("numbers"),
            are_base: number("numbers").is_multiple_of(2),
            runs: vec![run(tree, number("run"), number("page") as u32, number("numbers"))],
            range_deletes: vec![range_delete(b"a", Some(b"b"), SeqNo(1))],
            values: vec![vec![Extent { file: 0, page: 700, pages: 20 }]],
        }),
        "end-pending" => Edit::EndPending { tree, txn: third(2), part: number("part") as u32 },
        "prepared" => {
            let (txn, xid) = (third(2), Box::from(words[3].as_bytes()));
            let parts = number("parts") as u32;
            Edit::Prepared { txn, xid, logged: Lsn(number("logged")), parts }
        }
        "end-prepared" => Edit::EndPrepared { txn: third(2), logged: Lsn(number("logged")) },
        "drop-run" => Edit::DropRun { tree, run: RunId(third(2)) },
        "put-node" => Edit::PutNode {
            tree,
            node: NodeImage {
                id: NodeId(third(2)),
                lo: Key::from([]),
                hi: None,
                runs: Vec::new(),
                range_deletes: Vec::new(),
                body: BodyImage::Leaf(Vec::new()),
            },
        },
        "drop-node" => Edit::DropNode { tree, node: NodeId(third(2)) },
        "root" => Edit::SetRoot { tree, root: NodeId(third(2)) },
        "flushed" => Edit::Flushed { tree, seq: SeqNo(third(2)) },
        "add-value" => {
            let extent = |page| Extent { file: 0, page, pages: 2 };
            Edit::AddValue { tree, extents: vec![extent(third(2) as u32), extent(9000)] }
        }
        "drop-value" => {
            Edit::DropValue { tree, first: Extent { file: 0, page: third(2) as u32, pages: 2 } }
        }
        "log" => Edit::Log { start: Lsn(number("start")), durable: Lsn(number("durable")) },
        "ids" => Edit::Ids {
            tree: TreeId(number("tree") as u32),
            run: RunId(number("run")),
            node: NodeId(number("node")),
            seq: SeqNo(number("seq")),
        },
        other => panic!("unknown edit {other}"),
    }
}

fn show(state: &ManifestState) -> String {
    let mut out = String::new();
    for (id, tree) in &state.trees {
        let sorted = |ids: Vec<u64>| {
            let mut ids = ids;
            ids.sort_unstable();
            format!("{ids:?}")
        };
        let nodes = sorted(tree.nodes.keys().map(|node| node.get()).collect());
        let runs = sorted(tree.runs.keys().map(|run| run.get()).collect());
        let values = sorted(tree.values.keys().map(|extent| u64::from(extent.page)).collect());
        let (name, root, flushed) = (&tree.name, tree.root, tree.flushed);
        out += &format!("tree {id} {name:?}: root {root} nodes {nodes} runs {runs} ");
        out += &format!("values {values} flushed {flushed}");
        if tree.options != TreeOptions::default() {
            out += &format!(" codec {}", tree.options.trunk.base_codec);
        }
        out.push('\n');
    }
    let pending = &state.pending;
    for ((txn, place), part) in &pending.parts {
        let runs = part.runs.iter().map(|run| run.id.get()).collect::<Vec<_>>();
        let (tree, numbers, offset) = (part.tree, part.numbers, part.offset);
        out += &format!("pending {txn}.{place}: tree {tree} runs {runs:?} ");
        out += &format!("numbers {numbers} behind {offset}\n");
    }
    for (tree, txn) in &pending.created_by {
        out += &format!("tree {tree} is created by {txn}\n");
    }
    for (txn, prepared) in &pending.prepared {
        let (xid, logged) = (prepared.xid.escape_ascii().to_string(), prepared.logged);
        out += &format!("prepared {txn} {xid:?}, logged at {logged}\n");
    }
    for (txn, logged) in &pending.rolled_back {
        out += &format!("rolled back {txn}, logged at {logged}\n");
    }
    let LargestIds { tree, run, node, txn } = state.ids;
    out += &format!("log from {} durable {}; ", state.log_start, state.log_durable);
    let txn = if txn == 0 { String::new() } else { format!("txn {txn} ") };
    out + &format!("last tree {tree} run {run} node {node} {txn}seq {}\n", state.seq)
}

#[test]
fn the_manifest_says_what_the_scripts_say() {
    walk("src/testdata/manifest", |file| {
        let mut state = ManifestState::default();
        file.run(|case| {
            let mut record = Vec::new();
            for line in case.input.lines() {
                encode_edit(&mut record, &parse(line));
            }
            let mut input = Reader::new(&record);
            while !input.is_empty() {
                let edit = decode_edit(&mut input).unwrap();
                if let Err(error) = state.apply(edit) {
                    return format!("{error}\n");
                }
            }
            show(&state)
        });
    });
}

#[test]
fn fuzz_entries_take_any_bytes() {
    // Inputs for the record decoders: edits of several kinds, and mutations of them.
    let mut record = Vec::new();
    for line in [
        "create 1 t root=1",
        "created-by 1 7",
        "add-run 1 2 page=4 seq=9",
        "put-node 1 3",
        "ids tree=1 run=2 node=3 seq=4",
        "pending 1 7 part=0 behind=0 numbers=9 run=5 page=80",
        "prepared 0 7 name logged=900 parts=1",
        "end-pending 1 7 part=0",
        "end-prepared 0 7 logged=900",
    ] {
        encode_edit(&mut record, &parse(line));
    }
    let mut prng = frondb_core::prng::Prng::new(42);
    for _ in 0..2000 {
        let mut bytes = record.clone();
        for _ in 0..1 + prng.below(4) {
            let at = prng.below(bytes.len() as u64) as usize;
            bytes[at] = prng.next_u64() as u8;
        }
        bytes.truncate(prng.below(bytes.len() as u64 + 1) as usize);
        let from = prng.below(bytes.len() as u64 + 1) as usize;
        frondb_records::fuzz::manifest_edit(&bytes);
        frondb_records::fuzz::manifest_edit(&bytes[from..]);
        frondb_records::fuzz::wal_record(&bytes);
    }
}
