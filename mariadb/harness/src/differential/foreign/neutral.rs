//! Removes from texts the names that differ between the engines.

use crate::reply::Value;

pub(super) fn database(engine: &str) -> String {
    format!("foreign_{engine}")
}

/// Returns a text of the server without the names of the engine, of its database and of the
/// temporary tables of an ALTER.
pub(super) fn text(text: &str, engine: &str) -> String {
    let text = text.replace(&database(engine), "db").replace(engine, "the engine");
    // InnoDB writes "db/x1" for a foreign key in one error, and "db/t" for a table in another.
    let mut text = text;
    for quote in ["'", "\\'"] {
        let [key, table] = ["constraint ", "of table "].map(|what| format!("{what}{quote}db/"));
        text =
            text.replace(&key, &key.replace("db/", "")).replace(&table, &table.replace('/', "."));
    }
    // Temporary tables have names such as "#sql-alter-1f2c-5" and "#sql-backup-1f2c-5".
    let mut parts = text.split("#sql");
    let mut neutral = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        neutral.push_str("#sql");
        neutral.push_str(&part[end.unwrap_or(part.len())..]);
    }
    neutral
}

/// Returns an error of an ALTER with the table's own name and without generated names of foreign
/// keys. InnoDB checks the rows while the table has a temporary name.
pub(super) fn altered(text: &str, statement: &str) -> String {
    let Some(table) =
        statement.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split(' ').next())
    else {
        return text.to_owned();
    };
    let mut text = text.replace("CONSTRAINT `#sql`", "CONSTRAINT `made`");
    for number in 1..9 {
        text = text.replace(&format!("CONSTRAINT `{table}_ibfk_{number}`"), "CONSTRAINT `made`");
    }
    text.replace("`#sql`", &format!("`{table}`"))
}

/// The rows of a result as texts without the names that [`text`] removes.
pub(super) fn rows(rows: &[Vec<Value>], engine: &str) -> Vec<String> {
    let shown = |value: &Value| match value {
        None => "NULL".to_owned(),
        Some(bytes) => text(&bytes.escape_ascii().to_string(), engine),
    };
    rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" | ")).collect()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn engines_databases_and_temporary_tables_have_no_names() {
        let ours = "`foreign_FronDB`.`#sql-alter-1f2c-5`, CONSTRAINT `x1`: FronDB";
        let theirs = "`foreign_InnoDB`.`#sql-alter-77-51`, CONSTRAINT `x1`: InnoDB";
        assert_eq!(text(ours, "FronDB"), text(theirs, "InnoDB"));
        assert_eq!(text(ours, "FronDB"), "`db`.`#sql`, CONSTRAINT `x1`: the engine");
    }
}
