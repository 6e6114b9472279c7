//! Generates pages for operators from the source. docs/operating/options.md comes from the builders
//! of `Options`, `TreeOptions` and `TransactionOptions` and the fields of `BulkOptions`;
//! docs/operating/status.md from the structs of statistics; the examples in README.md from the
//! library's own examples, which are compiled and run as tests. Tables have the first paragraph of
//! each comment; the library's documentation has all of it. [`rows`] reads ranges and defaults.
//! [`plugin`] writes ranges and defaults for the MariaDB plugin, as C++ and in its page of
//! variables.
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
mod items;
mod plugin;
mod rows;

use std::fs;

use crate::Result;
use crate::workspace::{read, root};

use codecs::{CodecRow, codec_rows};
use items::{Item, items};
use rows::OptionRow;

/// The sources of README.md's examples, in the order of README.md.
const EXAMPLES: [&str; 2] = ["crates/frondb/src/lib.rs", "crates/frondb/src/transaction.rs"];
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
fn pages() -> Result<[(&'static str, String); 5]> {
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
    let [library, transaction] = EXAMPLES;
    let examples = [example(&source(library)?), example(&source(transaction)?)];
    let readme = with_examples(&source("README.md")?, &examples)?;
    let variables = source(plugin::VARIABLES)?;
    let rows_in_sql = plugin::rows_of_variables(&variables, &database_rows);
    let variables_page = plugin::with_options(
        &source(plugin::VARIABLES_PAGE)?,
        (&variables, &database_rows),
        (&table_options, &tree_rows),
        &codecs,
    )?;
    Ok([
        ("docs/operating/options.md", options),
        ("docs/operating/status.md", status),
        ("README.md", readme),
        (plugin::ROWS, plugin::rows_as_cpp(&rows_in_sql, &tree_rows, &codecs)),
        (plugin::VARIABLES_PAGE, variables_page),
    ])
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

/// Returns the first example in the comments of a source file, without the lines that rustdoc
/// hides.
fn example(source: &str) -> String {
    let comments = source
        .lines()
        .map(str::trim_start)
        .filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    let mut example = String::new();
    // The language of the open code block; empty for an example.
    let mut open = None;
    for line in comments {
        match (open, line.strip_prefix(" ```")) {
            (None, Some(kind)) => open = Some(kind),
            (Some(""), Some(_)) => break,
            (Some(_), Some(_)) => open = None,
            (Some(""), None) if !line.starts_with(" # ") => {
                example.push_str(line.strip_prefix(' ').unwrap_or_default());
                example.push('\n');
            }
            _ => {}
        }
    }
    example
}

/// Returns `page` with its blocks of Rust replaced by the examples, one after the other.
fn with_examples(page: &str, examples: &[String]) -> Result<String> {
    let mut parts = page.split("```rust\n");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut left = examples.iter();
    for part in parts {
        let example = left.next().ok_or("README.md has a block of Rust without an example")?;
        let (_, after) = part.split_once("```\n").ok_or("README.md has an open block of Rust")?;
        out.push_str(&format!("```rust\n{example}```\n{after}"));
    }
    match left.next() {
        None => Ok(out),
        Some(_) => Err("README.md has fewer blocks of Rust than examples".to_owned()),
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

    #[test]
    fn the_examples_are_the_librarys_without_hidden_lines() {
        let library =
            "//! Head.\n//!\n//! ```\n//! use x;\n//!\n//! # fn main() {\n//! y()\n//! ```\n";
        let of_type = "//! ```text\n//! x\n//! ```\nuse z;\n    /// ```\n    /// z()\n    /// ```\n    fn z() {}\n";
        let examples = [example(library), example(of_type)];
        let page = "Look:\n```rust\nold\n```\nThat was it.\n```rust\n```\n";
        let expected = "Look:\n```rust\nuse x;\n\ny()\n```\nThat was it.\n```rust\nz()\n```\n";
        assert_eq!(with_examples(page, &examples), Ok(expected.to_owned()));
        assert!(with_examples("no block", &examples).is_err());
        assert!(with_examples(page, &examples[..1]).is_err());
    }
}
