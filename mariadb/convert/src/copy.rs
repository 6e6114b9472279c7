//! Copies system-versioned tables. The server refuses to change the engine of such a table (error
//! 4120). So a new table receives the rows with their history, and then takes the name of the old
//! table.

use crate::catalog::Name;
use crate::client::{literal, quoted};
use crate::error::{Error, Result};
use crate::journal;
use crate::plan::Engine;
use crate::session::Session;

/// Creates the empty copy.
pub(crate) fn make(session: &mut Session, table: &Name, number: usize, goal: Engine) -> Result<()> {
    let rows = session.read(&format!("SHOW CREATE TABLE {}", table.quoted()))?;
    let definition = rows.first().and_then(|row| row.get(1)).cloned().unwrap_or_default();
    let (new, _) = journal::names_of_copy(&table.schema, number);
    let definition = renamed(&definition, &new, goal).ok_or_else(|| {
        Error::Server(0, format!("its definition is not understood: {definition}"))
    })?;
    session.change(&definition)
}

/// Returns the definition from SHOW CREATE TABLE with another name, with another engine for the
/// table and its partitions, and without the foreign keys, which are added later.
fn renamed(definition: &str, new: &Name, goal: Engine) -> Option<String> {
    let (_, rest) = definition.split_once(" (\n")?;
    let from = goal.other().name();
    let mut lines = rest.lines();
    let (mut columns, mut options) = (Vec::new(), None);
    for line in lines.by_ref() {
        if let Some(rest) = line.strip_prefix(&format!(") ENGINE={from}")) {
            options = Some(format!(") ENGINE={}{rest}", goal.name()));
            break;
        }
        if !is_foreign_key(line) {
            columns.push(line.strip_suffix(',').unwrap_or(line));
        }
    }
    let partitions = lines.map(|line| {
        let of_partition = format!(" ENGINE = {from}");
        let text = line.trim_start_matches([' ', '(']);
        let is_partition = text.starts_with("PARTITION `") || text.starts_with("SUBPARTITION `");
        match line.rsplit_once(&of_partition) {
            Some((before, end)) if is_partition => {
                format!("\n{before} ENGINE = {}{end}", goal.name())
            }
            _ => format!("\n{line}"),
        }
    });
    let partitions: String = partitions.collect();
    let (new, columns) = (new.quoted(), columns.join(",\n"));
    Some(format!("CREATE TABLE {new} (\n{columns}\n{}{partitions}", options?))
}

/// Whether a line of a definition defines a foreign key: CONSTRAINT, a name, FOREIGN KEY.
fn is_foreign_key(line: &str) -> bool {
    let Some(name) = line.strip_prefix("  CONSTRAINT `") else { return false };
    // A doubled backtick is part of the name.
    name.replace("``", "")
        .split_once('`')
        .is_some_and(|(_, rest)| rest.starts_with(" FOREIGN KEY ("))
}

/// Copies all rows with their history. REQUIRES: both tables are locked.
pub(crate) fn fill(session: &mut Session, table: &Name, number: usize) -> Result<()> {
    let rows = session.read(&format!(
        "SELECT column_name, COALESCE(generation_expression, ''), is_generated FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        literal(&table.schema),
        literal(&table.table)
    ))?;
    let is_period = |expression: &str| expression == "ROW START" || expression == "ROW END";
    let columns = rows.iter().filter_map(|row| match row.as_slice() {
        [name, expression, generated] => {
            (generated == "NEVER" || is_period(expression)).then(|| quoted(name))
        }
        _ => None,
    });
    let mut columns: Vec<String> = columns.collect();
    if !rows.iter().any(|row| row.get(1).is_some_and(|expression| is_period(expression))) {
        // The period columns are hidden, and the information schema does not list hidden columns.
        columns.extend(["row_start", "row_end"].map(quoted));
    }
    let listed = session.read(&format!(
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = {} AND table_name = {}",
        literal(&table.schema),
        literal(&table.table)
    ))?;
    if listed != [[rows.len().to_string()]] {
        return Err(Error::Server(0, format!("{} of {listed:?} columns were read", rows.len())));
    }
    let (new, _) = journal::names_of_copy(&table.schema, number);
    let (columns, new, from) = (columns.join(", "), new.quoted(), table.quoted());
    session.change("SET SESSION system_versioning_insert_history = 1")?;
    session.change(&format!(
        "INSERT INTO {new} ({columns}) SELECT {columns} FROM {from} FOR SYSTEM_TIME ALL"
    ))?;
    session.change("SET SESSION system_versioning_insert_history = 0")?;
    if session.is_dry() {
        return Ok(());
    }
    let mut count =
        |table: &str| session.read(&format!("SELECT COUNT(*) FROM {table} FOR SYSTEM_TIME ALL"));
    let (copied, all) = (count(&new)?, count(&from)?);
    match copied == all {
        true => Ok(()),
        false => Err(Error::Server(0, format!("{copied:?} of {all:?} rows were copied"))),
    }
}

/// Renames the old table, and gives its name to the copy.
pub(crate) fn exchange(session: &mut Session, table: &Name, number: usize) -> Result<()> {
    let (new, old) = journal::names_of_copy(&table.schema, number);
    session.change(&format!("ALTER TABLE {} RENAME {}", table.quoted(), old.quoted()))?;
    session.change(&format!("ALTER TABLE {} RENAME {}", new.quoted(), table.quoted()))
}

/// Drops the old table after the exchange, or an abandoned copy. REQUIRES: no table is locked.
pub(crate) fn drop_rest(session: &mut Session, table: &Name, number: usize) -> Result<()> {
    let (new, old) = journal::names_of_copy(&table.schema, number);
    session.change(&format!("DROP TABLE IF EXISTS {}", new.quoted()))?;
    session.change(&format!("DROP TABLE IF EXISTS {}", old.quoted()))?;
    journal::remove(session, table, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_engines_of_a_definition_are_replaced_and_nothing_else() {
        let definition = "CREATE TABLE `a (` (\n  `id` int(11) COMMENT ') ENGINE=InnoDB',\n  \
             `PARTITION` int COMMENT ' ENGINE = InnoDB',\n  CONSTRAINT `a`` b` FOREIGN KEY (`id`) REFERENCES `x` (`y`),\n  \
             CONSTRAINT ` FOREIGN KEY (` CHECK (`id` > 1),\n  CONSTRAINT `b` FOREIGN KEY (`id`) REFERENCES `x` (`y`)\n\
             ) ENGINE=InnoDB AUTO_INCREMENT=3 COMMENT='ENGINE=InnoDB'\n \
             PARTITION BY SYSTEM_TIME LIMIT 10\n(PARTITION `p0` HISTORY COMMENT = ' ENGINE = InnoDB' ENGINE = InnoDB,\n \
             PARTITION `pn` CURRENT ENGINE = InnoDB)";
        let expected = "CREATE TABLE `s`.`n` (\n  `id` int(11) COMMENT ') ENGINE=InnoDB',\n  \
             `PARTITION` int COMMENT ' ENGINE = InnoDB',\n  CONSTRAINT ` FOREIGN KEY (` CHECK (`id` > 1)\n) ENGINE=FronDB AUTO_INCREMENT=3 COMMENT='ENGINE=InnoDB'\n \
             PARTITION BY SYSTEM_TIME LIMIT 10\n(PARTITION `p0` HISTORY COMMENT = ' ENGINE = InnoDB' ENGINE = FronDB,\n \
             PARTITION `pn` CURRENT ENGINE = FronDB)";
        let new = Name::new("s", "n");
        assert_eq!(renamed(definition, &new, Engine::FronDb).as_deref(), Some(expected));
        assert_eq!(renamed(definition, &new, Engine::InnoDb), None);
    }
}
