//! Inserts rows into all tables of an application, because many schemas have none, and changes
//! them. Most of the changed rows have children, so that foreign keys cascade.
//!
//! The values depend on the number of the row and on the type of the column. Columns of foreign
//! keys get values from the referenced tables.

use std::collections::BTreeMap;

use super::pair::{Pair, Side};
use crate::error::{Error, Result};

/// Passes over all tables. In the first pass, a parent that comes later in alphabetical order is
/// still empty, so only in the second pass can a table refer to its rows.
const PASSES: u64 = 2;
/// Rows inserted into each table in each pass.
const ROWS: u64 = 8;
/// Most values of each referenced column whose rows are updated. The rows of as many large values
/// and of as many small ones are deleted.
const CHANGED: usize = 4;
/// Number of repetitions in a long text, so that large rows occur.
const REPETITIONS: u64 = 200;

/// The executed statements, and the differences that they showed.
#[derive(Default)]
pub(super) struct Exercised {
    pub(super) statements: u64,
    pub(super) succeeded: u64,
    pub(super) findings: Vec<String>,
}

/// A column into which the test writes.
struct Column {
    name: String,
    kind: String,
    /// Longest text in characters; 0 for types other than text.
    length: u64,
    is_nullable: bool,
    /// The referenced table and column, if the column is part of a foreign key.
    references: Option<(String, String)>,
}

/// Inserts and changes rows in all tables.
pub(super) fn run(pair: &mut Pair) -> Result<Exercised> {
    let mut done = Exercised::default();
    let tables = columns(&mut pair.theirs)?;
    for pass in 0..PASSES {
        for (table, columns) in &tables {
            for row in 0..ROWS {
                let statement = insert(pair, table, columns, pass * ROWS + row + 1)?;
                done.execute(pair, &statement);
            }
        }
    }
    let mut parents: Vec<&(String, String)> =
        tables.values().flatten().filter_map(|column| column.references.as_ref()).collect();
    parents.sort();
    parents.dedup();
    for (table, column) in parents {
        done.change(pair, table, column)?;
    }
    // Not all statements succeed: triggers and multi-column references of some applications refuse
    // many rows.
    if 3 * done.succeeded < done.statements {
        let (all, of) = (done.statements, done.succeeded);
        return Err(Error::Harness(format!("only {of} of {all} changes of rows succeeded")));
    }
    Ok(done)
}

impl Exercised {
    /// Changes and deletes rows with large and with small values of `column`, to which other rows
    /// may refer.
    fn change(&mut self, pair: &mut Pair, table: &str, column: &str) -> Result {
        let newest = values(&mut pair.theirs, table, column, "DESC")?;
        let oldest = values(&mut pair.theirs, table, column, "ASC")?;
        for (at, value) in newest.iter().skip(1).step_by(3).take(CHANGED).enumerate() {
            // If the value is not a number, both engines refuse the statement.
            let by = 100 + at;
            let set = format!("UPDATE `{table}` SET `{column}` = `{column}` + {by}");
            self.execute(pair, &format!("{set} WHERE `{column}` = {value}"));
        }
        let deleted = newest.iter().step_by(3).take(CHANGED).chain(oldest.iter().take(CHANGED));
        for value in deleted {
            self.execute(pair, &format!("DELETE FROM `{table}` WHERE `{column}` = {value}"));
        }
        Ok(())
    }

    fn execute(&mut self, pair: &mut Pair, statement: &str) {
        let met = pair.execute(|_| statement.to_owned());
        self.statements += 1;
        self.succeeded += u64::from(met.theirs.is_ok());
        self.findings.extend(met.difference(statement));
    }
}

/// The columns of each table, except those that the server fills.
fn columns(side: &mut Side) -> Result<BTreeMap<String, Vec<Column>>> {
    let mut references = BTreeMap::new();
    for line in side.lines(
        "SELECT table_name, column_name, referenced_table_name, referenced_column_name \
         FROM information_schema.key_column_usage WHERE table_schema = database() \
         AND referenced_table_name IS NOT NULL ORDER BY 1, 2, 3, 4",
    )? {
        let [table, column, parent, of] = fields(&line)?;
        references.insert((table, column), (parent, of));
    }
    let mut tables = BTreeMap::<String, Vec<Column>>::new();
    for line in side.lines(
        "SELECT c.table_name, column_name, data_type, coalesce(character_maximum_length, 0), \
         is_nullable FROM information_schema.columns c JOIN information_schema.tables t \
         ON t.table_schema = c.table_schema AND t.table_name = c.table_name \
         WHERE c.table_schema = database() AND t.table_type = 'BASE TABLE' \
         AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%' \
         ORDER BY c.table_name, ordinal_position",
    )? {
        let [table, name, kind, length, is_nullable] = fields(&line)?;
        let references = references.get(&(table.clone(), name.clone())).cloned();
        let length = length.parse().unwrap_or_default();
        let is_nullable = is_nullable == "YES";
        let column = Column { name, kind, length, is_nullable, references };
        tables.entry(table).or_default().push(column);
    }
    Ok(tables)
}

fn fields<const COUNT: usize>(line: &str) -> Result<[String; COUNT]> {
    let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
    fields.try_into().map_err(|_| Error::Harness(format!("not {COUNT} fields: {line}")))
}

fn insert(pair: &mut Pair, table: &str, columns: &[Column], row: u64) -> Result<String> {
    let mut names = Vec::new();
    let mut literals = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        names.push(format!("`{}`", column.name));
        literals.push(match &column.references {
            // NULL in every third row, in different rows for neighbouring columns.
            Some(_) if column.is_nullable && (row + at as u64).is_multiple_of(3) => {
                "NULL".to_owned()
            }
            Some((parent, of)) => {
                let values = values(&mut pair.theirs, parent, of, "DESC")?;
                let at = (row * 7 + at as u64) % values.len().max(1) as u64;
                values.get(at as usize).cloned().unwrap_or_else(|| "NULL".to_owned())
            }
            None => column.literal(row),
        });
    }
    Ok(format!("INSERT INTO `{table}` ({}) VALUES ({})", names.join(", "), literals.join(", ")))
}

/// The largest or the smallest values of a referenced column, as literals.
fn values(side: &mut Side, table: &str, column: &str, order: &str) -> Result<Vec<String>> {
    side.lines(&format!(
        "SELECT quote(`{column}`) FROM `{table}` WHERE `{column}` IS NOT NULL \
         GROUP BY `{column}` ORDER BY `{column}` {order} LIMIT 20"
    ))
}

impl Column {
    /// The value of the column in row `row`; unique if the type allows it.
    fn literal(&self, row: u64) -> String {
        match self.kind.as_str() {
            "tinyint" | "bit" => (row % 100).to_string(),
            "smallint" => (20_000 + row).to_string(),
            "mediumint" | "int" | "bigint" => (7_000_000 + row).to_string(),
            "float" | "double" => format!("{row}.5"),
            "decimal" => row.to_string(),
            "enum" | "set" => "1".to_owned(),
            "year" => (2000 + row).to_string(),
            "date" | "datetime" | "timestamp" => format!("'2001-02-{row:02} 04:05:06'"),
            "time" => format!("'04:05:{row:02}'"),
            _ if self.length > 5 * REPETITIONS => format!("repeat('v{row:03} ', {REPETITIONS})"),
            _ if self.length < 4 => format!("right('{row}', {})", self.length),
            _ => format!("'v{row:03}'"),
        }
    }
}
