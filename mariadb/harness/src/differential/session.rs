//! Statements about transactions and session settings.

use frondb_core::prng::Prng;

use super::kind::{Class, Kind};
use super::statement::Step;

/// The state of the connection's transaction as the test assumes it. Wrong assumptions do no harm:
/// both sides return an error for a statement that does not fit.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    is_open: bool,
    /// The numbers of the existing savepoints, the oldest first.
    savepoints: Vec<u64>,
    /// Whether the transaction deleted rows of a temporary table, which an UPDATE of a key also
    /// does.
    deleted_temporary: bool,
    /// Whether InnoDB cannot roll the transaction back. If an INSERT fails after its row has taken
    /// the place of a row that the transaction deleted from a temporary table, ROLLBACK loses both
    /// rows.
    is_for_good: bool,
}

impl Transaction {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Records the effect of a statement that succeeded.
    pub(super) fn apply(&mut self, step: &Step) {
        let number = step.sql.rsplit('s').next().and_then(|number| number.parse().ok());
        match (step.kind, number) {
            (Kind::Begin | Kind::Snapshot, _) => {
                *self = Self { is_open: true, ..Self::default() };
            }
            (Kind::Savepoint, Some(number)) => {
                self.savepoints.retain(|&set| set != number);
                self.savepoints.push(number);
            }
            (Kind::RollbackTo, Some(number)) => self.cut(number, 1),
            (Kind::Release, Some(number)) => self.cut(number, 0),
            (Kind::Commit | Kind::Rollback, _) => *self = Self::default(),
            (kind, _) if kind.defines() => *self = Self::default(),
            _ => {}
        }
    }

    /// Records that a statement ran on a temporary table, whether it succeeded or failed.
    pub(super) fn touches_temporary(&mut self, step: &Step) {
        let name = step.kind.name();
        self.is_for_good |= self.deleted_temporary && name.starts_with("INSERT");
        self.deleted_temporary |= name.starts_with("DELETE") || name.starts_with("UPDATE");
    }

    /// Forgets the savepoints set after savepoint `number`, and with `kept` 0 also that savepoint.
    fn cut(&mut self, number: u64, kept: usize) {
        if let Some(at) = self.savepoints.iter().position(|&set| set == number) {
            self.savepoints.truncate(at + kept);
        }
    }

    /// Draws a savepoint, mostly an existing one.
    fn savepoint(&self, random: &mut Prng) -> Option<u64> {
        if random.chance(1, 20) {
            return Some(random.below(SAVEPOINTS));
        }
        random.pick(&self.savepoints).copied()
    }
}

/// Number of different names of savepoints.
const SAVEPOINTS: u64 = 3;

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

const MODES: [&str; 4] =
    ["", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES,NO_ZERO_IN_DATE", "PAD_CHAR_TO_FULL_LENGTH"];

/// Optimizer settings for plans that the server does not use by default.
const PLANS: [&str; 8] = [
    "default",
    "mrr=on,mrr_cost_based=off",
    "mrr=on,mrr_cost_based=off,mrr_sort_keys=on",
    "index_condition_pushdown=off",
    "rowid_filter=off",
    "index_merge_sort_intersection=on",
    "index_merge=off",
    "materialization=off,semijoin=off",
];

/// Session options for tables created later; only FronDB has them.
const OPTIONS: [&str; 5] = [
    "block_size = 1024",
    "block_size = 65536",
    "block_size = DEFAULT",
    "fanout = 2",
    "fanout = DEFAULT",
];

/// Draws a codec and its level. Slow codecs are rare.
fn compression(random: &mut Prng) -> String {
    match random.below(16) {
        0 => "none".to_owned(),
        1..=3 => "lz4".to_owned(),
        4..=8 => format!("zstd:{}", random.range(1..10)),
        9..=12 => format!("zlib:{}", random.range(1..10)),
        13 => format!("zstd:{}", random.range(10..20)),
        14 => format!("zstd-dictionary:{}", random.range(1..20)),
        _ => format!("lzma:{}", random.below(10)),
    }
}

/// Draws a statement of this kind; none if the kind is not about transactions or the session, or
/// does not fit.
pub(super) fn step(random: &mut Prng, kind: Kind, transaction: &Transaction) -> Option<Step> {
    if !matches!(kind.class(), Class::Transaction | Class::Session) {
        return None;
    }
    let sql = match kind {
        Kind::Begin => "BEGIN".to_owned(),
        Kind::Snapshot => "START TRANSACTION WITH CONSISTENT SNAPSHOT".to_owned(),
        Kind::Commit => "COMMIT".to_owned(),
        Kind::Rollback | Kind::RollbackTo if transaction.is_for_good => return None,
        Kind::Rollback => "ROLLBACK".to_owned(),
        Kind::Savepoint if !transaction.is_open() && random.chance(3, 4) => return None,
        Kind::Savepoint => format!("SAVEPOINT s{}", random.below(SAVEPOINTS)),
        Kind::RollbackTo => format!("ROLLBACK TO SAVEPOINT s{}", transaction.savepoint(random)?),
        Kind::Release => format!("RELEASE SAVEPOINT s{}", transaction.savepoint(random)?),
        Kind::Isolation => {
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", one_of(random, &LEVELS))
        }
        Kind::Autocommit => format!("SET autocommit={}", u8::from(random.chance(3, 4))),
        Kind::SqlMode => format!("SET sql_mode='{}'", one_of(random, &MODES)),
        Kind::Plans => format!("SET optimizer_switch='{}'", one_of(random, &PLANS)),
        Kind::Options if random.chance(2, 7) => {
            format!("SET frondb_default_compression='{}'", compression(random))
        }
        Kind::Options => format!("SET frondb_default_{}", one_of(random, &OPTIONS)),
        _ => return None,
    };
    Some(Step::new(kind, &[], sql))
}

fn one_of(random: &mut Prng, texts: &[&'static str]) -> &'static str {
    random.pick(texts).copied().unwrap_or_default()
}
