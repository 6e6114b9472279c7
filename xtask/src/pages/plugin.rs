//! Writes options for the MariaDB plugin: mariadb/src/engine/option_rows.h with ranges, defaults
//! and texts as C++, and two tables between markers in mariadb/docs/variables.md.
//! `SQL_TREE_OPTIONS` in mariadb/src/table/options.h lists the table options, and `settings()` in
//! mariadb/src/plugin/variables.cc the variables that set options of the database.

use super::codecs::CodecRow;
use super::rows::OptionRow;
use crate::Result;

pub(super) const ROWS: &str = "mariadb/src/engine/option_rows.h";
pub(super) const VARIABLES_PAGE: &str = "mariadb/docs/variables.md";
pub(super) const VARIABLES: &str = "mariadb/src/plugin/variables.cc";
pub(super) const TABLE_OPTIONS: &str = "mariadb/src/table/options.h";

/// Names for `TreeOptions::set` that differ from the names of their rows: (name, row).
const ALIASES: [(&str, &str); 1] = [("block_bytes", "base_block_bytes")];

const HEAD: &str = "\
/* SPDX-License-Identifier: GPL-2.0-only

   Written from the source of the library by `cargo xtask pages`: do not edit. Ranges, defaults and texts of the database's
   options that plugin/variables.cc sets and of the tree options that are numbers or flags, under the names that
   frondb_options_set() and frondb_tree_options_set() take, and the levels of the codecs. */

#ifndef FRONDB_ENGINE_OPTION_ROWS_H
#define FRONDB_ENGINE_OPTION_ROWS_H

namespace fron {

struct OptionRow {
  unsigned long long min, max;
  /** The default; 0 if the library computes it. Times are in milliseconds. */
  unsigned long long initial;
  /** Whether the option is fixed when a tree is created. */
  bool is_fixed;
  const char *text;
};

struct CodecLevels {
  const char *codec;
  int first, last;
};
";

/// Returns the rows that the source `variables` names.
pub(super) fn rows_of_variables(variables: &str, rows: &[OptionRow]) -> Vec<OptionRow> {
    let is_named = |row: &&OptionRow| settings_in(variables).any(|(_, option)| option == row.name);
    rows.iter().filter(is_named).cloned().collect()
}

/// Returns the C++ header with the rows of numbers and flags.
pub(super) fn rows_as_cpp(
    database: &[OptionRow],
    tree: &[OptionRow],
    codecs: &[CodecRow],
) -> String {
    let mut out = HEAD.to_owned();
    let mut tree = tree.to_vec();
    for (alias, name) in ALIASES {
        let row = tree.iter().find(|row| row.name == name).cloned();
        tree.extend(row.map(|row| row.renamed(alias)));
    }
    for (space, rows) in [("database_rows", database), ("tree_rows", &tree)] {
        out.push_str(&format!("\nnamespace {space} {{\n"));
        out.extend(rows.iter().filter_map(row_as_cpp));
        out.push_str(&format!("}}  // namespace {space}\n"));
    }
    out.push_str("\ninline constexpr CodecLevels CODEC_LEVELS[] = {\n");
    for CodecRow { name, first, last, .. } in codecs {
        out.push_str(&format!("    {{\"{name}\", {first}, {last}}},\n"));
    }
    out + "};\n\n}  // namespace fron\n\n#endif\n"
}

/// Returns a row as C++; `None` if the option is neither a number nor a flag.
fn row_as_cpp(row: &OptionRow) -> Option<String> {
    let (min, max) = match (row.range, row.default_flag()) {
        (Some(range), _) => range,
        (None, Some(_)) => (0, 1),
        (None, None) => (0, row.default_number().and(Some(u64::MAX))?),
    };
    // C++ has no decimal literal of this size without a suffix.
    let max = if max == u64::MAX { "~0ULL".to_owned() } else { max.to_string() };
    let initial = row.default_flag().map(u64::from).or(row.default_number()).unwrap_or_default();
    Some(format!(
        "inline constexpr OptionRow {} = {{{min}, {max}, {initial}, {}, \"{}\"}};\n",
        row.name,
        row.is_fixed,
        sql_text(&row.doc)
    ))
}

/// Returns a comment without the sentences that name a function of the library, and without quotes.
fn sql_text(doc: &str) -> String {
    let sentences = doc.split_inclusive(". ").filter(|sentence| !sentence.contains("`Db::"));
    sentences.collect::<String>().trim().replace(['`', '"'], "")
}

/// Returns the page of variables with its two tables written again. The sources `variables` and
/// `table_options` say which options SQL has.
pub(super) fn with_options(
    page: &str,
    (variables, database): (&str, &[OptionRow]),
    (table_options, tree): (&str, &[OptionRow]),
    codecs: &[CodecRow],
) -> Result<String> {
    let find = |rows: &[OptionRow], name: &str| {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, row)| *row);
        let row = rows.iter().find(|row| row.name == name).cloned();
        row.ok_or_else(|| format!("the plugin names the option {name}, which the library lacks"))
    };
    let mut ranges = "| variable | option of the library | range |\n|---|---|---|\n".to_owned();
    for (variable, option) in settings_in(variables) {
        let row = find(database, option)?;
        let (Some((min, _)), Some(range)) = (row.range, row.range_text()) else { continue };
        // Every variable accepts 0, which means the default.
        let zero = if min > 0 { "0, or " } else { "" };
        let range = format!("{zero}{range}");
        ranges.push_str(&format!("| `frondb_{variable}` | `{option}` | {range} |\n"));
    }
    let codecs: String = codecs.iter().map(|row| row.values() + ", ").collect();
    let mut options = format!(
        "| option | values | default |\n|---|---|---|\n\
         | `COMPRESSION` | `none`, `lz4`, {codecs}`aggressive` | `zstd`, here `{}` |\n",
        sql_zstd(table_options)?
    );
    for (sql, option) in table_options_in(table_options) {
        let row = find(tree, option)?;
        let (range, default) = (row.range_text(), row.default_text());
        options.push_str(&format!(
            "| `{sql}` | {}; 0: the default | {} |\n",
            range.unwrap_or_default(),
            default.unwrap_or_default()
        ));
    }
    let page = with_block(page, "ranges", &ranges)?;
    with_block(&page, "table options", &options)
}

/// Returns variable and option of each row of `settings()`.
fn settings_in(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.lines().filter_map(|line| {
        let (variable, rest) = line.trim().strip_prefix("{MYSQL_SYSVAR(")?.split_once("), \"")?;
        Some((variable, rest.split('"').next()?))
    })
}

/// Returns SQL name and option of each row of `SQL_TREE_OPTIONS`.
fn table_options_in(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.lines().filter_map(|line| {
        let (row, _) = line.trim().strip_prefix("X(")?.split_once(')')?;
        let mut words = row.split(", ").skip(1);
        Some((words.next()?, words.next()?))
    })
}

/// Returns the codec that SQL's `zstd` stands for.
pub(super) fn sql_zstd(table_options: &str) -> Result<&str> {
    let codec =
        table_options.split_once("SQL_ZSTD[] = \"").and_then(|(_, rest)| rest.split_once('"'));
    codec.map(|(codec, _)| codec).ok_or_else(|| format!("{TABLE_OPTIONS} lacks SQL_ZSTD"))
}

/// Returns `page` with the text between two markers replaced.
fn with_block(page: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}, by `cargo xtask pages` -->\n"), "<!-- end -->");
    let missing = || format!("{VARIABLES_PAGE} lacks the line {begin}or the line {end} behind it");
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::items::Item;
    use super::*;

    fn row(code: &str) -> OptionRow {
        let doc = "Bytes of `a`. `Db::set_a` changes it later. 0 means none.".to_owned();
        OptionRow::new(Item { doc, code: code.to_owned() }, "")
    }

    #[test]
    fn the_plugin_s_sources_say_which_options_sql_has() {
        let variables = "  return {\n      {MYSQL_SYSVAR(a), \"b\", [] { return a; }},\n";
        assert_eq!(settings_in(variables).collect::<Vec<_>>(), [("a", "b")]);
        let rows = ["a(n: u64) -> u64 = 0;", "b(n: u64) -> u64 = 0;"].map(row);
        let named = rows_of_variables(variables, &rows);
        assert_eq!(named.iter().map(|row| &row.name).collect::<Vec<_>>(), ["b"]);
        let options = "#define SQL_TREE_OPTIONS(X) \\\n  X(size, SIZE, block_bytes) \\\n";
        assert_eq!(table_options_in(options).collect::<Vec<_>>(), [("SIZE", "block_bytes")]);
        assert_eq!(sql_zstd("char SQL_ZSTD[] = \"zstd:2\";"), Ok("zstd:2"));
    }

    #[test]
    fn rows_of_numbers_and_flags_are_written_as_cpp() {
        let text = "Bytes of a. 0 means none.";
        for (code, values) in [
            ("a(bytes: u64) -> u64 = 2 << 10, 1..=4 << 10;", "1, 4096, 2048"),
            ("a(bytes: u64) -> u64 = 0;", "0, ~0ULL, 0"),
            ("a(on: bool) -> bool = true;", "0, 1, 1"),
        ] {
            let expected =
                format!("inline constexpr OptionRow a = {{{values}, false, \"{text}\"}};\n");
            assert_eq!(row_as_cpp(&row(code)), Some(expected));
        }
        assert_eq!(row_as_cpp(&row("a(dir: P) -> Option<PathBuf> = None;")), None);
    }

    #[test]
    fn blocks_are_replaced() {
        let page = "a\n<!-- x, by `cargo xtask pages` -->\nold\n<!-- end -->\nb\n";
        let new = "a\n<!-- x, by `cargo xtask pages` -->\n\nnew\n\n<!-- end -->\nb\n";
        assert_eq!(with_block(page, "x", "new\n"), Ok(new.to_owned()));
        assert!(with_block(page, "y", "").is_err());
    }
}
