//! Splits a Rust file into the tokens that ship: without comments, literals and items for tests.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::Result;

/// A name, `::`, or one punctuation character.
pub(super) type Token<'a> = &'a str;

/// Returns all tokens of a file, except comments, literals and the quotes of lifetimes.
pub(super) fn tokens(text: &str) -> Result<Vec<String>> {
    let stream: TokenStream = text.parse().map_err(|e| format!("not Rust: {e}"))?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<String>) {
    let mut is_half = false;
    for tree in stream {
        let is_second = std::mem::take(&mut is_half);
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(open.to_owned());
                flatten(group.stream(), tokens);
                tokens.push(close.to_owned());
            }
            TokenTree::Ident(name) => tokens.push(name.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ':' && is_second => {
                tokens.pop();
                tokens.push("::".to_owned());
            }
            TokenTree::Punct(mark) if mark.as_char() == '\'' => {}
            TokenTree::Punct(mark) => {
                is_half = mark.as_char() == ':' && mark.spacing() == Spacing::Joint;
                tokens.push(mark.to_string());
            }
            TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the tokens without items under `#[cfg(test)]` or `#[cfg(shuttle)]`.
pub(super) fn shipped(tokens: &[String]) -> Vec<Token<'_>> {
    let tokens: Vec<Token<'_>> = tokens.iter().map(String::as_str).collect();
    without_tests(&tokens)
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

/// Returns whether the condition of a `cfg` holds only in tests, of cargo or of shuttle.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let named = |at: usize| matches!(attribute[at], "test" | "shuttle");
    let denied = |at: usize| at >= 2 && attribute[at - 2] == "not";
    (0..attribute.len()).any(|at| named(at) && !denied(at))
}

/// Returns the number of tokens of a bracketed group, brackets included. `tokens` begins with the
/// opening bracket.
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

/// Returns the tokens after the item with which `tokens` begins. An item ends with `;`, `,` or its
/// body.
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
            tokens(text).unwrap(),
            ["a", "fn", "k", "<", "l", ">", "(", ")", "{", "bc", "::", "r", "}"]
        );
        assert!(tokens("fn f() {").is_err());
    }

    #[test]
    fn test_items_are_skipped_and_items_after_them_are_not() {
        let text = "#[cfg(test)] mod a; b #[cfg(all(test, not(shuttle)))] #[path = \"x\"] mod c { d }\n\
                    e #[cfg(not(test))] f #[cfg(shuttle)] use g::{h, i}; j { #[cfg(test)] k: u8 } \
                    #[cfg(test)] fn m<N, O>() -> P<Q, R> { s } l";
        let text = shipped(&tokens(text).unwrap()).join(" ");
        assert_eq!(text, "b e # [ cfg ( not ( test ) ) ] f j { } l");
    }
}
