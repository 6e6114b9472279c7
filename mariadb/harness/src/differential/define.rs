//! Statements that define tables.

use super::catalog::Family;
use super::kind::Kind;
use super::source::Source;
use super::statement::{Effect, Step};
use super::table::{Key, Table};

/// Draws a CREATE TABLE.
pub(super) fn create(source: &mut Source) -> Step {
    let name = source.next_table();
    let table = Table::draw(&mut source.random, &mut source.catalog, name);
    Step::new(Kind::CreateTable, &[&table], table.create()).with(Effect::Add(table))
}

/// Draws a statement of this kind about the table; none if the kind defines no table or does not
/// fit the table.
pub(super) fn step(source: &mut Source, kind: Kind, table: &Table) -> Option<Step> {
    let name = &table.name;
    match kind {
        Kind::CreateTable | Kind::CreateLike | Kind::CreateSelect if source.is_full() => None,
        Kind::CreateTable => Some(create(source)),
        Kind::CreateLike => {
            // CREATE TABLE .. LIKE makes a permanent table, also from a temporary one.
            let mut new = Table { name: source.next_table(), ..table.clone() };
            new.temporary = false;
            new.reordered = false;
            let sql = format!("CREATE TABLE {} LIKE {name}", new.name);
            Some(Step::new(kind, &[table], sql).with(Effect::Add(new)))
        }
        Kind::CreateSelect => {
            let mut new = Table { name: source.next_table(), ..table.clone() };
            new.keys.clear();
            new.partitioned = false;
            new.temporary = false;
            new.reordered = false;
            for column in &mut new.columns {
                // In the new table, generated columns become plain columns with the values, and
                // other columns keep only their defaults.
                column.generated = false;
                if !column.has_default() {
                    column.tail.clear();
                }
            }
            let sql = format!("CREATE TABLE {} SELECT * FROM {name}", new.name);
            Some(Step::new(kind, &[table], sql).with(Effect::Add(new)))
        }
        Kind::DropTable => {
            let kind_of = if table.temporary { "TEMPORARY " } else { "" };
            let sql = format!("DROP {kind_of}TABLE {name}");
            Some(Step::new(kind, &[table], sql).with(Effect::Remove(name.clone())))
        }
        Kind::Truncate => Some(Step::new(kind, &[table], format!("TRUNCATE TABLE {name}"))),
        Kind::RenameTable => {
            let new = Table { name: source.next_table(), ..table.clone() };
            let sql = format!("ALTER TABLE {name} RENAME TO {}", new.name);
            Some(Step::new(kind, &[table], sql).with(Effect::Replace(name.clone(), new)))
        }
        _ => alter(source, kind, table),
    }
}

fn alter(source: &mut Source, kind: Kind, table: &Table) -> Option<Step> {
    let mut new = table.clone();
    new.reordered |= matches!(kind, Kind::AddUnique | Kind::AddPrimary | Kind::ModifyColumn);
    let change = match kind {
        Kind::AddColumn | Kind::DropColumn | Kind::ModifyColumn | Kind::RenameColumn => {
            alter_column(source, kind, &mut new)?
        }
        Kind::AddIndex | Kind::AddUnique => {
            if new.keys.len() > 5 || (new.partitioned && kind == Kind::AddUnique) {
                return None;
            }
            let key_name = new.next_name("k");
            let key = new.draw_key(&mut source.random, key_name, kind == Kind::AddUnique);
            let sql = format!("ADD {}", key.sql());
            new.keys.push(key);
            sql
        }
        Kind::DropIndex => {
            let key = pick_secondary(source, &new)?;
            new.keys.retain(|kept| kept.name != key.name);
            format!("DROP INDEX {}", key.name)
        }
        Kind::AddPrimary => add_primary(source, &mut new)?,
        Kind::DropPrimary => {
            if new.primary().is_none() || new.is_auto() || new.partitioned {
                return None;
            }
            new.keys.retain(|key| key.name != "PRIMARY");
            "DROP PRIMARY KEY".to_owned()
        }
        Kind::Rebuild => "FORCE".to_owned(),
        Kind::Partition => partition(source, &mut new)?,
        Kind::SetAutoIncrement if new.is_auto() => {
            format!("AUTO_INCREMENT={}", source.random.below(200))
        }
        _ => return None,
    };
    let sql = format!("ALTER TABLE {} {change}", table.name);
    Some(Step::new(kind, &[&new], sql).with(Effect::Replace(table.name.clone(), new)))
}

fn alter_column(source: &mut Source, kind: Kind, new: &mut Table) -> Option<String> {
    let random = &mut source.random;
    if kind == Kind::AddColumn {
        if new.columns.len() > 16 {
            return None;
        }
        let column = if random.chance(1, 5) {
            new.draw_generated(random)
        } else {
            let mut column = new.draw_column(random, &mut source.catalog, |_| true);
            // A NOT NULL column of JSON would give existing rows the empty text, which violates
            // JSON's constraint. The server checks the constraint if the ALTER copies the table, as
            // with FronDB; InnoDB adds the column without a copy and does not check.
            column.nullable |= column.ty.family == Family::Json;
            column
        };
        let mut sql = format!("ADD COLUMN {}", column.sql());
        let at = 1 + random.index(new.columns.len());
        if at < new.columns.len() {
            sql = format!("{sql} AFTER {}", new.columns[at - 1].name);
        }
        new.columns.insert(at, column);
        return Some(sql);
    }
    // Draw any column but the first, which joins need. Below, no statement drops or changes a
    // column that a generated column uses.
    let at = 1 + random.index(new.columns.len() - 1);
    let name = new.columns[at].name.clone();
    let in_expression = new
        .columns
        .iter()
        .any(|column| column.generated && column.tail.contains(&format!("({name})")));
    let in_key = new.keys.iter().any(|key| key.columns().contains(&name.as_str()));
    match kind {
        Kind::DropColumn => {
            if new.columns.len() < 5 || in_key || in_expression {
                return None;
            }
            new.columns.remove(at);
            Some(format!("DROP COLUMN {name}"))
        }
        Kind::ModifyColumn => {
            let old = new.columns[at].clone();
            if old.generated || in_expression || (in_key && old.ty.family.needs_prefix()) {
                return None;
            }
            // Whether the values and the keys of the old type fit this type.
            let fits = |family: Family| match (old.ty.family, family) {
                (Family::Integer { .. }, Family::Integer { .. }) => true,
                (Family::Text { long: false }, Family::Text { long }) => !long || !in_key,
                (old, new) => old == new,
            };
            let mut column = new.draw_column(random, &mut source.catalog, fits);
            column.name.clone_from(&name);
            column.nullable |= old.nullable;
            let sql = format!("MODIFY COLUMN {}", column.sql());
            new.columns[at] = column;
            Some(sql)
        }
        _ => {
            if in_key || in_expression {
                return None;
            }
            let to = new.next_name("c");
            new.columns[at].name.clone_from(&to);
            Some(format!("RENAME COLUMN {name} TO {to}"))
        }
    }
}

fn pick_secondary(source: &mut Source, table: &Table) -> Option<Key> {
    let keys: Vec<&Key> = table.keys.iter().filter(|key| key.name != "PRIMARY").collect();
    source.random.pick(&keys).map(|&key| key.clone())
}

/// Draws an ADD PRIMARY KEY and makes the key's columns NOT NULL; none if there is a primary key.
fn add_primary(source: &mut Source, new: &mut Table) -> Option<String> {
    if new.primary().is_some() {
        return None;
    }
    let key = new.draw_key(&mut source.random, "PRIMARY".into(), true);
    let mut sql = format!("ADD {}", key.sql());
    for column in &mut new.columns {
        if column.nullable && key.columns().contains(&column.name.as_str()) {
            column.nullable = false;
            // An ALTER that copies, as with FronDB, turns NULL into the zero of the type; InnoDB in
            // place would turn NULL into the column's default.
            if !sql.starts_with("ALGORITHM") {
                sql = format!("ALGORITHM=COPY, {sql}");
            }
        }
    }
    new.keys.push(key);
    Some(sql)
}

fn partition(source: &mut Source, new: &mut Table) -> Option<String> {
    if new.partitioned {
        new.partitioned = false;
        return Some("REMOVE PARTITIONING".to_owned());
    }
    let fits = new.primary().is_some_and(|key| key.whole)
        && !new.temporary
        && !new.keys.iter().any(|key| key.clustering)
        && !new.keys.iter().any(|key| key.unique && key.name != "PRIMARY")
        && !new.columns.iter().any(|column| column.ty.family == Family::Geometry);
    new.partitioned = true;
    fits.then(|| format!("PARTITION BY KEY () PARTITIONS {}", 2 + source.random.below(3)))
}
