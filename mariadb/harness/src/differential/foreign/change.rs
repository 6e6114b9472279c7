//! Statements that change rows. A statement that changes several rows has a defined order.

use frondb_core::prng::Prng;

use super::family::{COLUMNS, Family, Table};

/// The highest id that statements use often.
const IDS: u64 = 9;

/// A statement and its kind.
pub(super) type Drawn = (&'static str, String);

/// Draws statements for a family.
pub(super) struct Changes<'a> {
    pub(super) random: &'a mut Prng,
    pub(super) family: &'a Family,
}

impl Changes<'_> {
    pub(super) fn draw(&mut self) -> Drawn {
        match self.random.below(44) {
            0..10 => ("INSERT", self.insert("INSERT INTO", 1)),
            10..13 => ("INSERT of rows", self.insert("INSERT INTO", 3)),
            13..15 => ("INSERT IGNORE", self.insert("INSERT IGNORE INTO", 3)),
            15 => ("INSERT SELECT", self.insert_select()),
            16..18 => {
                let insert = self.insert("INSERT INTO", 1);
                let sets = self.sets();
                (
                    "INSERT ON DUPLICATE KEY UPDATE",
                    format!("{insert} ON DUPLICATE KEY UPDATE {sets}"),
                )
            }
            18..20 => ("REPLACE", self.insert("REPLACE INTO", 2)),
            20..29 => ("UPDATE", self.update("")),
            29..31 => ("UPDATE IGNORE", self.update("IGNORE ")),
            31..33 => self.update_join(),
            33..40 => ("DELETE", self.delete("")),
            40..42 => ("DELETE IGNORE", self.delete("IGNORE ")),
            _ => self.delete_join(),
        }
    }

    fn table(&mut self) -> &Table {
        &self.family.tables[self.random.index(self.family.tables.len())]
    }

    fn value(&mut self, column: &str) -> String {
        match column {
            "id" => (1 + self.random.below(IDS)).to_string(),
            _ if self.random.chance(1, 8) => "NULL".to_owned(),
            "a" => self.family.domains[0].value(self.random).to_owned(),
            "b" => self.family.domains[1].value(self.random).to_owned(),
            "up" => (1 + self.random.below(IDS)).to_string(),
            _ => self.random.below(5).to_string(),
        }
    }

    fn row(&mut self) -> String {
        let mut values: Vec<String> = COLUMNS.iter().map(|column| self.value(column)).collect();
        if self.random.chance(1, 12) {
            values[0] = "NULL".to_owned();
        }
        format!("({})", values.join(", "))
    }

    pub(super) fn insert(&mut self, verb: &str, most: u64) -> String {
        let table = self.table().name;
        let rows: Vec<String> = (0..=self.random.below(most)).map(|_| self.row()).collect();
        format!("{verb} {table} ({}) VALUES {}", COLUMNS.join(", "), rows.join(", "))
    }

    /// Draws INSERTs that fill a table, so that later statements find rows.
    pub(super) fn fill(&mut self, table: &Table) -> Vec<Drawn> {
        let name = table.name;
        let mut all = Vec::new();
        for id in 1..=IDS {
            let values: Vec<String> =
                COLUMNS[1..].iter().map(|column| self.value(column)).collect();
            let columns = COLUMNS.join(", ");
            let sql = format!(
                "INSERT IGNORE INTO {name} ({columns}) VALUES ({id}, {})",
                values.join(", ")
            );
            all.push(("INSERT IGNORE", sql));
        }
        all
    }

    fn insert_select(&mut self) -> String {
        let (to, from) = (self.table().name, self.table().name);
        let which = self.condition("");
        let plus = self.random.below(3) * IDS;
        format!(
            "INSERT INTO {to} ({}) SELECT id + {plus}, a, b, up, v FROM {from} WHERE {which} ORDER BY id",
            COLUMNS.join(", ")
        )
    }

    /// Draws a condition on the table with this alias prefix, such as `x.`.
    fn condition(&mut self, of: &str) -> String {
        let n = 1 + self.random.below(IDS);
        match self.random.below(10) {
            0..3 => format!("{of}id = {n}"),
            3 => format!("{of}id BETWEEN {n} AND {}", n + 2),
            4 => format!("{of}a = {}", self.family.domains[0].value(self.random)),
            5 => format!("{of}b = {}", self.family.domains[1].value(self.random)),
            6 => format!("{of}up = {n}"),
            7 => format!("{of}v > {}", n % 5),
            8 => format!("{of}{} IS NULL", ["a", "b", "up"][self.random.index(3)]),
            _ => format!("{of}id > {}", self.random.below(4)),
        }
    }

    fn sets(&mut self) -> String {
        match self.random.below(16) {
            0..4 => format!("a = {}", self.value("a")),
            4..6 => format!("b = {}", self.value("b")),
            6..8 => format!("a = {}, b = {}", self.value("a"), self.value("b")),
            8..10 => format!("up = {}", self.value("up")),
            10..12 => format!("id = {}", self.value("id")),
            12 => "up = id".to_owned(),
            13 => format!("v = {}", self.value("v")),
            14 => format!("a = {}, up = {}", self.value("a"), self.value("up")),
            _ => "v = 1".to_owned(),
        }
    }

    /// Draws an ORDER BY and sometimes a LIMIT.
    fn order(&mut self) -> String {
        let direction = if self.random.chance(1, 4) { " DESC" } else { "" };
        let limit = match self.random.below(5) {
            0 => format!(" LIMIT {}", 1 + self.random.below(3)),
            _ => String::new(),
        };
        format!("ORDER BY id{direction}{limit}")
    }

    fn update(&mut self, ignore: &str) -> String {
        let (table, which) = (self.table().name, self.condition(""));
        if self.random.chance(1, 10) {
            return format!(
                "UPDATE {ignore}{table} SET id = id + 1 WHERE {which} ORDER BY id DESC"
            );
        }
        let (sets, order) = (self.sets(), self.order());
        format!("UPDATE {ignore}{table} SET {sets} WHERE {which} {order}")
    }

    fn delete(&mut self, ignore: &str) -> String {
        let (table, which, order) = (self.table().name, self.condition(""), self.order());
        format!("DELETE {ignore}FROM {table} WHERE {which} {order}")
    }

    /// Draws a join of two tables in a defined order; none if one of them has no primary key.
    fn join(&mut self) -> Option<String> {
        let (x, y) = (self.table().clone(), self.table().clone());
        let on = ["x.a = y.a", "x.b = y.b", "x.id = y.up", "x.id = y.id"][self.random.index(4)];
        let (x_name, y_name) = (x.name, y.name);
        (!x.primary.is_empty() && !y.primary.is_empty()).then(|| {
            format!("{x_name} x USE INDEX () STRAIGHT_JOIN {y_name} y USE INDEX () ON {on}")
        })
    }

    fn update_join(&mut self) -> Drawn {
        let Some(join) = self.join() else { return ("UPDATE", self.update("")) };
        let which = self.condition("x.");
        let set = match self.random.below(4) {
            0 => format!("x.a = {}, y.v = 7", self.value("a")),
            1 => format!("y.a = {}", self.value("a")),
            2 => format!("x.up = {}, y.up = {}", self.value("up"), self.value("up")),
            _ => format!("x.b = {}, y.b = {}", self.value("b"), self.value("b")),
        };
        ("UPDATE of a join", format!("UPDATE {join} SET {set} WHERE {which}"))
    }

    fn delete_join(&mut self) -> Drawn {
        let Some(join) = self.join() else { return ("DELETE", self.delete("")) };
        let which = self.condition("x.");
        let from = ["x", "y", "x, y", "y, x"][self.random.index(4)];
        let ignore = if self.random.chance(1, 5) { "IGNORE " } else { "" };
        ("DELETE of a join", format!("DELETE {ignore}{from} FROM {join} WHERE {which}"))
    }
}
