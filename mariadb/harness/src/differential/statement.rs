//! The kinds of statements, how often each comes, and how its outcome is compared.

use frondb_core::prng::Prng;

use super::catalog::Catalog;
use super::table::Table;
use super::{change, define, read};

/// What a statement is, for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    CreateTable,
    CreateLike,
    CreateSelect,
    DropTable,
    Truncate,
    RenameTable,
    AddColumn,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    AddIndex,
    AddUnique,
    DropIndex,
    AddPrimary,
    DropPrimary,
    Rebuild,
    Partition,
    SetAutoIncrement,
    Insert,
    InsertIgnore,
    InsertUpdate,
    InsertSelect,
    InsertReturning,
    Replace,
    Update,
    UpdateOrdered,
    UpdateIgnore,
    UpdateJoin,
    Delete,
    DeleteOrdered,
    DeleteJoin,
    DeleteReturning,
    Point,
    Range,
    Ordered,
    Reverse,
    Covering,
    Either,
    Group,
    Distinct,
    Extremes,
    Join,
    Subquery,
    ForUpdate,
    InShareMode,
    Checksum,
    Begin,
    Snapshot,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Release,
    Isolation,
    Autocommit,
    SqlMode,
    /// A look at a whole table, between the others.
    Audit,
}

/// Every kind, its name in the counts, and its weight.
pub(super) const KINDS: [(Kind, &str, u32); 57] = [
    (Kind::CreateTable, "CREATE TABLE", 30),
    (Kind::CreateLike, "CREATE TABLE LIKE", 8),
    (Kind::CreateSelect, "CREATE TABLE SELECT", 10),
    (Kind::DropTable, "DROP TABLE", 12),
    (Kind::Truncate, "TRUNCATE", 8),
    (Kind::RenameTable, "RENAME TABLE", 8),
    (Kind::AddColumn, "ADD COLUMN", 12),
    (Kind::DropColumn, "DROP COLUMN", 12),
    (Kind::ModifyColumn, "MODIFY COLUMN", 14),
    (Kind::RenameColumn, "RENAME COLUMN", 10),
    (Kind::AddIndex, "ADD INDEX", 14),
    (Kind::AddUnique, "ADD UNIQUE", 24),
    (Kind::DropIndex, "DROP INDEX", 12),
    (Kind::AddPrimary, "ADD PRIMARY KEY", 60),
    (Kind::DropPrimary, "DROP PRIMARY KEY", 12),
    (Kind::Rebuild, "ALTER TABLE FORCE", 8),
    (Kind::Partition, "PARTITION BY", 14),
    (Kind::SetAutoIncrement, "AUTO_INCREMENT =", 10),
    (Kind::Insert, "INSERT", 160),
    (Kind::InsertIgnore, "INSERT IGNORE", 40),
    (Kind::InsertUpdate, "INSERT ON DUPLICATE KEY UPDATE", 50),
    (Kind::InsertSelect, "INSERT SELECT", 40),
    (Kind::InsertReturning, "INSERT RETURNING", 30),
    (Kind::Replace, "REPLACE", 50),
    (Kind::Update, "UPDATE", 60),
    (Kind::UpdateOrdered, "UPDATE ORDER BY LIMIT", 40),
    (Kind::UpdateIgnore, "UPDATE IGNORE", 30),
    (Kind::UpdateJoin, "UPDATE of a join", 20),
    (Kind::Delete, "DELETE", 30),
    (Kind::DeleteOrdered, "DELETE ORDER BY LIMIT", 20),
    (Kind::DeleteJoin, "DELETE of a join", 10),
    (Kind::DeleteReturning, "DELETE RETURNING", 12),
    (Kind::Point, "SELECT by key", 50),
    (Kind::Range, "SELECT of a range", 60),
    (Kind::Ordered, "SELECT ORDER BY key LIMIT", 50),
    (Kind::Reverse, "SELECT ORDER BY key DESC LIMIT", 50),
    (Kind::Covering, "SELECT of a key alone", 50),
    (Kind::Either, "SELECT by two keys with OR", 30),
    (Kind::Group, "SELECT GROUP BY", 30),
    (Kind::Distinct, "SELECT DISTINCT", 20),
    (Kind::Extremes, "SELECT MIN, MAX", 30),
    (Kind::Join, "SELECT of a join", 20),
    (Kind::Subquery, "SELECT IN (SELECT)", 20),
    (Kind::ForUpdate, "SELECT FOR UPDATE", 20),
    (Kind::InShareMode, "SELECT LOCK IN SHARE MODE", 20),
    (Kind::Checksum, "CHECKSUM TABLE", 10),
    (Kind::Begin, "BEGIN", 50),
    (Kind::Snapshot, "START TRANSACTION WITH CONSISTENT SNAPSHOT", 10),
    (Kind::Commit, "COMMIT", 40),
    (Kind::Rollback, "ROLLBACK", 30),
    (Kind::Savepoint, "SAVEPOINT", 40),
    (Kind::RollbackTo, "ROLLBACK TO SAVEPOINT", 60),
    (Kind::Release, "RELEASE SAVEPOINT", 40),
    (Kind::Isolation, "SET TRANSACTION ISOLATION LEVEL", 8),
    (Kind::Autocommit, "SET autocommit", 10),
    (Kind::SqlMode, "SET sql_mode", 8),
    (Kind::Audit, "(audit)", 0),
];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("?", |(_, name, _)| name)
    }

    /// Draws one by its weight.
    fn draw(random: &mut Prng) -> Self {
        let total: u32 = KINDS.iter().map(|(.., weight)| weight).sum();
        let mut left = random.below(u64::from(total)) as u32;
        for (kind, _, weight) in KINDS {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        Self::Commit
    }
}

/// What the test's picture of the tables becomes if the statement succeeds.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    None,
    Add(Table),
    Remove(String),
    Replace(String, Table),
}

/// One statement.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) sql: String,
    /// Tables whose types and collations it uses.
    pub(super) tables: Vec<String>,
    pub(super) effect: Effect,
    /// Whether the order of its rows is given by the statement.
    pub(super) ordered: bool,
}

impl Step {
    pub(super) fn new(kind: Kind, tables: &[&Table], sql: String) -> Self {
        let tables = tables.iter().map(|table| table.name.clone()).collect();
        Self { kind, sql, tables, effect: Effect::None, ordered: false }
    }

    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    pub(super) fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }
}

/// Tables that there are at a time.
const TABLES_MIN: usize = 2;
const TABLES_MAX: usize = 6;

/// Where statements come from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) random: Prng,
    pub(super) catalog: Catalog,
    pub(super) tables: Vec<Table>,
    names: u32,
    /// Comes before the next drawn one.
    pending: Option<Step>,
    /// What AUTO_INCREMENT was set to last.
    counter: u64,
}

impl Source {
    pub(super) fn new(seed: u64, catalog: Catalog) -> Self {
        let random = Prng::new(seed);
        Self { random, catalog, tables: Vec::new(), names: 0, pending: None, counter: 0 }
    }

    pub(super) fn next_table(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// The next statement.
    pub(super) fn next(&mut self) -> Step {
        if let Some(step) = self.pending.take() {
            return step;
        }
        if self.tables.len() < TABLES_MIN {
            return define::create(self);
        }
        loop {
            let kind = Kind::draw(&mut self.random);
            let table = self.tables[self.random.index(self.tables.len())].clone();
            let other = self.tables[self.random.index(self.tables.len())].clone();
            let step = define::step(self, kind, &table)
                .or_else(|| change::step(&mut self.random, kind, &table, &other))
                .or_else(|| read::step(&mut self.random, kind, &table, &other))
                .or_else(|| transaction(&mut self.random, kind));
            // A kind that does not fit the tables that there are is drawn again.
            if let Some(step) = step {
                return step;
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.tables.len() >= TABLES_MAX
    }

    /// How many values of AUTO_INCREMENT are lost when a statement fails, passes over rows or brings some of
    /// them along is each engine's business: after such a statement both counters are set to the same value.
    pub(super) fn align_counters(&mut self, step: &Step, refused: bool) {
        use Kind::{Insert, InsertIgnore, InsertReturning, InsertUpdate, Replace};
        let loses = match step.kind {
            Insert | InsertReturning => refused || step.sql.contains("(c0,"),
            InsertIgnore | InsertUpdate | Replace => true,
            _ => false,
        };
        let auto =
            self.tables.iter().find(|table| table.is_auto() && step.tables.contains(&table.name));
        let (true, Some(table)) = (loses, auto) else { return };
        self.counter += 1000;
        let sql = format!("ALTER TABLE {} AUTO_INCREMENT={}", table.name, self.counter);
        self.pending = Some(Step::new(Kind::SetAutoIncrement, &[table], sql));
    }

    /// A new round: no table is left.
    pub(super) fn forget(&mut self) {
        self.tables.clear();
        self.pending = None;
    }

    /// Takes in what a statement that succeeded has done.
    pub(super) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Add(table) => self.tables.push(table),
            Effect::Remove(name) => self.tables.retain(|table| table.name != name),
            Effect::Replace(name, new) => {
                if let Some(table) = self.tables.iter_mut().find(|table| table.name == name) {
                    *table = new;
                }
            }
        }
    }
}

/// Statements about transactions and the session.
fn transaction(random: &mut Prng, kind: Kind) -> Option<Step> {
    let save = random.below(3);
    let sql = match kind {
        Kind::Begin => "BEGIN".to_owned(),
        Kind::Snapshot => "START TRANSACTION WITH CONSISTENT SNAPSHOT".to_owned(),
        Kind::Commit => "COMMIT".to_owned(),
        Kind::Rollback => "ROLLBACK".to_owned(),
        Kind::Savepoint => format!("SAVEPOINT s{save}"),
        Kind::RollbackTo => format!("ROLLBACK TO SAVEPOINT s{save}"),
        Kind::Release => format!("RELEASE SAVEPOINT s{save}"),
        Kind::Isolation => {
            let levels = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", levels[random.index(4)])
        }
        Kind::Autocommit => format!("SET autocommit={}", u8::from(random.chance(3, 4))),
        Kind::SqlMode => {
            let modes = [
                "",
                "STRICT_TRANS_TABLES",
                "STRICT_ALL_TABLES,NO_ZERO_IN_DATE",
                "PAD_CHAR_TO_FULL_LENGTH",
            ];
            format!("SET sql_mode='{}'", modes[random.index(4)])
        }
        _ => return None,
    };
    Some(Step::new(kind, &[], sql))
}
