//! Generates pages for operators from the source. docs/operating/options.md comes from the builders
//! of `Options`, `TreeOptions` and `TransactionOptions` and the fields of `BulkOptions`;
//! docs/operating/status.md from the structs of statistics. Tables have the first paragraph of each
//! comment; the library's documentation has all of it. [`rows`] reads ranges and defaults.
//! [`plugin`] writes ranges and defaults for the MariaDB plugin, as C++ and in its page of variables;
//! [`errors`] the page of errors, and [`mod@examples`] the Rust on all pages.
//!
//! `cargo xtask pages` writes the pages. [`check`], a part of tidy, demands that the pages are up
//! to date, and that no cell of a table is too long to read.
//!
//! ```text
//!   /// Disk space reserved ...
//!   reserve_bytes(bytes: u64) -> u64 = 24 << 20, 0..=256 << 20;
//!            |
//!            v
//!   | `reserve_bytes(bytes: u64)` | Disk space reserved ... Range: 0 to 256 MiB. Default 24 MiB. |
//! ```

mod codecs;
mod errors;
mod examples;
mod items;
mod plugin;
mod rows;

use std::fs;

use crate::Result;
use crate::workspace::{read, root};

use codecs::{CodecRow, codec_rows};
pub(crate) use examples::has_examples;
use items::{Item, items};
use rows::OptionRow;

const BUILDERS: &str = "crates/frondb/src/options.rs";
const TREE_BUILDERS: &str = "crates/records/src/options.rs";
const TRANSACTION_BUILDERS: &str = "crates/txn/src/options.rs";
const BULK_OPTIONS: &str = "crates/txn/src/bulk/options.rs";
const TRUNK_OPTIONS: &str = "crates/trunk/src/options.rs";
const WAL_OPTIONS: &str = "crates/wal/src/options.rs";
const CODECS: &str = "crates/block/src/codec.rs";
const STATS: &str = "crates/frondb/src/stats.rs";
const JOB_COUNTERS: &str = "crates/background/src/counters.rs";
const LATENCIES: &str = "crates/frondb/src/stats/latencies.rs";
const RECOVERY: &str = "crates/frondb/src/open/recovery.rs";

/// Characters of a cell of a table, at most.
const CELL_CHARS_MAX: usize = 300;

const OPTIONS_HEAD: &str = "\
# Options

Written from the source by `cargo xtask pages`: do not edit it, change the comments there.

The defaults need no tuning. Only three options need a choice in some uses: memory, durability and compression. An option out of
its range is refused with the kind `Invalid` and the range. As a number, size or time, 0 means the default, or no limit; only for
`background_threads` and `reserve_bytes` it means none.
";
const STATUS_HEAD: &str = "\
# Status

Written from the source by `cargo xtask pages`: do not edit it, change the comments there.

What an open database, a tree and a recovery report about themselves. `Db::stats()`, `Tree::stats()` and
`frondb stats` return the first two tables under the same names in the struct, in text and in JSON, and
`Db::recovery()` returns the third; reading them costs next to nothing. Counters start at 0 when the
database is opened. Values are bytes if the name ends in `_bytes` or begins with `memory_`, nanoseconds if
it ends in `_nanos`, milliseconds if it ends in `_ms`, and counts otherwise.

Latencies are histograms: `Db::latencies()`. In text, JSON, C and SQL each kind has the statistics
`latency_KIND_count`, `latency_KIND_nanos` (the sum), `latency_KIND_p50_nanos`, `_p99_nanos`, `_p999_nanos` and
`_max_nanos`. `Db::prometheus()` and `frondb stats --prometheus` have everything in Prometheus' text
format, with its names: counters end in `_total`, and times are seconds (`_seconds`).
";

/// Writes the pages.
pub(crate) fn write() -> Result {
    for (path, text) in pages()? {
        fs::write(root().join(path), text).map_err(|e| format!("cannot write {path}: {e}"))?;
    }
    Ok(())
}

/// Finds pages that are out of date, and cells that are too long.
pub(crate) fn check() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in pages()? {
        for cell in long_cells(&text) {
            findings.push(format!("{path}: shorten the first paragraph of the comment: {cell}"));
        }
        if read(&root().join(path)).ok() != Some(text) {
            findings.push(format!("{path}: is out of date: run `cargo xtask pages`"));
        }
    }
    Ok(findings)
}

fn long_cells(page: &str) -> impl Iterator<Item = &str> {
    let cells = page.lines().filter(|line| line.starts_with("| ")).flat_map(|row| row.split('|'));
    cells.map(str::trim).filter(|cell| cell.chars().count() > CELL_CHARS_MAX)
}

/// Generates path and text of each page.
fn pages() -> Result<Vec<(&'static str, String)>> {
    let source = |path: &str| read(&root().join(path));
    let builders = source(BUILDERS)?;
    let (stats, recovery) = (source(STATS)?, source(RECOVERY)?);

    let mut options = OPTIONS_HEAD.to_owned();
    let is_option = |item: &Item| item.code.contains("(mut self");
    let database_rows = option_rows(items(&builders, "database_options! {"), &source(WAL_OPTIONS)?);
    let mut database: Vec<_> = database_rows.iter().map(OptionRow::described).collect();
    database.extend(split(items(&builders, "impl Options {"), is_option).0);
    let (tree, presets) = split(items(&source(TREE_BUILDERS)?, "impl TreeOptions {"), is_option);
    section(&mut options, "A database: `Options`", ("option", "what it does"), &database);
    section(
        &mut options,
        "A tree: `TreeOptions`; `Tree::set_options` changes those that are not fixed",
        ("start from", "for"),
        &presets,
    );
    table(&mut options, ("option", "what it does"), &tree);
    let tree_rows = option_rows(items(&source(TRUNK_OPTIONS)?, "tree_options! {"), "");
    section(
        &mut options,
        "A tree's options by name: `codec` and `block_bytes`, as above, and these",
        ("name", "what it is"),
        &tree_rows.iter().map(OptionRow::described).collect::<Vec<_>>(),
    );
    let (codecs, table_options) = (codec_rows(&source(CODECS)?), source(plugin::TABLE_OPTIONS)?);
    let described: Vec<_> = codecs.iter().map(CodecRow::described).collect();
    section(&mut options, "A codec", ("name", "what it is"), &described);
    options.push_str(&format!(
        "\nBeside these there are `none`, `lz4` and `aggressive`, which is `zstd-dictionary`. In SQL, \
         `zstd` alone is `{}`, as it was in\n0.1.0: another level would change the size and the speed \
         of tables.\n",
        plugin::sql_zstd(&table_options)?
    ));
    transaction_sections(&mut options, &source(TRANSACTION_BUILDERS)?);
    let load = items(&source(BULK_OPTIONS)?, "pub struct BulkOptions {");
    section(&mut options, "A bulk load: `BulkOptions`", ("field", "what it is"), &load);

    let mut status = STATUS_HEAD.to_owned();
    let columns = ("statistic", "meaning");
    let mut database = items(&stats, "job_counters! {");
    database.extend(items(&source(JOB_COUNTERS)?, "macro_rules! job_counters {"));
    section(&mut status, "The database: `Stats`", columns, &database);
    let latencies = source(LATENCIES)?;
    let title = "How long calls and background work take: `Latencies`";
    section(&mut status, title, columns, &items(&latencies, "latencies! {"));
    section(&mut status, "A tree: `TreeStats`", columns, &items(&stats, "pub struct TreeStats {"));
    let recovered = items(&recovery, "pub struct Recovery {");
    section(&mut status, "What an open found: `Recovery`", columns, &recovered);
    let errors = errors::page(
        &source(errors::KINDS)?,
        &source(errors::EXIT_CODES)?,
        &source(errors::NUMBERS)?,
    );
    let variables = source(plugin::VARIABLES)?;
    let rows_in_sql = plugin::rows_of_variables(&variables, &database_rows);
    let variables_page = plugin::with_options(
        &source(plugin::VARIABLES_PAGE)?,
        (&variables, &database_rows),
        (&table_options, &tree_rows),
        &codecs,
    )?;
    let mut pages = examples::pages()?;
    pages.extend([
        ("docs/operating/options.md", options),
        ("docs/operating/status.md", status),
        (errors::PAGE, errors),
        (plugin::ROWS, plugin::rows_as_cpp(&rows_in_sql, &tree_rows, &codecs)),
        (plugin::VARIABLES_PAGE, variables_page),
    ]);
    Ok(pages)
}

/// Reads the rows of a table of options. `constants` is the source with the constants that the
/// ranges name.
fn option_rows(items: Vec<Item>, constants: &str) -> Vec<OptionRow> {
    items.into_iter().map(|item| OptionRow::new(item, constants)).collect()
}

/// Appends the sections for transactions and their cursors.
fn transaction_sections(page: &mut String, builders: &str) {
    let is_option = |item: &Item| item.code.contains("(mut self");
    let columns = ("option", "what it does");
    for (title, scope) in [
        ("A transaction: `TransactionOptions`", "impl TransactionOptions {"),
        ("A transaction's cursor: `TransactionCursorOptions`", "impl TransactionCursorOptions {"),
    ] {
        section(page, title, columns, &split(items(builders, scope), is_option).0);
    }
}

fn split(items: Vec<Item>, first: impl Fn(&Item) -> bool) -> (Vec<Item>, Vec<Item>) {
    items.into_iter().partition(first)
}

fn section(page: &mut String, title: &str, columns: (&str, &str), items: &[Item]) {
    page.push_str(&format!("\n## {title}\n"));
    table(page, columns, items);
}

fn table(page: &mut String, columns: (&str, &str), items: &[Item]) {
    page.push_str(&format!("\n| {} | {} |\n|---|---|\n", columns.0, columns.1));
    for item in items {
        page.push_str(&format!("| `{}` | {} |\n", item.name(), item.doc));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cells_are_found() {
        let long = "x".repeat(CELL_CHARS_MAX + 1);
        let page = format!("{long}\n| a | b |\n| `c` | {long} |\n| {} |\n", &long[1..]);
        assert_eq!(long_cells(&page).collect::<Vec<_>>(), [long.as_str()]);
    }
}
