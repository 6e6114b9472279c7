//! Splits an SQL script into statements as the client `mariadb` does. A statement ends at a
//! delimiter, which DELIMITER lines change. Delimiters in strings and comments are ignored.

use crate::options::Engine;

/// Engines that [`sent`] replaces. Tables of MEMORY keep their engine.
const REPLACED: [&str; 2] = ["InnoDB", "MyISAM"];

/// The statements of a script, without the comments before them.
pub(super) fn statements(text: &str) -> Vec<&str> {
    let mut delimiter = ";";
    let mut found = Vec::new();
    let mut rest = skip_comments(text);
    while !rest.is_empty() {
        if let Some((next, after)) = delimiter_line(rest) {
            delimiter = next;
            rest = skip_comments(after);
            continue;
        }
        let (statement, after) = rest.split_at(end(rest, delimiter));
        if !statement.trim_end().is_empty() {
            found.push(statement.trim_end());
        }
        rest = skip_comments(after.strip_prefix(delimiter).unwrap_or_default());
    }
    found
}

/// Returns the statement as the client sends it, with `engine` instead of InnoDB and MyISAM if the
/// statement creates or alters a table. Other statements may have these words in their data.
pub(super) fn sent(statement: &str, engine: Engine) -> String {
    let mut words = tokens(statement).filter(is_word).map(str::to_ascii_uppercase);
    let words = [words.next(), words.next()].map(Option::unwrap_or_default);
    let is_definition = words == ["CREATE", "TABLE"] || words == ["ALTER", "TABLE"];
    // The last two tokens that are not blanks.
    let mut before = ["", ""];
    let mut sent = String::with_capacity(statement.len());
    for token in tokens(statement) {
        let names_engine = before[0].eq_ignore_ascii_case("ENGINE") && before[1] == "=";
        let is_replaced = REPLACED.iter().any(|name| token.eq_ignore_ascii_case(name));
        match token {
            // A backslash begins a command of the client, which the client does not send.
            "\\" => {}
            _ if is_definition && names_engine && is_replaced => sent.push_str(engine.name()),
            _ => sent.push_str(token),
        }
        if !token.trim().is_empty() {
            before = [before[1], token];
        }
    }
    sent
}

/// Skips blanks and comments, except comments that the server executes; returns the rest.
fn skip_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(length) = comment(rest).filter(|_| !rest.starts_with("/*!")) {
        rest = rest[length..].trim_start();
    }
    rest
}

/// If the text begins with a DELIMITER line, returns the delimiter and the text after the line.
fn delimiter_line(text: &str) -> Option<(&str, &str)> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = line.split_whitespace();
    let is_delimiter = words.next()?.eq_ignore_ascii_case("DELIMITER");
    is_delimiter.then(|| Some((words.next()?, after)))?
}

/// Offset at which the first statement of the text ends.
fn end(text: &str, delimiter: &str) -> usize {
    let mut at = 0;
    while !text[at..].is_empty() && !text[at..].starts_with(delimiter) {
        at += token(&text[at..]);
    }
    at
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (first, after) = rest.split_at(token(rest));
        rest = after;
        (!first.is_empty()).then_some(first)
    })
}

/// The length of the first token: a string, a quoted name, a comment, a word, or one character.
fn token(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    if let Some(length) = comment(text) {
        return length;
    }
    match first {
        '\'' | '"' | '`' => quoted(text, first),
        _ if is_of_word(first) => text.find(|c| !is_of_word(c)).unwrap_or(text.len()),
        _ => first.len_utf8(),
    }
}

fn is_of_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn is_word(token: &&str) -> bool {
    token.starts_with(is_of_word)
}

/// The length of the comment at the front of the text; none if there is no comment.
fn comment(text: &str) -> Option<usize> {
    let to = |end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
    let is_line = text
        .strip_prefix("--")
        .is_some_and(|rest| rest.chars().next().is_none_or(|c| c.is_whitespace()));
    if is_line || text.starts_with('#') {
        Some(to("\n"))
    } else if text.starts_with("/*") {
        Some(to("*/"))
    } else {
        None
    }
}

/// The length of the quoted text at the front. A doubled quote inside counts as the end of one
/// quoted text and the beginning of another.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return at + 1;
        }
        if character == '\\' && quote != '`' {
            characters.next();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_split_where_the_client_splits_them() {
        let script = "-- a; b\n/* c; */ SELECT 'a;''b\\';', `;` # x;\n ;;\nDELIMITER $$\n\
                      CREATE TRIGGER t BEGIN\nSELECT 1;\nEND\n$$\nDELIMITER ;\n/*!1 SELECT 2 */;\nSELECT 3--1";
        let expected = [
            "SELECT 'a;''b\\';', `;` # x;",
            "CREATE TRIGGER t BEGIN\nSELECT 1;\nEND",
            "/*!1 SELECT 2 */",
            "SELECT 3--1",
        ];
        assert_eq!(statements(script), expected);
        assert!(statements("# nothing").is_empty());
    }

    #[test]
    fn engines_are_replaced_in_definitions_of_tables_alone() {
        let replaced = |statement| sent(statement, Engine::FronDb);
        assert_eq!(
            replaced(
                "create TABLE /*_*/t (a INT COMMENT 'ENGINE=InnoDB') engine = INNODB COMMENT 'x'"
            ),
            "create TABLE /*_*/t (a INT COMMENT 'ENGINE=InnoDB') engine = FronDB COMMENT 'x'"
        );
        assert_eq!(replaced("ALTER TABLE t ENGINE=MyISAM"), "ALTER TABLE t ENGINE=FronDB");
        assert_eq!(replaced("SELECT \\\n'\\\n'"), "SELECT \n'\\\n'");
        for same in ["CREATE TABLE t (a INT) ENGINE=MEMORY", "SELECT ENGINE=InnoDB", "CREATE"] {
            assert_eq!(replaced(same), same);
        }
    }
}
