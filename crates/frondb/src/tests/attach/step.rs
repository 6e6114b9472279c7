//! [`Step`]: one call of a history, with its effect on the model.

use frondb_core::Result;

use super::model::{Author, Change, Expected, Txn, apply};
use super::world::World;
use frondb_commit::Durability;

pub(super) enum Step {
    Write(Vec<Change>, Durability),
    Commit(Txn, Durability),
    Prepare(Vec<u8>, Txn),
    CommitPrepared(Vec<u8>, Durability),
    RollBack(Vec<u8>),
    Checkpoint,
    Flush,
    Block(usize, bool),
    Work,
}

impl Step {
    pub(super) fn choose(author: &mut Author, expected: &Expected, number: u64) -> Self {
        let durability = *author.prng.pick(&[Durability::Sync, Durability::NoSync]).unwrap();
        let names: Vec<&Vec<u8>> = expected.prepared.keys().collect();
        let prepared = author.prng.pick(&names).map(|name| (*name).clone());
        match (author.prng.below(100), prepared) {
            (0..15, _) => Self::Write(author.record(), durability),
            (15..45, _) => Self::Commit(author.txn(), durability),
            (45..60, _) => Self::Prepare(format!("xid {number}").into_bytes(), author.txn()),
            (60..72, Some(xid)) => Self::CommitPrepared(xid, durability),
            (72..77, Some(xid)) => Self::RollBack(xid),
            (77..82, _) => Self::Checkpoint,
            (82..86, _) => Self::Flush,
            (86..95, _) => Self::Block(author.prng.index(2), author.prng.chance(3, 4)),
            _ => Self::Work,
        }
    }

    /// Returns the expected contents after the step.
    pub(super) fn apply(&self, expected: &Expected) -> Expected {
        let mut next = expected.clone();
        match self {
            Self::Write(changes, _) => apply(&mut next.state, changes),
            Self::Commit(txn, _) => apply(&mut next.state, &txn.changes()),
            Self::Prepare(xid, txn) => drop(next.prepared.insert(xid.clone(), txn.changes())),
            Self::CommitPrepared(xid, _) => {
                let changes = next.prepared.remove(xid).unwrap();
                apply(&mut next.state, &changes);
            }
            Self::RollBack(xid) => drop(next.prepared.remove(xid)),
            _ => {}
        }
        next
    }

    /// Returns whether everything committed so far is durable when the step returns.
    pub(super) fn is_durable(&self) -> bool {
        match self {
            Self::Write(_, durability)
            | Self::Commit(_, durability)
            | Self::CommitPrepared(_, durability) => *durability == Durability::Sync,
            Self::Prepare(..) | Self::RollBack(_) | Self::Checkpoint => true,
            _ => false,
        }
    }

    pub(super) fn run(&self, world: &mut World) -> Result<()> {
        match self {
            Self::Write(changes, durability) => world.write(changes, *durability),
            Self::Commit(txn, durability) => world.commit(txn, *durability),
            Self::Prepare(xid, txn) => world.prepare(xid, txn),
            Self::CommitPrepared(xid, durability) => world.commit_prepared(xid, *durability),
            Self::RollBack(xid) => world.rollback_prepared(xid),
            Self::Checkpoint => world.checkpoint(),
            Self::Flush => world.flush(),
            Self::Block(tree, blocked) => {
                world.block(*tree, *blocked);
                Ok(())
            }
            Self::Work => {
                while world.db.run_one(true) {}
                Ok(())
            }
        }
    }
}
