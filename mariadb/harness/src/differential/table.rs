//! The test's model of a table: what is necessary to write statements for it.

use frondb_core::prng::Prng;

use super::catalog::{Catalog, Family, Type};
use super::values::literal;

/// Most characters of a text in this test. A key of a TINYTEXT can hold as many.
const WHOLE_TEXT: u32 = 60;

/// Columns with a collation in a new table. Many, since there are more than a thousand collations.
const COLLATED: u32 = 9;

/// A column. The first column of a table is a number, which joins use.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) nullable: bool,
    /// Text after the type: AUTO_INCREMENT, a DEFAULT, or the expression of a generated column.
    pub(super) tail: String,
    pub(super) generated: bool,
}

impl Column {
    pub(super) fn has_default(&self) -> bool {
        self.tail.contains("DEFAULT")
    }

    /// The column's text in CREATE TABLE and ALTER TABLE.
    pub(super) fn sql(&self) -> String {
        // A generated column cannot be NOT NULL.
        let null = if self.nullable || self.generated { "" } else { " NOT NULL" };
        format!("{} {}{null}{}", self.name, self.ty.sql, self.tail)
    }
}

/// A key option that InnoDB does not accept.
pub(super) const CLUSTERING: &str = " CLUSTERING=YES";

/// A part of a key.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) column: String,
    /// Whether the part is a prefix that may be shorter than a text of this test.
    cuts_text: bool,
    sql: String,
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) parts: Vec<Part>,
    /// Whether all parts are whole columns.
    pub(super) whole: bool,
    /// Whether the key's entries contain whole rows, in FronDB only.
    pub(super) clustering: bool,
}

impl Key {
    pub(super) fn sql(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.sql.as_str()).collect();
        let parts = parts.join(",");
        match (self.name.as_str(), self.unique) {
            ("PRIMARY", _) => format!("PRIMARY KEY ({parts})"),
            (name, unique) => {
                let kind = if unique { "UNIQUE KEY" } else { "KEY" };
                let option = if self.clustering { CLUSTERING } else { "" };
                format!("{kind} {name} ({parts}){option}")
            }
        }
    }

    /// The columns of the key, for ORDER BY.
    pub(super) fn columns(&self) -> Vec<&str> {
        self.parts.iter().map(|part| part.column.as_str()).collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) temporary: bool,
    pub(super) partitioned: bool,
    /// Whether the unique keys may be in another order in the server than in InnoDB. After an ALTER
    /// TABLE, InnoDB puts a new key after the others until it copies the table.
    pub(super) reordered: bool,
    pub(super) columns: Vec<Column>,
    pub(super) keys: Vec<Key>,
    /// Number of names given so far; makes each new name unique.
    pub(super) names: u32,
}

impl Table {
    /// Draws a new table with columns and keys.
    pub(super) fn draw(random: &mut Prng, catalog: &mut Catalog, name: String) -> Self {
        let temporary = random.chance(1, 12);
        let mut table = Self {
            name,
            temporary,
            partitioned: false,
            reordered: false,
            columns: Vec::new(),
            keys: Vec::new(),
            names: 0,
        };
        table.add_first(random);
        for _ in 0..2 + random.below(4) {
            let column = table.draw_column(random, catalog, |_| true);
            table.columns.push(column);
        }
        for _ in 0..COLLATED {
            let column = table.draw_column(random, catalog, Family::has_collation);
            table.columns.push(column);
        }
        if random.chance(1, 4) {
            let column = table.draw_generated(random);
            table.columns.push(column);
        }
        if table.columns[0].tail.is_empty() && random.chance(3, 4) {
            table.keys.push(table.draw_key(random, "PRIMARY".into(), true));
        }
        for _ in 0..random.below(4) {
            let name = table.next_name("k");
            let unique = random.chance(1, 3);
            let key = table.draw_key(random, name, unique);
            table.keys.push(key);
        }
        let others_unique = table.keys.iter().any(|key| key.unique && key.name != "PRIMARY");
        table.partitioned = table.primary().is_some_and(|key| key.whole)
            && !others_unique
            && !temporary
            && !table.columns.iter().any(|column| column.ty.family == Family::Geometry)
            && random.chance(1, 5);
        if table.partitioned {
            table.keys.iter_mut().for_each(|key| key.clustering = false);
        }
        table
    }

    /// Adds the first column, a number that joins use. Sometimes it is the primary key, with
    /// AUTO_INCREMENT.
    fn add_first(&mut self, random: &mut Prng) {
        let mut first = Column {
            name: "c0".into(),
            ty: Type::integer(),
            nullable: random.chance(1, 2),
            tail: String::new(),
            generated: false,
        };
        if random.chance(1, 5) {
            first.tail = " AUTO_INCREMENT".into();
            first.nullable = false;
            let part = Part { column: "c0".into(), cuts_text: false, sql: "c0".into() };
            let key = Key {
                name: "PRIMARY".into(),
                unique: true,
                parts: vec![part],
                whole: true,
                clustering: false,
            };
            self.keys.push(key);
        }
        self.columns.push(first);
        self.names = 1;
    }

    pub(super) fn next_name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    pub(super) fn draw_column(
        &mut self,
        random: &mut Prng,
        catalog: &mut Catalog,
        fits: impl Fn(Family) -> bool,
    ) -> Column {
        let ty = catalog.draw(random, fits);
        let nullable = random.chance(2, 3) || ty.family == Family::Geometry;
        let no_default = [Family::Geometry, Family::Json].contains(&ty.family);
        let tail = if random.chance(1, 4) && !no_default {
            format!(" DEFAULT {}", literal(random, &ty, nullable))
        } else {
            String::new()
        };
        Column { name: self.next_name("c"), ty, nullable, tail, generated: false }
    }

    pub(super) fn draw_generated(&mut self, random: &mut Prng) -> Column {
        let from = self.columns[random.index(self.columns.len())].name.clone();
        let expression =
            if random.chance(1, 2) { "c0 % 7".into() } else { format!("LENGTH({from})") };
        // The server does not accept an AUTO_INCREMENT column in an expression.
        let is_auto = self.columns[0].tail.contains("AUTO_INCREMENT");
        let expression = if is_auto { "5".into() } else { expression };
        let kind = if random.chance(1, 2) { "VIRTUAL" } else { "STORED" };
        Column {
            name: self.next_name("g"),
            ty: Type::integer(),
            nullable: true,
            tail: format!(" AS ({expression}) {kind}"),
            generated: true,
        }
    }

    /// Draws a key of one to three columns.
    pub(super) fn draw_key(&self, random: &mut Prng, name: String, unique: bool) -> Key {
        let primary = name == "PRIMARY";
        let mut columns: Vec<&Column> = self
            .columns
            .iter()
            .filter(|column| column.ty.family != Family::Geometry && !(primary && column.generated))
            .collect();
        random.shuffle(&mut columns);
        let mut whole = true;
        let mut parts = Vec::new();
        for column in columns.into_iter().take(1 + random.index(3)) {
            let mut sql = column.name.clone();
            let family = column.ty.family;
            let short = random.chance(1, 5);
            let mut cuts_text = false;
            match family {
                Family::Text { .. } if short => {
                    sql = format!("{sql}({})", 1 + random.below(5));
                    cuts_text = true;
                }
                Family::Text { long: true } => sql = format!("{sql}({WHOLE_TEXT})"),
                _ if family.needs_prefix() || (short && matches!(family, Family::Bytes { .. })) => {
                    sql = format!("{sql}({})", 1 + random.below(5));
                }
                _ => {}
            }
            whole &= !sql.ends_with(')');
            if random.chance(1, 5) {
                sql.push_str(" DESC");
            }
            parts.push(Part { column: column.name.clone(), cuts_text, sql });
        }
        // In a partitioned table, the server would look for the options of a key among the options
        // of the partitioning.
        let clustering = !primary && !self.partitioned && random.chance(1, 6);
        Key { name, unique, parts, whole, clustering }
    }

    pub(super) fn primary(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == "PRIMARY")
    }

    /// Whether the order of the unique keys decides with which row a new row collides.
    pub(super) fn has_rivals(&self) -> bool {
        self.reordered && self.keys.iter().filter(|key| key.unique).count() > 1
    }

    /// Columns that order the rows totally; none if the test knows no such columns.
    pub(super) fn total_order(&self) -> Option<String> {
        let primary = self.primary().filter(|key| key.whole)?;
        Some(primary.columns().join(","))
    }

    /// Whether a unique key contains this column, itself or in a generated column.
    pub(super) fn is_in_unique(&self, column: &Column) -> bool {
        // A generated column changes with the columns that it uses, so count its keys for any
        // column.
        let holds = |name: &str| {
            name == column.name || self.columns.iter().any(|c| c.name == name && c.generated)
        };
        self.keys.iter().any(|key| key.unique && key.parts.iter().any(|part| holds(&part.column)))
    }

    /// Whether a search by a key finds other texts of this column than a search without a key. This
    /// occurs with any engine, and the server may use either search. A key on a prefix of the text
    /// misses some texts if one letter weighs as much as two (`<= 'ss'` misses eszett). A CHAR has
    /// all its spaces in keys and none elsewhere, which matters for collations without padding.
    pub(super) fn depends_on_plan(&self, column: &Column) -> bool {
        let collation = column.ty.collation.as_deref().unwrap_or_default();
        let counts_spaces = column.ty.name == "char" && collation.contains("nopad");
        // In these collations each letter has exactly one weight.
        let is_simple = collation.ends_with("_bin") || collation.ends_with("_general_ci");
        let mut parts = self.keys.iter().flat_map(|key| &key.parts);
        parts.any(|part| {
            (part.cuts_text && !is_simple || counts_spaces) && part.column == column.name
        })
    }

    /// The collations of the table's columns.
    pub(super) fn collations(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|column| column.ty.collation.as_deref())
    }

    pub(super) fn is_auto(&self) -> bool {
        self.columns[0].tail.contains("AUTO_INCREMENT")
    }

    /// Columns that statements may set.
    pub(super) fn settable(&self) -> Vec<&Column> {
        self.columns.iter().filter(|column| !column.generated).collect()
    }

    /// The CREATE TABLE statement, with the session's engine.
    pub(super) fn create(&self) -> String {
        let columns = self.columns.iter().map(Column::sql);
        let all: Vec<String> = columns.chain(self.keys.iter().map(Key::sql)).collect();
        format!(
            "CREATE {}TABLE {} ({}){}",
            if self.temporary { "TEMPORARY " } else { "" },
            self.name,
            all.join(", "),
            if self.partitioned { " PARTITION BY KEY () PARTITIONS 3" } else { "" }
        )
    }
}
