//! Finds the names of the server's headers that the plugin uses.
//!
//! These are the identifiers in the plugin's own source, and in the inline functions of the
//! server's headers that were compiled into the plugin, according to its debug information.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::compare::Used;
use super::debug_info::{Entry, each_unit, text};
use crate::Result;
use crate::mariadb::source::INCLUDE;
use crate::workspace::read;

/// Returns the names that `plugin` uses. `plugin` was built from the files below `source` with
/// `headers`.
pub(super) fn find(plugin: &Path, source: &Path, headers: &Path) -> Result<Used> {
    let mut used = Used::default();
    let mut files = Vec::new();
    collect(source, &mut files)?;
    for file in files {
        used.add_source(&read(&file)?);
    }
    for (file, lines) in inline_functions(plugin, headers)? {
        let text = read(&file)?;
        let all: Vec<&str> = text.lines().collect();
        for line in lines {
            used.add_function(all.get(line.saturating_sub(1)..).unwrap_or_default());
        }
    }
    Ok(used)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result {
    let failed = |e| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "cc" || end == "h") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns, by file, the first line of each inline function of the server that was compiled into
/// the plugin.
fn inline_functions(plugin: &Path, headers: &Path) -> Result<BTreeMap<PathBuf, BTreeSet<usize>>> {
    let mut found: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
    each_unit(plugin, |dwarf, unit, entries| {
        let at: BTreeMap<usize, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.offset().0, at)).collect();
        let folder = text(dwarf, unit, &entries[0], gimli::DW_AT_comp_dir)?.unwrap_or_default();
        let program = unit.line_program.as_ref();
        for entry in entries.iter().filter(|entry| is_compiled(entry)) {
            let Some((file, line)) = declared_at(entry, entries, &at) else { continue };
            let header = program.map(gimli::IncompleteLineProgram::header);
            let Some((header, file)) = header.and_then(|h| Some((h, h.file(file)?))) else {
                continue;
            };
            let mut path = PathBuf::from(&folder);
            if let Some(directory) = file.directory(header) {
                path.push(dwarf.attr_string(unit, directory)?.to_string_lossy().as_ref());
            }
            path.push(dwarf.attr_string(unit, file.path_name())?.to_string_lossy().as_ref());
            if let Some(path) = of_server(&path, headers) {
                found.entry(path).or_default().insert(line);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the path of a header of the server on this machine, also if the plugin was compiled in
/// another folder; `None` for other files.
fn of_server(path: &Path, headers: &Path) -> Option<PathBuf> {
    if path.starts_with(INCLUDE) {
        return Some(path.to_owned());
    }
    let name = headers.file_name()?;
    let mut parts = path.components().skip_while(|part| part.as_os_str() != name);
    parts.next().map(|_| headers.join(parts.collect::<PathBuf>()))
}

fn is_compiled(entry: &Entry<'_>) -> bool {
    entry.tag() == gimli::DW_TAG_subprogram
        && [gimli::DW_AT_inline, gimli::DW_AT_low_pc, gimli::DW_AT_ranges]
            .iter()
            .any(|attribute| entry.attr(*attribute).is_some())
}

/// Returns file and line of the declaration of the function that `entry` describes. Both may be in
/// another entry, to which `entry` refers.
fn declared_at<'d>(
    entry: &Entry<'d>,
    entries: &[Entry<'d>],
    at: &BTreeMap<usize, usize>,
) -> Option<(u64, usize)> {
    let mut entry = entry;
    for _ in 0..8 {
        let number = |attribute| entry.attr(attribute)?.udata_value();
        let file = entry.attr(gimli::DW_AT_decl_file).map(gimli::Attribute::value);
        let file = file.and_then(|value| match value {
            gimli::AttributeValue::FileIndex(index) => Some(index),
            other => other.udata_value(),
        });
        if let (Some(file), Some(line)) = (file, number(gimli::DW_AT_decl_line)) {
            return Some((file, usize::try_from(line).ok()?));
        }
        let referred = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        let value = referred.iter().find_map(|attribute| entry.attr_value(*attribute))?;
        let gimli::AttributeValue::UnitRef(offset) = value else { return None };
        entry = entries.get(*at.get(&offset.0)?)?;
    }
    None
}

impl Used {
    fn add_source(&mut self, text: &str) {
        let tokens = tokens(text);
        for (at, token) in tokens.iter().enumerate() {
            if !is_identifier(token) {
                continue;
            }
            self.identifiers.insert((*token).to_owned());
            let before = at.checked_sub(1).map_or("", |at| tokens[at]);
            let after = tokens.get(at + 1).copied().unwrap_or_default();
            // A name after `::` counts, because `&Item::f` may be called later, by its number in
            // the table of virtual functions.
            if (matches!(before, "." | "->") && after == "(") || before == "::" {
                self.called.insert((*token).to_owned());
            }
            // A pointer, a reference, a scope, a member or a forward declaration makes no object.
            let apart = matches!(after, "*" | "&" | "::" | ">" | "const")
                || (matches!(before, "class" | "struct" | "enum") && after == ";")
                || matches!(before, "." | "->" | "typename");
            if !apart {
                self.embodied.insert((*token).to_owned());
            }
        }
    }

    /// Adds the identifiers of the function that begins on the first of these lines.
    fn add_function(&mut self, lines: &[&str]) {
        let text = lines.iter().take(200).copied().collect::<Vec<_>>().join("\n");
        let mut depth = 0;
        let tokens = tokens(&text);
        for (at, &token) in tokens.iter().enumerate() {
            match token {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ if is_identifier(token) => {
                    // A function calls members of its own class without naming an object.
                    let is_named = at > 0 && tokens[at - 1] == "::";
                    if is_named || tokens.get(at + 1) == Some(&"(") {
                        self.called.insert(token.to_owned());
                    }
                    self.identifiers.insert(token.to_owned());
                }
                _ => {}
            }
            if (token == "}" && depth <= 0) || (token == ";" && depth == 0) {
                break;
            }
        }
    }
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Splits C++ text into words and marks, without comments and quoted text.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = |end: &str, from: usize| {
            rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
        };
        let bytes = if rest.starts_with("//") {
            skip("\n", 0)
        } else if rest.starts_with("/*") {
            skip("*/", 2)
        } else if first == '"' || first == '\'' {
            quoted(rest)
        } else if first.is_ascii_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") || rest.starts_with("->") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(bytes);
        let is_text =
            token.starts_with(['"', '\'']) || token.starts_with("//") || token.starts_with("/*");
        if !first.is_whitespace() && !is_text {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// Returns the length in bytes of the quoted text at the beginning of `text`.
fn quoted(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let mut end = (at + 1).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_uses_names_and_embodies_classes() {
        let mut used = Used::default();
        used.add_source(
            "class Later; // thd->comment\nclass Ours final : public Base {\n THD *thd; Held held;\n\
             const char *text = \"quoted\"; int f(const Seen &seen) { return thd->lex->'x'; } };",
        );
        for name in ["lex", "THD", "Held", "Seen", "Later"] {
            assert!(used.identifiers.contains(name), "{name}");
        }
        assert!(!used.identifiers.contains("comment") && !used.identifiers.contains("quoted"));
        assert!(used.embodied.contains("Base") && used.embodied.contains("Held"));
        for name in ["THD", "Seen", "Later", "lex"] {
            assert!(!used.embodied.contains(name), "{name}");
        }
    }

    #[test]
    fn an_inline_function_ends_with_its_brace() {
        let mut used = Used::default();
        used.add_function(&["  bool f() const { if (a) { return b; }", " return c; }", "int d;"]);
        assert!(["a", "b", "c"].iter().all(|name| used.identifiers.contains(*name)));
        assert!(!used.identifiers.contains("d"));
        used.add_function(&["void g(int e);", "int h;"]);
        assert!(used.identifiers.contains("e") && !used.identifiers.contains("h"));
    }
}
