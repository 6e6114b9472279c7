//! The kinds of statements, and how often each is drawn.

use frondb_core::prng::Prng;

/// A group of kinds of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Creates or drops tables; in most cases commits the open transaction.
    Define,
    /// ALTER TABLE.
    Alter,
    Change,
    Read,
    Transaction,
    Session,
    Audit,
}

/// Declares the kinds: class, name in the counts, weight.
macro_rules! kinds {
    ($($class:ident { $($(#[$doc:meta])* $kind:ident $name:literal $weight:literal,)* })*) => {
        /// The kind of a statement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind {
            $($($(#[$doc])* $kind,)*)*
        }

        impl Kind {
            pub(super) const ALL: &[Self] = &[$($(Self::$kind,)*)*];

            pub(super) fn name(self) -> &'static str {
                match self { $($(Self::$kind => $name,)*)* }
            }

            pub(super) fn class(self) -> Class {
                match self { $($(Self::$kind => Class::$class,)*)* }
            }

            fn weight(self) -> u64 {
                match self { $($(Self::$kind => $weight,)*)* }
            }
        }
    };
}

kinds! {
    Define {
        CreateTable "CREATE TABLE" 60,
        CreateLike "CREATE TABLE LIKE" 40,
        CreateSelect "CREATE TABLE SELECT" 40,
        DropTable "DROP TABLE" 60,
        Truncate "TRUNCATE" 10,
        RenameTable "RENAME TABLE" 8,
    }
    Alter {
        AddColumn "ADD COLUMN" 24,
        DropColumn "DROP COLUMN" 12,
        ModifyColumn "MODIFY COLUMN" 14,
        RenameColumn "RENAME COLUMN" 10,
        AddIndex "ADD INDEX" 14,
        AddUnique "ADD UNIQUE" 24,
        DropIndex "DROP INDEX" 12,
        AddPrimary "ADD PRIMARY KEY" 60,
        DropPrimary "DROP PRIMARY KEY" 16,
        Rebuild "ALTER TABLE FORCE" 12,
        Partition "PARTITION BY" 100,
        SetAutoIncrement "AUTO_INCREMENT =" 10,
    }
    Change {
        Insert "INSERT" 160,
        InsertIgnore "INSERT IGNORE" 40,
        InsertUpdate "INSERT ON DUPLICATE KEY UPDATE" 50,
        InsertSelect "INSERT SELECT" 40,
        InsertReturning "INSERT RETURNING" 30,
        Replace "REPLACE" 50,
        Update "UPDATE" 60,
        UpdateOrdered "UPDATE ORDER BY LIMIT" 40,
        UpdateIgnore "UPDATE IGNORE" 30,
        UpdateJoin "UPDATE of a join" 20,
        Delete "DELETE" 30,
        DeleteOrdered "DELETE ORDER BY LIMIT" 30,
        DeleteJoin "DELETE of a join" 10,
        DeleteReturning "DELETE RETURNING" 12,
    }
    Read {
        Point "SELECT by key" 50,
        Range "SELECT of a range" 60,
        Ordered "SELECT ORDER BY key LIMIT" 50,
        Reverse "SELECT ORDER BY key DESC LIMIT" 50,
        Covering "SELECT of a key alone" 50,
        Either "SELECT by two keys with OR" 30,
        Group "SELECT GROUP BY" 30,
        Distinct "SELECT DISTINCT" 20,
        Extremes "SELECT MIN, MAX" 30,
        Join "SELECT of a join" 20,
        Subquery "SELECT IN (SELECT)" 20,
        ForUpdate "SELECT FOR UPDATE" 20,
        InShareMode "SELECT LOCK IN SHARE MODE" 20,
        Checksum "CHECKSUM TABLE" 10,
    }
    Transaction {
        Begin "BEGIN" 50,
        Snapshot "START TRANSACTION WITH CONSISTENT SNAPSHOT" 10,
        Commit "COMMIT" 40,
        Rollback "ROLLBACK" 30,
        Savepoint "SAVEPOINT" 60,
        RollbackTo "ROLLBACK TO SAVEPOINT" 190,
        Release "RELEASE SAVEPOINT" 130,
    }
    Session {
        Isolation "SET TRANSACTION ISOLATION LEVEL" 8,
        Autocommit "SET autocommit" 10,
        SqlMode "SET sql_mode" 8,
        Plans "SET optimizer_switch" 16,
        Options "SET frondb_default_*" 10,
    }
    Audit {
        /// Reads a whole table, every [`super::AUDIT_EVERY`] statements.
        Audit "(audit)" 0,
    }
}

impl Kind {
    /// Draws a kind by its weight.
    pub(super) fn draw(random: &mut Prng) -> Self {
        let mut left = random.below(Self::ALL.iter().map(|kind| kind.weight()).sum());
        for &kind in Self::ALL {
            if left < kind.weight() {
                return kind;
            }
            left -= kind.weight();
        }
        Self::Commit
    }

    /// Whether a statement of this kind defines or alters a table; in most cases it commits the
    /// open transaction.
    pub(super) fn defines(self) -> bool {
        matches!(self.class(), Class::Define | Class::Alter)
    }
}
