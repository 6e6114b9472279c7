//! The types and collations of columns, and counts of their use.
//!
//! The least used type or collation is drawn next, so that a run of some thousand statements uses
//! every type and collation.

use std::collections::BTreeMap;
use std::sync::Arc;

use frondb_core::prng::Prng;

use super::pieces::{PIECES, hex};
use crate::client::Client;
use crate::error::{Error, Result};

/// How often every kind of statement, type and collation must occur in a run of 20,000 statements.
pub const LEAST: u64 = 50;

/// A group of types with the same form of literals, and the same form of key parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Integer { bits: u32, unsigned: bool },
    Decimal,
    Float,
    Bit(u32),
    Date,
    Time,
    DateTime,
    Year,
    Text { long: bool },
    Bytes { long: bool },
    Enum,
    Set,
    Json,
    Uuid,
    Inet4,
    Inet6,
    Geometry,
}

impl Family {
    /// Whether columns of this family have a collation.
    pub(super) fn has_collation(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Enum | Self::Set)
    }

    /// Whether a key on such a column must give a prefix length.
    pub(super) fn needs_prefix(self) -> bool {
        matches!(self, Self::Text { long: true } | Self::Bytes { long: true } | Self::Json)
    }
}

/// Types: name, text in CREATE TABLE, and family.
const TYPES: [(&str, &str, Family); 43] = [
    ("tinyint", "TINYINT", Family::Integer { bits: 8, unsigned: false }),
    ("tinyint unsigned", "TINYINT UNSIGNED", Family::Integer { bits: 8, unsigned: true }),
    ("smallint", "SMALLINT", Family::Integer { bits: 16, unsigned: false }),
    ("smallint unsigned", "SMALLINT UNSIGNED", Family::Integer { bits: 16, unsigned: true }),
    ("mediumint", "MEDIUMINT", Family::Integer { bits: 24, unsigned: false }),
    ("mediumint unsigned", "MEDIUMINT UNSIGNED", Family::Integer { bits: 24, unsigned: true }),
    ("int", "INT", Family::Integer { bits: 32, unsigned: false }),
    ("int unsigned", "INT UNSIGNED", Family::Integer { bits: 32, unsigned: true }),
    ("bigint", "BIGINT", Family::Integer { bits: 64, unsigned: false }),
    ("bigint unsigned", "BIGINT UNSIGNED", Family::Integer { bits: 64, unsigned: true }),
    ("decimal", "DECIMAL(9,3)", Family::Decimal),
    ("decimal unsigned", "DECIMAL(20,5) UNSIGNED", Family::Decimal),
    ("float", "FLOAT", Family::Float),
    ("double", "DOUBLE", Family::Float),
    ("bit(1)", "BIT(1)", Family::Bit(1)),
    ("bit(13)", "BIT(13)", Family::Bit(13)),
    ("bit(64)", "BIT(64)", Family::Bit(64)),
    ("date", "DATE", Family::Date),
    ("time", "TIME", Family::Time),
    ("time(6)", "TIME(6)", Family::Time),
    ("datetime", "DATETIME", Family::DateTime),
    ("datetime(3)", "DATETIME(3)", Family::DateTime),
    ("timestamp", "TIMESTAMP NULL", Family::DateTime),
    ("timestamp(4)", "TIMESTAMP(4) NULL", Family::DateTime),
    ("year", "YEAR", Family::Year),
    ("char", "CHAR(7)", Family::Text { long: false }),
    ("varchar", "VARCHAR(20)", Family::Text { long: false }),
    ("varchar(300)", "VARCHAR(300)", Family::Text { long: true }),
    ("tinytext", "TINYTEXT", Family::Text { long: true }),
    ("text", "TEXT", Family::Text { long: true }),
    ("mediumtext", "MEDIUMTEXT", Family::Text { long: true }),
    ("longtext", "LONGTEXT", Family::Text { long: true }),
    ("binary", "BINARY(6)", Family::Bytes { long: false }),
    ("varbinary", "VARBINARY(15)", Family::Bytes { long: false }),
    ("tinyblob", "TINYBLOB", Family::Bytes { long: true }),
    ("blob", "BLOB", Family::Bytes { long: true }),
    ("longblob", "LONGBLOB", Family::Bytes { long: true }),
    ("enum", "ENUM('b','a','c d','')", Family::Enum),
    ("set", "SET('x','y','z','w')", Family::Set),
    ("json", "JSON", Family::Json),
    ("uuid", "UUID", Family::Uuid),
    ("inet4", "INET4", Family::Inet4),
    ("inet6", "INET6", Family::Inet6),
];

/// Names of the types of [`Family::Geometry`].
const GEOMETRIES: [&str; 4] = ["geometry", "point", "linestring", "polygon"];

/// The type of a column.
#[derive(Debug, Clone)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) family: Family,
    pub(super) collation: Option<String>,
    /// The pieces for most texts of the column: those that its character set can represent.
    pub(super) pieces: Arc<[&'static str]>,
}

impl Type {
    /// The type of each table's first column.
    pub(super) fn integer() -> Self {
        let family = Family::Integer { bits: 32, unsigned: false };
        Self::new("int", "INT".into(), family)
    }

    fn new(name: &str, sql: String, family: Family) -> Self {
        Self { name: name.to_owned(), sql, family, collation: None, pieces: PIECES.into() }
    }
}

/// The types and collations, with counts of their use.
#[derive(Debug)]
pub(super) struct Catalog {
    types: Vec<Type>,
    /// Collations, each with its character set.
    collations: Vec<(String, String)>,
    /// For each character set, the pieces of texts that it can represent.
    pieces: BTreeMap<String, Arc<[&'static str]>>,
    /// Number of draws so far, by name of type or collation.
    drawn: BTreeMap<String, u64>,
    /// For each collation, the number of statements that succeeded on tables that use it.
    met: BTreeMap<String, u64>,
}

impl Catalog {
    /// Reads the server's collations.
    pub(super) fn read(client: &mut Client) -> Result<Self> {
        let known = client.query(
            "SELECT full_collation_name, character_set_name \
             FROM information_schema.collation_character_set_applicability \
             WHERE character_set_name NOT IN ('binary', 'filename') ORDER BY 1, 2",
        )?;
        let collations: Vec<_> = known
            .rows
            .iter()
            .filter_map(|row| match row.as_slice() {
                [Some(name), Some(charset)] => Some((lossy(name), lossy(charset))),
                _ => None,
            })
            .collect();
        if collations.is_empty() {
            return Err(Error::Harness("the server has no collations".into()));
        }
        let plain = TYPES.map(|(name, sql, family)| (name, sql.to_owned(), family));
        let shapes = GEOMETRIES.map(|name| (name, name.to_uppercase(), Family::Geometry));
        let types = plain.into_iter().chain(shapes);
        let types = types.map(|(name, sql, family)| Type::new(name, sql, family)).collect();
        let mut pieces = BTreeMap::new();
        for (_, charset) in &collations {
            if !pieces.contains_key(charset) {
                pieces.insert(charset.clone(), pieces_of(client, charset)?);
            }
        }
        Ok(Self { types, collations, pieces, drawn: BTreeMap::new(), met: BTreeMap::new() })
    }

    /// Counts a statement that succeeded on a table with a column of this collation.
    pub(super) fn meets(&mut self, collation: &str) {
        *self.met.entry(collation.to_owned()).or_default() += 1;
    }

    /// The use count of the least used of these collations; `u64::MAX` if there are none.
    pub(super) fn least_met<'a>(&self, collations: impl Iterator<Item = &'a str>) -> u64 {
        collations.map(|name| self.met(name)).min().unwrap_or(u64::MAX)
    }

    /// Whether a collation has been used fewer than [`LEAST`] times.
    pub(super) fn wants_more(&self) -> bool {
        self.least_met(self.collations()) < LEAST
    }

    fn met(&self, collation: &str) -> u64 {
        self.met.get(collation).copied().unwrap_or(0)
    }

    /// Names of all types.
    pub(super) fn types(&self) -> impl Iterator<Item = &str> {
        self.types.iter().map(|ty| ty.name.as_str())
    }

    /// Names of all collations.
    pub(super) fn collations(&self) -> impl Iterator<Item = &str> {
        self.collations.iter().map(|(name, _)| name.as_str())
    }

    /// Draws the type to use next: the least used type that `fits` accepts.
    pub(super) fn draw(&mut self, random: &mut Prng, fits: impl Fn(Family) -> bool) -> Type {
        let drawn =
            |drawn: &BTreeMap<String, u64>, name: &str| drawn.get(name).copied().unwrap_or(0);
        let mut fitting: Vec<&Type> = self.types.iter().filter(|ty| fits(ty.family)).collect();
        random.shuffle(&mut fitting);
        let mut ty = fitting
            .into_iter()
            .min_by_key(|ty| drawn(&self.drawn, &ty.name))
            .cloned()
            .unwrap_or_else(Type::integer);
        *self.drawn.entry(ty.name.clone()).or_default() += 1;
        if ty.family.has_collation()
            && let Some((name, charset)) = self.draw_collation(random)
        {
            ty.sql = format!("{} CHARACTER SET {charset} COLLATE {name}", ty.sql);
            if let Some(pieces) = self.pieces.get(&charset) {
                ty.pieces = Arc::clone(pieces);
            }
            ty.collation = Some(name);
        }
        ty
    }

    /// Draws one of the least drawn collations; prefers collations used fewer than [`LEAST`] times.
    fn draw_collation(&mut self, random: &mut Prng) -> Option<(String, String)> {
        let rank =
            |name: &str| (self.met(name) >= LEAST, self.drawn.get(name).copied().unwrap_or(0));
        let least = self.collations.iter().map(|(name, _)| rank(name)).min();
        let least: Vec<&(String, String)> =
            self.collations.iter().filter(|(name, _)| Some(rank(name)) == least).collect();
        let (name, charset) = random.pick(&least).copied()?.clone();
        *self.drawn.entry(name.clone()).or_default() += 1;
        Some((name, charset))
    }
}

/// Asks the server which pieces of texts a character set can represent.
fn pieces_of(client: &mut Client, charset: &str) -> Result<Arc<[&'static str]>> {
    let columns = PIECES.map(|piece| {
        let text = format!("_utf8mb4 0x{}", hex(piece.as_bytes()));
        format!(
            "CONVERT(CONVERT({text} USING {charset}) USING utf8mb4) = {text} COLLATE utf8mb4_bin"
        )
    });
    let reply = client.query(format!("SELECT {}", columns.join(",")))?;
    let row = reply.rows.first().into_iter().flatten();
    let has = row.map(|value| value.as_deref() == Some(b"1".as_slice()));
    Ok(PIECES.iter().zip(has).filter(|(_, has)| *has).map(|(piece, _)| *piece).collect())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
