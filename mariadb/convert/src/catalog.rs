//! Reads the tables and foreign keys of databases from the server's information schema.

use std::collections::BTreeSet;

use crate::client::{Client, Row, literal, quoted};
use crate::error::Result;

/// A table's database and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl Name {
    pub(crate) fn new(schema: &str, table: &str) -> Self {
        Self { schema: schema.to_owned(), table: table.to_owned() }
    }

    /// The qualified name in backticks, for statements.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// A table of InnoDB or of FronDB.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) name: Name,
    pub(crate) engine: String,
    /// Whether the table is system-versioned. The server refuses to change the engine of such a
    /// table.
    pub(crate) is_versioned: bool,
    /// Estimated number of rows, and bytes of the rows and indexes.
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Whether a column's default is the next value of a sequence.
    pub(crate) uses_sequence: bool,
    /// Why the table cannot become a FronDB table, or why its history cannot be converted; `None`
    /// if the conversion is possible.
    pub(crate) stays: Option<&'static str>,
}

/// A foreign key, or one that an earlier run has dropped and not added again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) child: Name,
    pub(crate) name: String,
    pub(crate) parent: Name,
    /// `CONSTRAINT .. FOREIGN KEY .. REFERENCES ..`.
    pub(crate) clause: String,
    pub(crate) is_dropped: bool,
}

impl ForeignKey {
    /// The clause with `parent` as the referenced table.
    pub(crate) fn clause_with_parent(&self, parent: &Name) -> String {
        // A quoted name cannot contain this text, because quotes in it are doubled.
        let reference = |to: &Name| format!(" REFERENCES {} (", to.quoted());
        self.clause.replacen(&reference(&self.parent), &reference(parent), 1)
    }
}

/// The databases to convert, with their tables and foreign keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) schemas: BTreeSet<String>,
    pub(crate) tables: Vec<Table>,
    pub(crate) keys: Vec<ForeignKey>,
}

/// Databases of the server itself.
const OF_SERVER: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

/// All databases that belong to users.
pub(crate) fn all_schemas(client: &mut Client) -> Result<BTreeSet<String>> {
    let rows = client.query("SELECT schema_name FROM information_schema.schemata")?;
    let names = rows.into_iter().filter_map(|row| row.into_iter().next());
    Ok(names.filter(|name| !OF_SERVER.contains(&name.to_lowercase().as_str())).collect())
}

/// Reads the catalog. `is_ours` returns whether a table belongs to this program; such tables are
/// left out.
pub(crate) fn read(
    client: &mut Client,
    schemas: BTreeSet<String>,
    is_ours: impl Fn(&Name) -> bool,
) -> Result<Catalog> {
    let list = schemas.iter().map(|schema| literal(schema)).collect::<Vec<_>>().join(", ");
    let mut names = |what: &str, from: &str| -> Result<BTreeSet<Name>> {
        let rows =
            client.query(&format!("SELECT DISTINCT {what} FROM information_schema.{from}"))?;
        Ok(rows.iter().filter_map(|row| Some(Name::new(row.first()?, row.get(1)?))).collect())
    };
    let of = "table_schema, table_name";
    let texts = names(
        of,
        &format!("statistics WHERE index_type = 'FULLTEXT' AND table_schema IN ({list})"),
    )?;
    let shapes = names(
        of,
        &format!("statistics WHERE index_type = 'SPATIAL' AND table_schema IN ({list})"),
    )?;
    let keyed = names(
        of,
        &format!("statistics WHERE index_name = 'PRIMARY' AND table_schema IN ({list})"),
    )?;
    let by_number =
        "columns WHERE generation_expression = 'ROW START' AND column_type NOT LIKE 'timestamp%'";
    let by_number = names(of, &format!("{by_number} AND table_schema IN ({list})"))?;
    let counted =
        format!("columns WHERE column_default LIKE '%val(`%' AND table_schema IN ({list})");
    let counted = names(of, &counted)?;
    let triggers = "event_object_schema, event_object_table";
    let triggers = names(triggers, &format!("triggers WHERE event_object_schema IN ({list})"))?;
    let keys = foreign_keys(client, &list)?;

    let rows = client.query(&format!(
        "SELECT table_schema, table_name, engine, table_type, COALESCE(table_rows, 0), \
         COALESCE(data_length, 0) + COALESCE(index_length, 0) FROM information_schema.tables \
         WHERE engine IN ('InnoDB', 'FronDB') AND table_schema IN ({list}) ORDER BY 1, 2"
    ))?;
    let table = |row: &Row| {
        let [schema, table, engine, kind, rows, bytes] = row.as_slice() else { return None };
        let name = Name::new(schema, table);
        let is_versioned = kind == "SYSTEM VERSIONED";
        let has_key = || keys.iter().any(|key| key.child == name || key.parent == name);
        let stays = if texts.contains(&name) {
            Some("it has a FULLTEXT index")
        } else if shapes.contains(&name) {
            Some("it has a SPATIAL index")
        } else if by_number.contains(&name) {
            Some("it is system-versioned by transaction numbers")
        } else if is_versioned && triggers.contains(&name) {
            Some(
                "it is system-versioned and has triggers: drop these, and create them again afterwards",
            )
        } else if is_versioned && !keyed.contains(&name) && has_key() {
            Some("it is system-versioned, has no primary key, and has a foreign key")
        } else {
            None
        };
        let uses_sequence = counted.contains(&name);
        let (rows, bytes) = (rows.parse().unwrap_or(0), bytes.parse().unwrap_or(0));
        Some(Table {
            name,
            engine: engine.clone(),
            is_versioned,
            rows,
            bytes,
            uses_sequence,
            stays,
        })
    };
    let tables = rows.iter().filter_map(table);
    // The information schema compares names without regard to case, so it may also return tables of
    // other databases.
    let is_meant = |table: &Table| schemas.contains(&table.name.schema) && !is_ours(&table.name);
    let tables = tables.filter(is_meant).collect();
    Ok(Catalog { schemas, tables, keys })
}

/// Reads the foreign keys whose child or parent is a table in one of these databases.
fn foreign_keys(client: &mut Client, list: &str) -> Result<Vec<ForeignKey>> {
    let rows = client.query(&format!(
        "SELECT k.constraint_schema, k.table_name, k.constraint_name, k.column_name, \
         k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name, \
         r.delete_rule, r.update_rule FROM information_schema.key_column_usage k \
         JOIN information_schema.referential_constraints r \
         ON r.constraint_schema = k.constraint_schema AND r.table_name = k.table_name \
         AND r.constraint_name = k.constraint_name WHERE k.referenced_table_name IS NOT NULL \
         AND (k.constraint_schema IN ({list}) OR k.referenced_table_schema IN ({list})) \
         ORDER BY k.constraint_schema, k.table_name, k.constraint_name, k.ordinal_position"
    ))?;
    let mut keys = Vec::new();
    for columns in rows.chunk_by(|a, b| a.get(..3) == b.get(..3)) {
        let [schema, table, name, _, parent_schema, parent, _, on_delete, on_update] =
            columns[0].as_slice()
        else {
            continue;
        };
        let of = |place: usize| {
            let columns = columns.iter().filter_map(|column| column.get(place));
            columns.map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
        };
        let parent = Name::new(parent_schema, parent);
        // Omit RESTRICT, the default: InnoDB stores an explicit RESTRICT as NO ACTION if rows are
        // not checked.
        let rules = [("DELETE", on_delete), ("UPDATE", on_update)];
        let rules = rules.iter().filter(|(_, rule)| *rule != "RESTRICT");
        let rules: String = rules.map(|(of, rule)| format!(" ON {of} {rule}")).collect();
        let clause = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){rules}",
            quoted(name),
            of(3),
            parent.quoted(),
            of(6)
        );
        let child = Name::new(schema, table);
        keys.push(ForeignKey { child, name: name.clone(), parent, clause, is_dropped: false });
    }
    Ok(keys)
}
