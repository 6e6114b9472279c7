//! Statements that change rows.
//!
//! If the result of a statement depends on the order in which the statement reads rows, it has an
//! ORDER BY, since the two engines may read rows in different orders.

use frondb_core::prng::Prng;

use super::catalog::Family;
use super::kind::Kind;
use super::read::condition;
use super::statement::Step;
use super::table::{Column, Table};
use super::values::literal;

/// Draws a statement of this kind; none if the kind does not change rows or does not fit the
/// tables.
pub(super) fn step(random: &mut Prng, kind: Kind, table: &Table, other: &Table) -> Option<Step> {
    let name = &table.name;
    let one = |sql: String| Some(Step::new(kind, &[table], sql));
    match kind {
        Kind::Insert => one(format!("INSERT INTO {}", rows(random, table))),
        Kind::InsertIgnore => one(format!("INSERT IGNORE INTO {}", rows(random, table))),
        Kind::InsertReturning => one(format!("INSERT INTO {} RETURNING c0", rows(random, table))),
        // If such a statement fails, InnoDB does not restore the rows that the statement has
        // removed from a temporary table.
        Kind::Replace | Kind::InsertUpdate if table.temporary => None,
        Kind::InsertUpdate if table.has_rivals() => None,
        Kind::Replace => one(format!("REPLACE INTO {}", rows(random, table))),
        Kind::InsertUpdate => {
            // If such a SET assigns a negative number, InnoDB takes it for the largest value of
            // AUTO_INCREMENT.
            let may = |column: &Column| !(table.is_auto() && column.name == "c0");
            let (rows, set) = (rows(random, table), set(random, table, may)?);
            one(format!("INSERT INTO {rows} ON DUPLICATE KEY UPDATE {set}"))
        }
        Kind::InsertSelect => insert_select(random, table, other),
        Kind::Update => {
            let set = set(random, table, |column| !table.is_in_unique(column))?;
            one(format!("UPDATE {name} SET {set} WHERE {}", condition(random, table)))
        }
        Kind::UpdateOrdered | Kind::UpdateIgnore => {
            let order = change_order(table)?;
            let ignore = if kind == Kind::UpdateIgnore { "IGNORE " } else { "" };
            // If such a SET raises the AUTO_INCREMENT column, InnoDB does not raise the counter of
            // a partitioned table.
            let may =
                |column: &Column| !(table.is_auto() && table.partitioned && column.name == "c0");
            let (set, which) = (set(random, table, may)?, condition(random, table));
            let limit = 1 + random.below(12);
            one(format!(
                "UPDATE {ignore}{name} SET {set} WHERE {which} ORDER BY {order} LIMIT {limit}"
            ))
        }
        Kind::UpdateJoin => {
            let sets = sets(random, table, |column| !table.is_in_unique(column));
            let sql = format!(
                "UPDATE {name} a JOIN {} b ON a.c0 = b.c0 SET a.{} WHERE b.c0 > {}",
                other.name,
                // Use literals only: the order of rows decides which row of the other table a value
                // comes from.
                sets.iter().find(|set| !set.contains(" + "))?,
                random.below(20)
            );
            Some(Step::new(kind, &[table, other], sql))
        }
        Kind::Delete => one(format!("DELETE FROM {name} WHERE {}", condition(random, table))),
        Kind::DeleteReturning => {
            one(format!("DELETE FROM {name} WHERE {} RETURNING c0", condition(random, table)))
        }
        Kind::DeleteOrdered => {
            let (order, which) = (change_order(table)?, condition(random, table));
            let limit = 1 + random.below(9);
            one(format!("DELETE FROM {name} WHERE {which} ORDER BY {order} DESC LIMIT {limit}"))
        }
        Kind::DeleteJoin => {
            let sql = format!(
                "DELETE a FROM {name} a JOIN {} b ON a.c0 = b.c0 WHERE b.c0 = {}",
                other.name,
                random.below(20)
            );
            Some(Step::new(kind, &[table, other], sql))
        }
        _ => None,
    }
}

/// The order in which an UPDATE or DELETE with a LIMIT changes the rows of a table; none if no
/// known columns order the rows totally. Rows of partitioned tables are ordered by expressions, so
/// that the server does not read them by a key. This avoids an error of the server with any engine:
/// if an earlier statement could exclude all partitions, an UPDATE or DELETE that reads in key
/// order skips all partitions too, until a SELECT uses the same open table.
fn change_order(table: &Table) -> Option<String> {
    let order = table.total_order()?;
    if !table.partitioned {
        return Some(order);
    }
    let columns: Vec<String> = order.split(',').map(|name| format!("COALESCE({name})")).collect();
    Some(columns.join(","))
}

/// Draws the rest of an INSERT: the table's name, some of its columns, and rows for them.
fn rows(random: &mut Prng, table: &Table) -> String {
    let skips_auto = table.is_auto() && random.chance(3, 4);
    let columns: Vec<&Column> = table
        .settable()
        .into_iter()
        .filter(|column| !(skips_auto && column.name == "c0"))
        .collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let count = if random.chance(1, 6) { 20 } else { 1 + random.below(4) };
    let mut rows = Vec::new();
    let mut is_below_zero = false;
    for _ in 0..count {
        let mut row: Vec<String> = columns
            .iter()
            .map(|column| {
                if column.has_default() && random.chance(1, 4) {
                    "DEFAULT".into()
                } else {
                    value(random, column, column.nullable)
                }
            })
            .collect();
        if table.is_auto() && !skips_auto {
            // InnoDB skips values of AUTO_INCREMENT after a negative one.
            if is_below_zero && row[0] == "0" {
                row[0] = "7".to_owned();
            }
            is_below_zero |= row[0].starts_with('-');
        }
        rows.push(format!("({})", row.join(",")));
    }
    format!("{} ({}) VALUES {}", table.name, names.join(","), rows.join(","))
}

fn value(random: &mut Prng, column: &Column, nullable: bool) -> String {
    match (column.ty.name.as_str(), column.ty.family) {
        // A column of one of these geometry types accepts only its own shape.
        ("point", _) => {
            format!("ST_GeomFromText('POINT({} {})')", random.below(9), random.below(9))
        }
        ("linestring", _) => format!("ST_GeomFromText('LINESTRING(0 0,{} 5)')", random.below(9)),
        ("polygon", _) => {
            format!("ST_GeomFromText('POLYGON((0 0,{} 9,9 1,0 0))')", random.below(9))
        }
        _ => literal(random, &column.ty, nullable),
    }
}

/// Draws assignments to one or two of the columns that `may` accepts; none if it accepts no column.
fn set(random: &mut Prng, table: &Table, may: impl Fn(&Column) -> bool) -> Option<String> {
    let sets = sets(random, table, may);
    if sets.is_empty() { None } else { Some(sets.join(", ")) }
}

fn sets(random: &mut Prng, table: &Table, may: impl Fn(&Column) -> bool) -> Vec<String> {
    let mut columns: Vec<&Column> =
        table.settable().into_iter().filter(|column| may(column)).collect();
    random.shuffle(&mut columns);
    columns
        .into_iter()
        .take(1 + random.index(2))
        .map(|column| {
            let name = &column.name;
            // The server counts NULL replaced by NULL as a change if InnoDB's row has the bytes of
            // the column's default under the NULL.
            let nullable = column.nullable && !column.has_default();
            match column.ty.family {
                Family::Integer { .. } if nullable == column.nullable && random.chance(1, 2) => {
                    format!("{name} = {name} + {}", random.below(3))
                }
                _ => format!("{name} = {}", value(random, column, nullable)),
            }
        })
        .collect()
}

/// Draws an INSERT of up to 30 rows of `other` into `table`, in a defined order. A column gets a
/// column of the same type of `other`, or a literal if there is none and in some other cases.
/// Returns none for a table with AUTO_INCREMENT, or if no known columns order the rows totally.
fn insert_select(random: &mut Prng, table: &Table, other: &Table) -> Option<Step> {
    // The engines reserve AUTO_INCREMENT values in blocks of different sizes.
    if table.is_auto() {
        return None;
    }
    let order = other.total_order()?;
    let columns = table.settable();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let values: Vec<String> = columns
        .iter()
        .map(|column| {
            let same = other.columns.iter().find(|of| of.ty.name == column.ty.name);
            match same {
                Some(of) if random.chance(3, 4) => of.name.clone(),
                _ => value(random, column, column.nullable),
            }
        })
        .collect();
    let ignore = if random.chance(1, 2) { "IGNORE " } else { "" };
    let sql = format!(
        "INSERT {ignore}INTO {} ({}) SELECT {} FROM {} ORDER BY {order} LIMIT 30",
        table.name,
        names.join(","),
        values.join(","),
        other.name
    );
    Some(Step::new(Kind::InsertSelect, &[table, other], sql))
}
