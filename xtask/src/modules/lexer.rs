//! The tokens of a Rust file that ship: no comments, no literals, no items for tests.
//!
//! The lexer supports only as much of the language as is needed to find paths: names, `::`, and
//! punctuation of one character. It drops strings, numbers and character literals, and the quote of
//! a lifetime.

/// A name, `::`, or one punctuation character.
pub(super) type Token<'a> = &'a str;

/// The tokens of a file, items under `#[cfg(test)]` or `#[cfg(shuttle)]` left out.
pub(super) fn shipped_tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = blank(rest).or_else(|| literal(rest)).unwrap_or_else(|| {
            let length = match first {
                ':' if rest.starts_with("::") => 2,
                c if is_of_name(c) => name_length(rest),
                c => c.len_utf8(),
            };
            tokens.push(&rest[..length]);
            length
        });
        rest = &rest[length..];
    }
    tokens
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn name_length(text: &str) -> usize {
    text.find(|c| !is_of_name(c)).unwrap_or(text.len())
}

/// The length of the white space or comment that `text` begins with.
fn blank(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let length = text.len() - text.trim_start().len();
    (length > 0).then_some(length)
}

/// The length of a block comment. They nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        let mark = text.get(at..at + 2).unwrap_or_default();
        match mark {
            "/*" => depth += 1,
            "*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the literal that `text` begins with, or of the quote of a lifetime.
fn literal(text: &str) -> Option<usize> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(name_length(text));
    }
    if let Some(body) = text.strip_prefix('\'') {
        return Some(1 + character(body).unwrap_or(0));
    }
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|length| *length < 3)?;
    let (prefix, body) = text.split_at(prefix);
    let hashes = body.len() - body.trim_start_matches('#').len();
    if prefix.ends_with('r') && body[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix.len() + hashes + 1;
        return Some(text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()));
    }
    let body = body.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(end.map_or(text.len(), |at| prefix.len() + 1 + at + 1))
}

/// The length of a character literal after its first quote; none for a lifetime.
fn character(body: &str) -> Option<usize> {
    if body.starts_with('\\') {
        return body.get(2..)?.find('\'').map(|at| 2 + at + 1);
    }
    let first = body.chars().next()?.len_utf8();
    body[first..].starts_with('\'').then_some(first + 1)
}

fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let [first, behind @ ..] = rest {
        if rest.starts_with(&["#", "[", "cfg"]) && is_for_tests(&rest[..group(&rest[1..]) + 1]) {
            rest = after_item(rest);
        } else {
            kept.push(*first);
            rest = behind;
        }
    }
    kept
}

/// Whether the condition of a `cfg` holds in tests only: in those of cargo or those of shuttle.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let named = |at: usize| matches!(attribute[at], "test" | "shuttle");
    let denied = |at: usize| at >= 2 && attribute[at - 2] == "not";
    (0..attribute.len()).any(|at| named(at) && !denied(at))
}

/// How many tokens a bracketed group has, its brackets included; `tokens` begins with the opening
/// one.
fn group(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// What follows the item that `tokens` begins with: after its `;`, its `,` or its body.
fn after_item<'a, 'b>(tokens: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let (mut at, mut angles) = (0, 0_usize);
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |at| tokens[at]);
        match tokens[at] {
            ";" => return &tokens[at + 1..],
            // The comma ends a field or a variant; between angle brackets it separates generic
            // parameters.
            "," if angles == 0 => return &tokens[at + 1..],
            // The item was the last one of its block.
            "}" | ")" => return &tokens[at..],
            // The braces of a `use` tree are not a body.
            "{" if before != "::" => return &tokens[at + group(&tokens[at..])..],
            "{" | "(" | "[" => at += group(&tokens[at..]) - 1,
            "<" => angles += 1,
            // The arrow `->` closes nothing.
            ">" if before != "-" => angles = angles.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_tokens() {
        let text = "a /* b /* c */ */ \"d \\\" e\" 'f' '\\'' '\\u{1}' r#\"g \" h\"# b\"i\" 0x1f // j\n\
                    fn k<'l>() { bc::r }";
        assert_eq!(
            tokens(text),
            ["a", "fn", "k", "<", "l", ">", "(", ")", "{", "bc", "::", "r", "}"]
        );
    }

    #[test]
    fn test_items_are_skipped_and_items_after_them_are_not() {
        let text = "#[cfg(test)] mod a; b #[cfg(all(test, not(shuttle)))] #[path = \"x\"] mod c { d }\n\
                    e #[cfg(not(test))] f #[cfg(shuttle)] use g::{h, i}; j { #[cfg(test)] k: u8 } \
                    #[cfg(test)] fn m<N, O>() -> P<Q, R> { s } l";
        let text = shipped_tokens(text).join(" ");
        assert_eq!(text, "b e # [ cfg ( not ( test ) ) ] f j { } l");
    }
}
