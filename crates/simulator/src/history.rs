//! Random histories: lists of operations generated from a seed without looking at an engine, so
//! that the same history can be executed with other options and crashed at other points.

use std::collections::BTreeMap;

use frondb_core::prng::Prng;

use crate::functions::Function;
use crate::model::{Bytes, Message, Move, TreeNumber};
use crate::setup::any_codec;

mod op;
mod profile;
mod transactions;

pub use op::{End, Op, Step};
pub use profile::Profile;

/// A list of operations.
#[derive(Clone, Debug)]
pub struct History {
    /// The operations in order.
    pub ops: Vec<Op>,
}

impl History {
    /// Generates `len` operations from `seed`.
    #[must_use]
    pub fn new(seed: u64, len: usize, profile: &Profile) -> Self {
        let mut generator = Generator {
            prng: Prng::new(seed),
            profile: profile.clone(),
            ops: Vec::new(),
            trees: BTreeMap::new(),
            snapshots: Vec::new(),
            cursors: Vec::new(),
            open: Vec::new(),
            prepared: Vec::new(),
            next: 0,
            sequence: 0,
        };
        generator.create_tree();
        generator.create_tree();
        while generator.ops.len() < len {
            generator.step();
        }
        generator.ops.push(Op::CheckAll);
        Self { ops: generator.ops }
    }
}

struct Generator {
    prng: Prng,
    profile: Profile,
    ops: Vec<Op>,
    trees: BTreeMap<TreeNumber, (String, Function)>,
    snapshots: Vec<u32>,
    cursors: Vec<u32>,
    /// Open transactions.
    open: Vec<u32>,
    prepared: Vec<u32>,
    next: u32,
    /// The last of the ascending keys.
    sequence: u64,
}

impl Generator {
    fn step(&mut self) {
        if self.trees.is_empty() {
            return self.create_tree();
        }
        if self.profile.reopen_in > 0 && self.prng.chance(1, self.profile.reopen_in) {
            self.snapshots.clear();
            self.cursors.clear();
            self.open.clear();
            let close = self.prng.chance(1, 2);
            return self.ops.push(Op::Reopen { close });
        }
        let transactions = self.profile.transactions_percent;
        if transactions > 0 && self.prng.chance(transactions, 100) {
            return self.transaction();
        }
        if self.prng.chance(self.profile.reads_percent, 100) {
            return self.read();
        }
        let op = match self.prng.below(100) {
            0..=59 => return self.write(),
            60..=67 => Op::Flush,
            68..=69 => {
                let leaves = if self.prng.chance(1, 2) { u64::MAX } else { self.prng.below(8) };
                Op::Optimize { tree: self.tree(), leaves }
            }
            70..=72 => Op::Checkpoint,
            73..=79 => Op::Work { pieces: self.prng.below(6) as u32, idle: self.prng.chance(1, 2) },
            80..=83 => Op::Sync,
            84..=86 => Op::Sleep { millis: self.prng.below(2500) },
            87..=91 => return self.take_or_drop_snapshot(),
            92..=93 => Op::CheckAll,
            94 => return self.create_tree(),
            95..=96 => return self.set_codec(),
            97 => return self.rename_tree(),
            _ => return self.drop_tree(),
        };
        self.ops.push(op);
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn create_tree(&mut self) {
        if self.trees.len() >= self.profile.trees {
            return self.set_codec();
        }
        let tree = self.number();
        let functions = [Function::None, Function::Append, Function::Mix];
        let function = functions[self.prng.index(3)];
        let name = format!("tree {tree}");
        self.trees.insert(tree, (name.clone(), function));
        self.ops.push(Op::CreateTree { tree, name, function });
    }

    fn set_codec(&mut self) {
        let op = Op::SetCodec { tree: self.tree(), codec: any_codec(self.prng.next_u64()) };
        self.ops.push(op);
    }

    fn rename_tree(&mut self) {
        let tree = self.tree();
        let to = format!("renamed {}", self.number());
        if let Some((name, _)) = self.trees.get_mut(&tree) {
            let from = std::mem::replace(name, to.clone());
            self.ops.push(Op::RenameTree { tree, from, to });
        }
    }

    fn drop_tree(&mut self) {
        let tree = self.tree();
        if self.prng.chance(1, 2)
            && let Some((name, _)) = self.trees.remove(&tree)
        {
            self.ops.push(Op::DropTree { tree, name });
        }
    }

    fn take_or_drop_snapshot(&mut self) {
        if self.snapshots.len() >= 4 || !self.snapshots.is_empty() && self.prng.chance(1, 2) {
            let at = self.prng.index(self.snapshots.len());
            let snapshot = self.snapshots.swap_remove(at);
            self.ops.push(Op::DropSnapshot { snapshot });
        } else {
            let snapshot = self.number();
            self.snapshots.push(snapshot);
            self.ops.push(Op::TakeSnapshot { snapshot });
        }
    }

    fn tree(&mut self) -> TreeNumber {
        let numbers: Vec<TreeNumber> = self.trees.keys().copied().collect();
        self.prng.pick(&numbers).copied().unwrap_or_default()
    }

    fn at(&mut self) -> Option<u32> {
        if self.prng.chance(2, 3) { None } else { self.prng.pick(&self.snapshots).copied() }
    }

    fn read(&mut self) {
        let tree = self.tree();
        let at = self.at();
        let op = match self.prng.below(10) {
            0..=3 => {
                let n = 1 + self.prng.below(8);
                let keys = (0..n).map(|_| self.key()).collect();
                Op::Get { tree, keys, at }
            }
            4..=5 => {
                let (lower, upper) = (self.bound(), self.bound());
                let backward = self.prng.chance(1, 2);
                let limit = 1 + self.prng.below(200) as usize;
                Op::Scan { tree, lower, upper, at, backward, limit }
            }
            6 => {
                if self.cursors.len() >= 4 {
                    let cursor = self.cursors.swap_remove(self.prng.index(4));
                    self.ops.push(Op::CloseCursor { cursor });
                }
                let cursor = self.number();
                self.cursors.push(cursor);
                let (lower, upper) = (self.bound(), self.bound());
                Op::OpenCursor { cursor, tree, lower, upper, at }
            }
            _ => {
                let Some(cursor) = self.prng.pick(&self.cursors).copied() else { return };
                let n = 1 + self.prng.below(12);
                let moves = (0..n).map(|_| self.one_move()).collect();
                Op::MoveCursor { cursor, moves }
            }
        };
        self.ops.push(op);
    }

    fn one_move(&mut self) -> Move {
        match self.prng.below(10) {
            0 => Move::First,
            1 => Move::Last,
            2 => Move::Seek(self.key()),
            3 => Move::SeekForPrev(self.key()),
            4..=6 => Move::Prev,
            _ => Move::Next,
        }
    }

    fn bound(&mut self) -> Option<Bytes> {
        self.prng.chance(1, 3).then(|| self.key())
    }

    fn write(&mut self) {
        let sync = self.prng.chance(1, self.profile.sync_in);
        let bulk = self.prng.chance(1, 10);
        let n = if bulk { self.profile.bulk } else { self.prng.below(self.profile.batch + 1) };
        let one = self.prng.chance(1, 2).then(|| self.tree());
        let sequential = self.prng.chance(1, 4);
        // Some batches delete most of the keys that they touch.
        let deletes = self.prng.chance(1, 6);
        let mut messages = Vec::with_capacity(n as usize);
        for _ in 0..n {
            let tree = one.unwrap_or_else(|| self.tree());
            let message = self.message(tree, sequential, deletes, bulk);
            messages.push((tree, message));
        }
        self.ops.push(Op::Write { messages, sync });
    }

    fn message(
        &mut self,
        tree: TreeNumber,
        sequential: bool,
        deletes: bool,
        bulk: bool,
    ) -> Message {
        let key = if sequential {
            self.sequence += 1;
            format!("s{:08}", self.sequence).into_bytes().into()
        } else {
            self.key()
        };
        let function = self.trees.get(&tree).map_or(Function::None, |tree| tree.1);
        let kind = if deletes { 40 + self.prng.below(60) } else { self.prng.below(100) };
        match kind {
            0..=49 => Message::Put(key, self.value(!bulk)),
            50..=69 if function != Function::None => {
                let n = self.prng.below(12);
                Message::Update(key, self.bytes(n))
            }
            50..=76 => Message::Put(key, self.value(!bulk)),
            98.. if !bulk || self.prng.chance(1, 20) => {
                let hi = (!self.prng.chance(1, 10)).then(|| self.key());
                // Mostly narrow ranges; otherwise little data would be left.
                let hi = if self.prng.chance(3, 4) { Some(next_after(&key)) } else { hi };
                Message::DeleteRange(key, hi)
            }
            _ => Message::Delete(key),
        }
    }

    fn key(&mut self) -> Bytes {
        match self.prng.below(100) {
            0..=79 => format!("k{:05}", self.prng.below(self.profile.keys)).into_bytes().into(),
            80..=89 => {
                let n = self.sequence.max(1);
                format!("s{:08}", self.prng.below(n + 2)).into_bytes().into()
            }
            90..=98 => {
                let n = self.prng.below(4);
                let letters = [0, 1, 0x7f, 0xff, b'k', b's'];
                (0..n).map(|_| letters[self.prng.index(6)]).collect::<Vec<u8>>().into()
            }
            _ => {
                // Keys with a long common prefix, up to the longest key allowed.
                let mut key = vec![b'l'; [300, 5000, 32 * 1024 - 1][self.prng.index(3)]];
                key.push(self.prng.below(3) as u8);
                key.into()
            }
        }
    }

    fn value(&mut self, may_be_large: bool) -> Bytes {
        let large_in = self.profile.large_in;
        if may_be_large && large_in > 0 && self.prng.chance(1, large_in) {
            let n = self.prng.range(64 * 1024 + 1..160 * 1024);
            return self.bytes(n);
        }
        let noisy_in = self.profile.noisy_in;
        if may_be_large && noisy_in > 0 && self.prng.chance(1, noisy_in) {
            let mut bytes = vec![0; self.prng.range(61_000..66_000) as usize];
            self.prng.fill(&mut bytes);
            return bytes.into();
        }
        let n = match self.prng.below(200) {
            0..=179 => self.prng.below(60),
            180..=198 => self.prng.below(600),
            _ => self.prng.below(6000),
        };
        self.bytes(n)
    }

    /// Returns `n` bytes, half of them random and half zeros, so that they can be compressed.
    fn bytes(&mut self, n: u64) -> Bytes {
        let mut bytes = vec![0; n as usize];
        self.prng.fill(&mut bytes[..n.div_ceil(2) as usize]);
        bytes.into()
    }
}

/// Returns a key shortly above `key`, as the end of a narrow range delete.
fn next_after(key: &[u8]) -> Bytes {
    let mut key = key.to_vec();
    match key.iter().rposition(|byte| *byte < 0xfe) {
        Some(at) => {
            key.truncate(at + 1);
            key[at] += 1;
            if at > 2 {
                key[at - 1] = key[at - 1].saturating_add(1);
            }
        }
        None => key.push(0xff),
    }
    key.into()
}
