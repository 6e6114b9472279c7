//! A family of tables that refer to one another. All tables have the same columns, so that any
//! column can refer to any table and each statement suits all tables:
//!
//! ```text
//!   id INT   a DOMAIN   b DOMAIN   up INT   v INT   [w: generated from up]
//! ```
//!
//! The tables differ in nullability, in types of the same domain, and in keys.

use frondb_core::prng::Prng;

use super::domain::Domain;

pub(super) const NAMES: [&str; 4] = ["p", "c", "g", "d"];
/// The columns of all tables.
pub(super) const COLUMNS: [&str; 5] = ["id", "a", "b", "up", "v"];
const ACTIONS: [&str; 4] = ["RESTRICT", "NO ACTION", "CASCADE", "SET NULL"];

/// Columns of a child and the referenced columns of its parent.
type Pair = (&'static [&'static str], &'static [&'static str]);

const PAIRS: [Pair; 9] = [
    (&["a"], &["a"]),
    (&["a"], &["a"]),
    (&["b"], &["b"]),
    (&["a", "b"], &["a", "b"]),
    (&["b", "a"], &["b", "a"]),
    (&["up"], &["id"]),
    (&["up"], &["id"]),
    (&["up"], &["up"]),
    (&["id"], &["id"]),
];

/// The columns of a foreign key from a table to itself. By two equal columns every row would be its
/// own parent. InnoDB refuses such a row, because it looks for the parent before it writes to the
/// child's index; FronDB accepts the row, as the SQL standard does.
const ITSELF: Pair = (&["up"], &["id"]);

/// Keys other than the primary key: name, definition, columns.
const KEYS: [(&str, &str, &[&str]); 10] = [
    ("ua", "UNIQUE KEY ua (a)", &["a"]),
    ("ub", "UNIQUE KEY ub (b)", &["b"]),
    ("uab", "UNIQUE KEY uab (a, b)", &["a", "b"]),
    ("ka", "KEY ka (a)", &["a"]),
    ("kb", "KEY kb (b)", &["b"]),
    ("kab", "KEY kab (a, b)", &["a", "b"]),
    ("kba", "KEY kba (b, a)", &["b", "a"]),
    ("kdab", "KEY kdab (a DESC, b)", &["a", "b"]),
    ("kup", "KEY kup (up)", &["up"]),
    ("kupv", "KEY kupv (up DESC, v)", &["up", "v"]),
];

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Columns of the primary key; empty if the table has none.
    pub(super) primary: &'static [&'static str],
    /// Definitions of columns and keys, and foreign keys.
    clauses: Vec<String>,
    /// Columns of each key.
    keys: Vec<Vec<&'static str>>,
    pub(super) not_null: Vec<&'static str>,
}

/// A foreign key in the model: its tables and columns.
#[derive(Debug, Clone)]
struct Connection {
    child: usize,
    parent: usize,
    columns: &'static [&'static str],
    /// Whether an update of the parent changes rows of the child.
    is_updated: bool,
}

/// A family of tables, parents first.
#[derive(Debug, Clone)]
pub(super) struct Family {
    pub(super) tables: Vec<Table>,
    /// The domains of the columns a and b.
    pub(super) domains: [Domain; 2],
    /// Number of foreign keys that have been named so far.
    foreign: usize,
    /// Whether foreign_key_checks is off at times, so that rows may lack their parents.
    has_orphans: bool,
    /// The foreign keys so far.
    connected: Vec<Connection>,
}

impl Family {
    pub(super) fn draw(random: &mut Prng, has_orphans: bool) -> Self {
        let domains = [Domain::draw(random), Domain::draw(random)];
        let count = if random.chance(1, 4) { 4 } else { 3 };
        let mut family =
            Self { tables: Vec::new(), domains, foreign: 0, has_orphans, connected: Vec::new() };
        for name in &NAMES[..count] {
            let table = Table::draw(random, name, &domains);
            family.tables.push(table);
        }
        for child in 0..count {
            let mut parents: Vec<usize> = Vec::new();
            if child > 0 {
                // The parent is the table before; sometimes twice, sometimes also an earlier table.
                parents.push(child - 1);
                if random.chance(1, 3) {
                    parents.push(child - 1);
                }
                if random.chance(1, 4) {
                    parents.push(random.index(child));
                }
            }
            if random.chance(1, 4) {
                parents.push(child);
            }
            for parent in parents {
                let clause = family.foreign_key(random, child, parent);
                family.tables[child].clauses.extend(clause);
            }
        }
        family
    }

    /// Draws the clause of a foreign key; none if no pair of columns fits.
    pub(super) fn foreign_key(
        &mut self,
        random: &mut Prng,
        child: usize,
        parent: usize,
    ) -> Option<String> {
        let (columns, referenced) = (0..40).find_map(|_| self.pair(random, child, parent))?;
        let shares = self.sharing(child, columns).next().is_some();
        let moves_second =
            self.moves_row(child, columns) && self.between(child, parent).next().is_some();
        let at = (child, parent);
        let parent = &self.tables[parent];
        let child = &self.tables[child];
        let not_null = columns.iter().any(|column| child.not_null.contains(column));
        let mut action = || {
            let action = ACTIONS[random.index(ACTIONS.len())];
            // Both engines refuse SET NULL for columns that are NOT NULL; keep a few such keys.
            if action == "SET NULL" && not_null && random.chance(19, 20) {
                "CASCADE"
            } else {
                action
            }
        };
        let (delete, mut update) = (action(), action());
        // InnoDB accepts most foreign keys whose action copies a NULL into a NOT NULL column. A
        // server with such a column in a primary key has crashed.
        let gets_null = columns
            .iter()
            .zip(referenced)
            .any(|(own, other)| child.not_null.contains(own) && !parent.not_null.contains(other));
        if update == "CASCADE" && gets_null && delete != "RESTRICT" {
            update = "NO ACTION";
        }
        if shares || moves_second {
            update = "NO ACTION";
        }
        let is_updated = matches!(update, "CASCADE" | "SET NULL");
        let mut clause = |event: &str, action: &str| {
            // RESTRICT is the default action.
            let is_shown = action != "RESTRICT" || random.chance(1, 2);
            if is_shown { format!(" {event} {action}") } else { String::new() }
        };
        let (delete, update) = (clause("ON DELETE", delete), clause("ON UPDATE", update));
        let parent = parent.name;
        self.connected.push(Connection { child: at.0, parent: at.1, columns, is_updated });
        let name = if random.chance(1, 2) {
            self.foreign += 1;
            format!("CONSTRAINT x{} ", self.foreign)
        } else {
            String::new()
        };
        Some(format!(
            "{name}FOREIGN KEY ({}) REFERENCES {} ({}){delete}{update}",
            columns.join(", "),
            parent,
            referenced.join(", ")
        ))
    }

    fn between(&self, child: usize, parent: usize) -> impl Iterator<Item = &Connection> {
        let of = move |other: &&Connection| other.child == child && other.parent == parent;
        self.connected.iter().filter(of)
    }

    /// Whether one of these columns is in the key by which InnoDB clusters the table.
    fn moves_row(&self, table: usize, columns: &[&str]) -> bool {
        match self.tables[table].primary {
            [] => columns.contains(&"id"),
            primary => primary.iter().any(|column| columns.contains(column)),
        }
    }

    /// The foreign keys of table `child` that use one of these columns.
    fn sharing(
        &self,
        child: usize,
        columns: &'static [&'static str],
    ) -> impl Iterator<Item = &Connection> {
        let of = move |other: &&Connection| {
            other.child == child && other.columns.iter().any(|column| columns.contains(column))
        };
        self.connected.iter().filter(of)
    }

    /// Draws the columns of a foreign key; none if these two tables cannot have it.
    fn pair(&self, random: &mut Prng, child: usize, parent: usize) -> Option<Pair> {
        let pair = if child == parent { ITSELF } else { PAIRS[random.index(PAIRS.len())] };
        let has_key = self.tables[parent].keys.iter().any(|key| key.starts_with(pair.1));
        // Each InnoDB index entry ends with the columns of the primary key, and InnoDB counts them
        // as columns of the index. FronDB requires all columns in the definition of a child's index
        // and of a unique index. The ALTERs of this test add no unique index.
        let extends =
            |table: &Table| table.primary.iter().any(|column| ["a", "b"].contains(column));
        let referenced = &self.tables[parent];
        let may_extend = pair.0.len() > 1
            && (extends(&self.tables[child])
                || (extends(referenced) && referenced.has_unique_column()));
        let has_key = has_key || referenced.completes(pair.1);
        // Avoid a row that refers to one parent by two foreign keys. The action of one key makes a
        // child row whose parent InnoDB does not find by the other key, because InnoDB has not
        // written the parent yet; FronDB has. The second path to the parent may lead through
        // another table.
        let is_second =
            self.sharing(child, pair.0).any(|other| other.parent == parent || other.is_updated);
        // InnoDB also checks all other foreign keys of a child if an action changes its primary
        // key.
        let moves_row =
            |other: &Connection| other.is_updated && self.moves_row(child, other.columns);
        let is_second = is_second || self.between(child, parent).any(moves_row);
        // A few foreign keys refer to columns without a key, and both engines refuse them. While
        // foreign_key_checks is off, both engines accept such a foreign key. Then InnoDB does not
        // look for the children of a row, and FronDB refuses every change of the rows.
        let has_key = has_key || (!self.has_orphans && random.chance(1, 100));
        (has_key && !may_extend && !is_second).then_some(pair)
    }

    /// Draws a name that a foreign key of this table may have.
    pub(super) fn foreign_name(&self, random: &mut Prng, table: &str) -> String {
        if self.foreign > 0 && random.chance(1, 2) {
            format!("x{}", 1 + random.index(self.foreign))
        } else {
            format!("{table}_ibfk_{}", 1 + random.below(2))
        }
    }
}

impl Table {
    /// Whether a unique key consists only of the column a or b.
    fn has_unique_column(&self) -> bool {
        let is_one = |clause: &String| {
            clause.starts_with("UNIQUE KEY ua ") || clause.starts_with("UNIQUE KEY ub ")
        };
        self.clauses.iter().any(is_one)
    }

    /// Whether an index on the first of these two columns also has the second, since its entries
    /// end with the primary key.
    fn completes(&self, columns: &[&str]) -> bool {
        let is_first = |key: &Vec<&str>| key.as_slice() == &columns[..1];
        columns.len() > 1
            && self.primary.first() == columns.last()
            && self.keys.iter().any(is_first)
    }

    fn draw(random: &mut Prng, name: &'static str, domains: &[Domain; 2]) -> Self {
        let mut not_null = vec!["id"];
        let primary: &'static [&'static str] = match random.below(10) {
            0 => &["a"],
            1 => &["a", "b"],
            2 => &["b", "id"],
            3 => &[],
            _ => &["id"],
        };
        let mut null = |random: &mut Prng, column: &'static str| {
            if primary.contains(&column) || random.chance(1, 6) {
                not_null.push(column);
                " NOT NULL"
            } else {
                ""
            }
        };
        let automatic = if random.chance(1, 4) { " AUTO_INCREMENT" } else { "" };
        let mut clauses = vec![
            format!("id INT NOT NULL{automatic}"),
            format!("a {}{}", domains[0].ty(random), null(random, "a")),
            format!("b {}{}", domains[1].ty(random), null(random, "b")),
            format!("up INT{}", null(random, "up")),
            "v INT".to_owned(),
        ];
        let mut keys: Vec<Vec<&'static str>> = Vec::new();
        if !primary.is_empty() {
            clauses.push(format!("PRIMARY KEY ({})", primary.join(", ")));
            keys.push(primary.to_vec());
        }
        if primary != ["id"] {
            clauses.push("UNIQUE KEY uid (id)".to_owned());
            keys.push(vec!["id"]);
        }
        for (_, definition, columns) in KEYS {
            if random.chance(1, 4) {
                clauses.push(definition.to_owned());
                keys.push(columns.to_vec());
            }
        }
        if random.chance(1, 6) {
            clauses.push("w INT AS (up + 1) VIRTUAL, KEY kw (w)".to_owned());
        }
        Self { name, primary, clauses, keys, not_null }
    }

    pub(super) fn create(&self) -> String {
        format!("CREATE TABLE {} ({})", self.name, self.clauses.join(", "))
    }
}

/// Draws a key that a table may have: the name by which it can be dropped, and its definition.
pub(super) fn key(random: &mut Prng) -> (&'static str, &'static str) {
    let (name, definition, _) = KEYS[random.index(KEYS.len())];
    (name, definition)
}
