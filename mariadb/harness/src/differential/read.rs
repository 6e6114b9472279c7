//! Statements that read rows. A result is compared as a set if the statement does not determine the
//! whole order.

use frondb_core::prng::Prng;

use super::catalog::Family;
use super::kind::Kind;
use super::statement::Step;
use super::table::{Column, Key, Table};
use super::values::literal;

/// Draws a statement of this kind; none if the kind does not read rows or does not fit the tables.
pub(super) fn step(random: &mut Prng, kind: Kind, table: &Table, other: &Table) -> Option<Step> {
    let name = &table.name;
    let one = |sql: String| Some(Step::new(kind, &[table], sql));
    match kind {
        Kind::Point => one(format!("SELECT * FROM {name} WHERE {}", equals(random, table)?)),
        Kind::Range => one(format!("SELECT * FROM {name} WHERE {}", condition(random, table))),
        Kind::Ordered | Kind::Reverse => ordered(random, kind, table),
        Kind::Covering => covering(random, table),
        Kind::Either => {
            let (a, b) = (condition(random, table), condition(random, table));
            // The tables are so small that the server merges indexes only if a hint or an option
            // requests that.
            let keys: Vec<&str> = table.keys.iter().map(|key| key.name.as_str()).collect();
            let force = match keys.len() > 1 && random.chance(2, 3) {
                true => format!(" FORCE INDEX ({})", keys.join(",")),
                false => String::new(),
            };
            one(format!("SELECT * FROM {name}{force} WHERE {a} OR {b}"))
        }
        Kind::Group => {
            let column = key_column(random, table)?;
            // Do not select the column itself: a group shows the value of any member, since the
            // members' weights are equal.
            one(format!("SELECT count(*), min(c0) FROM {name} GROUP BY {}", column.name))
        }
        Kind::Distinct => {
            let column = key_column(random, table)?;
            one(format!("SELECT count(*) FROM (SELECT DISTINCT {} FROM {name}) d", column.name))
        }
        Kind::Extremes => extremes(random, table),
        Kind::Join => {
            let sql = format!(
                "SELECT a.*, b.c0 FROM {name} a JOIN {} b ON a.c0 = b.c0 WHERE {}",
                other.name,
                condition_of(random, table, "a.")
            );
            Some(Step::new(kind, &[table, other], sql))
        }
        Kind::Subquery => {
            let which = condition_of(random, other, "");
            let sql = format!(
                "SELECT * FROM {name} WHERE c0 IN (SELECT c0 FROM {} WHERE {which})",
                other.name
            );
            Some(Step::new(kind, &[table, other], sql))
        }
        Kind::ForUpdate => {
            one(format!("SELECT * FROM {name} WHERE {} FOR UPDATE", condition(random, table)))
        }
        Kind::InShareMode => {
            let which = condition(random, table);
            one(format!("SELECT * FROM {name} WHERE {which} LOCK IN SHARE MODE"))
        }
        // Skip tables with generated columns. The server's checksum includes the NULL bits of the
        // row buffer, and InnoDB does not set the NULL bits of generated columns when it reads a
        // row. MyISAM and Aria agree with FronDB.
        Kind::Checksum if table.columns.iter().any(|column| column.generated) => None,
        Kind::Checksum => one(format!("CHECKSUM TABLE {name} EXTENDED")),
        _ => None,
    }
}

/// Draws one of the table's keys; none if the table has no key.
fn key(random: &mut Prng, table: &Table) -> Option<Key> {
    random.pick(&table.keys).cloned()
}

/// Draws a key; returns its first column.
fn key_column<'a>(random: &mut Prng, table: &'a Table) -> Option<&'a Column> {
    let key = key(random, table)?;
    let first = key.parts.first()?;
    table.columns.iter().find(|column| column.name == first.column)
}

fn equals(random: &mut Prng, table: &Table) -> Option<String> {
    let key = key(random, table)?;
    let parts = key.parts.iter().map(|part| {
        let column = table.columns.iter().find(|column| column.name == part.column)?;
        if table.depends_on_plan(column) {
            return Some(format!("{} IS NOT NULL", column.name));
        }
        let value = literal(random, &column.ty, column.nullable);
        let operator = if value == "NULL" { "<=>" } else { "=" };
        Some(format!("{} {operator} {value}", column.name))
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join(" AND "))
}

/// Draws a condition on a column, mostly on the first column of a key.
pub(super) fn condition(random: &mut Prng, table: &Table) -> String {
    condition_of(random, table, "")
}

fn condition_of(random: &mut Prng, table: &Table, prefix: &str) -> String {
    let any = &table.columns[random.index(table.columns.len())];
    let column = if random.chance(2, 3) { key_column(random, table).unwrap_or(any) } else { any };
    let name = format!("{prefix}{}", column.name);
    let family = column.ty.family;
    if family == Family::Geometry || table.depends_on_plan(column) || random.chance(1, 12) {
        let not = if random.chance(1, 2) { "NOT " } else { "" };
        return format!("{name} IS {not}NULL");
    }
    let (a, b) = (literal(random, &column.ty, false), literal(random, &column.ty, false));
    match random.below(8) {
        0 => format!("{name} = {a}"),
        1 => format!("{name} < {a}"),
        2 => format!("{name} >= {a}"),
        3 => format!("{name} > {a} AND {name} <= {b}"),
        4 => format!("{name} BETWEEN {a} AND {b}"),
        5 => format!("{name} IN ({a},{b})"),
        6 if matches!(family, Family::Text { .. }) => {
            format!("{name} LIKE '{}%'", ["a", "A", "ch", "b", "0"][random.index(5)])
        }
        _ => format!("{name} <> {a} AND {name} >= {b}"),
    }
}

/// Draws a SELECT of rows in the order of a key, with a LIMIT. The primary key orders equal
/// entries.
fn ordered(random: &mut Prng, kind: Kind, table: &Table) -> Option<Step> {
    let total = table.total_order()?;
    let key = key(random, table)?;
    let down = if kind == Kind::Reverse { " DESC" } else { "" };
    let order = key.columns().into_iter().chain(total.split(','));
    let order: Vec<String> = order.map(|column| format!("{column}{down}")).collect();
    let which = if random.chance(1, 2) { condition(random, table) } else { "1".into() };
    let sql = format!(
        "SELECT * FROM {} FORCE INDEX ({}) WHERE {which} ORDER BY {} LIMIT {}",
        table.name,
        key.name,
        order.join(","),
        1 + random.below(40)
    );
    Some(Step::new(kind, &[table], sql).ordered(true))
}

/// Draws a SELECT of only the columns of a key, with that key as the only index.
fn covering(random: &mut Prng, table: &Table) -> Option<Step> {
    let key = key(random, table)?;
    let columns = key.columns().join(",");
    let sql =
        format!("SELECT {columns} FROM {0} FORCE INDEX ({1}) WHERE {2}", table.name, key.name, {
            equals(random, table).filter(|_| random.chance(1, 4)).unwrap_or_else(|| "1".into())
        });
    Some(Step::new(Kind::Covering, &[table], sql))
}

/// Draws a SELECT of the least and the greatest value of a column. Of texts it selects the weights,
/// since neither engine defines which of several equal texts it shows.
fn extremes(random: &mut Prng, table: &Table) -> Option<Step> {
    let column = key_column(random, table)?;
    let name = &column.name;
    let which = if random.chance(1, 2) { condition(random, table) } else { "1".into() };
    let shown = |of: &str| match column.ty.collation {
        Some(_) => format!("hex(weight_string({of}({name})))"),
        None => format!("{of}({name})"),
    };
    let sql =
        format!("SELECT {}, {} FROM {} WHERE {which}", shown("min"), shown("max"), table.name);
    Some(Step::new(Kind::Extremes, &[table], sql))
}
