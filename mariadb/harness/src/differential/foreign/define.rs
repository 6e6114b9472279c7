//! Statements that change tables and their foreign keys.

use frondb_core::prng::Prng;

use super::change::Drawn;
use super::family::{self, Family};

/// Draws statements that belong together. Other statements may run between them.
pub(super) fn draw(random: &mut Prng, family: &mut Family) -> Vec<Drawn> {
    let count = family.tables.len();
    let (at, other) = (random.index(count), random.index(count));
    // Draw no cycles of several tables. If a row that is being deleted refers to a row that an
    // action deletes, InnoDB still finds the first row's entry in an index from which it has not
    // deleted that entry yet.
    let (at, other) = (at.max(other), at.min(other));
    let (table, second) = (family.tables[at].name, family.tables[other].name);
    let one = |kind, sql| vec![(kind, sql)];
    match random.below(34) {
        0..6 => {
            let Some(clause) = added(random, family, at, other) else { return Vec::new() };
            one("ADD FOREIGN KEY", format!("ALTER TABLE {table} ADD {clause}"))
        }
        6..11 => {
            let name = family.foreign_name(random, table);
            one("DROP FOREIGN KEY", format!("ALTER TABLE {table} DROP FOREIGN KEY {name}"))
        }
        11 => {
            let name = family.foreign_name(random, table);
            let Some(clause) = added(random, family, at, other) else { return Vec::new() };
            let sql = format!("ALTER TABLE {table} DROP FOREIGN KEY {name}, ADD {clause}");
            one("DROP and ADD FOREIGN KEY", sql)
        }
        12..15 => {
            let (name, _) = family::key(random);
            one("DROP KEY", format!("ALTER TABLE {table} DROP KEY {name}"))
        }
        15 | 16 => {
            let (_, definition) = family::key(random);
            // Each engine checks unique keys in the order of their creation, so a new one would
            // change the order.
            if definition.starts_with("UNIQUE") {
                return Vec::new();
            }
            one("ADD KEY", format!("ALTER TABLE {table} ADD {definition}"))
        }
        17..19 => {
            let (column, domain) = [("a", 0), ("b", 1)][random.index(2)];
            // Draw a type for which both engines copy the table, and keep the nullability: the
            // server refuses more cases for an ALTER that copies.
            let is_binary = family.domains[domain].types[0].contains("BINARY");
            let ty = if is_binary { "DATE" } else { "VARCHAR(40) COLLATE latin1_general_cs" };
            let null = if family.tables[at].not_null.contains(&column) { " NOT NULL" } else { "" };
            one("MODIFY", format!("ALTER TABLE {table} MODIFY {column} {ty}{null}"))
        }
        19 => {
            let column = ["a", "b", "up", "id"][random.index(4)];
            vec![
                ("RENAME COLUMN", format!("ALTER TABLE {table} RENAME COLUMN {column} TO z")),
                ("RENAME COLUMN", format!("ALTER TABLE {table} RENAME COLUMN z TO {column}")),
            ]
        }
        20 | 21 => {
            let how = ["FORCE", "ADD COLUMN e INT", "FORCE, ALGORITHM=COPY", "COMMENT 'new'"];
            let how = how[random.index(how.len())];
            one("ALTER TABLE", format!("ALTER TABLE {table} {how}"))
        }
        22 => {
            let column = ["a", "b", "up", "e", "w"][random.index(5)];
            one("DROP COLUMN", format!("ALTER TABLE {table} DROP COLUMN {column}"))
        }
        23 | 24 => vec![
            ("RENAME TABLE", format!("RENAME TABLE {table} TO other")),
            ("RENAME TABLE", format!("RENAME TABLE other TO {table}")),
        ],
        25 if table != second => {
            let sql =
                format!("RENAME TABLE {table} TO other, {second} TO {table}, other TO {second}");
            vec![("RENAME TABLE", sql.clone()), ("RENAME TABLE", sql)]
        }
        26..29 => one("TRUNCATE", format!("TRUNCATE TABLE {table}")),
        29..32 => {
            let both = random.chance(1, 4) && table != second;
            let mut all = Vec::new();
            let tables = if both { format!("{table}, {second}") } else { table.to_owned() };
            all.push(("DROP TABLE", format!("DROP TABLE {tables}")));
            all.push(("CREATE TABLE", family.tables[at].create()));
            if both {
                all.push(("CREATE TABLE", family.tables[other].create()));
            }
            all
        }
        32 => vec![
            ("CREATE TABLE", format!("CREATE TABLE l LIKE {table}")),
            ("DROP TABLE", "DROP TABLE l".to_owned()),
        ],
        _ => vec![
            ("SET foreign_key_checks", "SET foreign_key_checks = 0".to_owned()),
            ("SET foreign_key_checks", "SET foreign_key_checks = 1".to_owned()),
        ],
    }
}

/// Draws a clause without RESTRICT: while foreign_key_checks is off, an ALTER of InnoDB turns
/// RESTRICT into NO ACTION.
fn added(random: &mut Prng, family: &mut Family, child: usize, parent: usize) -> Option<String> {
    let clause = family.foreign_key(random, child, parent)?;
    Some(clause.replace(" ON DELETE RESTRICT", "").replace(" ON UPDATE RESTRICT", ""))
}
