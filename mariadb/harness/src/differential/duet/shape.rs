//! The table of the two connections: a primary key of one or two parts, or none, and various other
//! keys.

use frondb_core::prng::Prng;

/// A key: name, definition, and a condition that the server can read as a range of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    definition: &'static str,
    pub(super) all: &'static str,
    /// The columns of the key; empty if its entries have only a prefix of a column.
    pub(super) columns: &'static str,
    is_clustering: bool,
}

const fn key(
    name: &'static str,
    definition: &'static str,
    all: &'static str,
    columns: &'static str,
) -> Key {
    Key { name, definition, all, columns, is_clustering: false }
}

const fn clustering(key: Key) -> Key {
    Key { is_clustering: true, ..key }
}

const KEYS: [Key; 8] = [
    key("k_g", "KEY k_g (g)", "g >= 0", "g"),
    key("k_u", "UNIQUE KEY k_u (u)", "u >= 0", "u"),
    key("k_gv", "KEY k_gv (g, v)", "g >= 0", "g, v"),
    key("k_vd", "KEY k_vd (v DESC)", "v >= 0", "v"),
    key("k_s2", "KEY k_s2 (s(2), g)", "s >= ''", ""),
    clustering(key("k_s", "KEY k_s (s)", "s >= ''", "s")),
    clustering(key("k_ug", "UNIQUE KEY k_ug (v, u)", "v >= 0", "v, u")),
    key("k_su", "UNIQUE KEY k_su (s, u)", "s >= ''", "s, u"),
];

#[derive(Debug, Clone)]
pub(super) struct Shape {
    primary: &'static str,
    pub(super) keys: Vec<Key>,
}

impl Shape {
    pub(super) fn draw(random: &mut Prng) -> Self {
        let primaries = [", PRIMARY KEY (id)", ", PRIMARY KEY (s, id)", ""];
        // Most tables have a primary key of one part.
        let primary = primaries[random.index(5).saturating_sub(2)];
        let keys = KEYS.into_iter().filter(|_| random.chance(1, 2)).collect();
        Self { primary, keys }
    }

    /// Whether ORDER BY can order all rows.
    pub(super) fn has_order(&self) -> bool {
        !self.primary.is_empty()
    }

    /// Whether a unique key contains this column, so that the key can refuse a row.
    pub(super) fn is_unique(&self, column: &str) -> bool {
        let of = |key: &Key| key.columns.split(", ").any(|part| part == column);
        self.keys.iter().any(|key| key.definition.starts_with("UNIQUE") && of(key))
    }

    pub(super) fn create(&self, engine: &str, knows_clustering: bool) -> String {
        let mut keys = String::new();
        for key in &self.keys {
            let option = if key.is_clustering && knows_clustering { " CLUSTERING=YES" } else { "" };
            keys.push_str(&format!(", {}{option}", key.definition));
        }
        format!(
            "CREATE OR REPLACE TABLE t (id INT NOT NULL, s VARCHAR(12) NOT NULL, g INT, u INT, v INT{}{keys}) \
             ENGINE={engine}",
            self.primary
        )
    }

    pub(super) fn fill(&self) -> String {
        let rows: Vec<String> = (1..=8)
            .map(|i| {
                format!("({i}, '{}', {}, {i}, {})", TEXTS[i % TEXTS.len()], i % 4, 10 * (i % 3))
            })
            .collect();
        format!("INSERT INTO t VALUES {}", rows.join(", "))
    }

    /// A query that reads the table by each of its keys and without a key. Each row of the result
    /// names the key.
    pub(super) fn look(&self) -> String {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        let none = if names.is_empty() {
            String::new()
        } else {
            format!("IGNORE INDEX ({})", names.join(", "))
        };
        let mut ways = vec![format!("SELECT 'rows', id, s, g, u, v FROM t {none}")];
        for key in &self.keys {
            let Key { name, all, columns, .. } = key;
            let from = format!("FROM t FORCE INDEX ({name}) WHERE {all}");
            ways.push(format!("SELECT '{name}', id, s, g, u, v {from}"));
            if !columns.is_empty() {
                let padded = format!("{columns}, NULL, NULL, NULL, NULL");
                let padded: Vec<&str> = padded.split(", ").take(5).collect();
                ways.push(format!("SELECT '{name} alone', {} {from}", padded.join(", ")));
            }
        }
        ways.join(" UNION ALL ")
    }
}

/// Texts, some of which have the same first two characters.
pub(super) const TEXTS: [&str; 5] = ["a", "ab", "abc", "b", "ba"];
