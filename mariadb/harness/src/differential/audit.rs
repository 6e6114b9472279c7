//! Reads a whole table: its definition, its rows, and all entries of each key.

use super::kind::Kind;
use super::statement::Step;
use super::table::Table;

/// The statements that read the table.
pub(super) fn steps(table: &Table) -> Vec<Step> {
    let name = &table.name;
    let mut all = vec![
        format!("SHOW CREATE TABLE {name}"),
        format!("SELECT count(*) FROM {name}"),
        format!("SELECT * FROM {name}"),
    ];
    for key in &table.keys {
        let force = format!("FORCE INDEX ({})", key.name);
        all.push(format!("SELECT {} FROM {name} {force}", key.columns().join(",")));
        // Read columns that are not in the key, so that the engine fetches the row of each entry.
        let order = key.columns().join(",");
        all.push(format!("SELECT * FROM {name} {force} ORDER BY {order}"));
    }
    all.into_iter().map(|sql| Step::new(Kind::Audit, &[table], sql)).collect()
}
