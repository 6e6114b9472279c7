//! How keys and values, which are bytes, are written on the command line, in JSON and in table
//! cells.
//!
//! Every encoding is exact: [`Encoding::decode`] turns the text of [`Encoding::encode`] back into
//! the same bytes.
//!
//! | name | written | for |
//! |---|---|---|
//! | `text` | UTF-8 as it is; control and other bytes as `\xHH`, or `\\ \n \r \t \0` | people |
//! | `hex` | two lower-case hexadecimal digits for each byte | binary numbers |
//! | `base64` | RFC 4648 with padding | programs |

use clap::ValueEnum;

use crate::failure::Failure;

/// How bytes are written as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Encoding {
    /// UTF-8; other bytes as \xHH.
    #[default]
    Text,
    /// Two hexadecimal digits for each byte.
    Hex,
    /// RFC 4648 with padding.
    Base64,
}

impl Encoding {
    /// Returns the bytes that `text` stands for.
    pub(crate) fn decode(self, text: &str) -> Result<Vec<u8>, Failure> {
        let decoded = match self {
            Self::Text => decode_text(text),
            Self::Hex => decode_hex(text),
            Self::Base64 => decode_base64(text),
        };
        decoded.map_err(|why| {
            let name = self.to_possible_value().map(|v| v.get_name().to_owned());
            let name = name.unwrap_or_default();
            Failure::usage(format!("`{}` is not {name}: {why}", shortened(text)))
        })
    }

    /// Returns the text that stands for `bytes`.
    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Text => encode_text(bytes),
            Self::Hex => encode_hex(bytes),
            Self::Base64 => encode_base64(bytes),
        }
    }
}

/// Returns the name of a tree for people: on one line, and with control characters, which a
/// terminal would obey, as escapes.
pub(crate) fn shown_name(name: &str) -> String {
    encode_text(name.as_bytes())
}

/// Maximum number of characters of a key or value that an error message shows.
const CHARS_SHOWN: usize = 60;

/// Returns a key or value for an error message: only its beginning if it is long.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARS_SHOWN) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn encode_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\0' => out.push_str("\\0"),
                c if c.is_control() => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escape(&mut out, byte));
                }
                c => out.push(c),
            }
        }
        for &byte in chunk.invalid() {
            push_escape(&mut out, byte);
        }
    }
    out
}

fn push_escape(out: &mut String, byte: u8) {
    out.push_str("\\x");
    push_hex(out, byte);
}

fn push_hex(out: &mut String, byte: u8) {
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

fn decode_text(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first().ok_or("a backslash at the end")?;
        rest = after;
        out.push(match escape {
            b'\\' => b'\\',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'x' => {
                let (digits, after) =
                    rest.split_first_chunk::<2>().ok_or("\\x needs two hexadecimal digits")?;
                rest = after;
                hex_byte(*digits).ok_or("\\x needs two hexadecimal digits")?
            }
            _ => return Err("a backslash must be followed by \\ n r t 0 or xHH"),
        });
    }
    Ok(out)
}

fn encode_hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for &byte in bytes {
        push_hex(&mut out, byte);
    }
    out
}

fn decode_hex(text: &str) -> Result<Vec<u8>, &'static str> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err("an odd number of digits");
    }
    pairs.iter().map(|pair| hex_byte(*pair).ok_or("a digit that is not 0-9 or a-f")).collect()
}

fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(BASE64[(bits >> (18 - 6 * i)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn decode_base64(text: &str) -> Result<Vec<u8>, &'static str> {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return Err("the length is not a multiple of four");
    }
    let mut out = Vec::with_capacity(groups.len() * 3);
    for (i, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|&&c| c == b'=').count();
        if padding > 2 || (padding > 0 && i + 1 < groups.len()) {
            return Err("padding in the middle");
        }
        let mut bits = 0u32;
        for &c in &group[..4 - padding] {
            let digit = BASE64.iter().position(|&b| b == c).ok_or("a character outside base64")?;
            bits = bits << 6 | digit as u32;
        }
        bits <<= 6 * padding;
        let bytes = bits.to_be_bytes();
        // Unused bits must be zero, so that only one text stands for the same bytes.
        if bytes[4 - padding..].iter().any(|&byte| byte != 0) {
            return Err("bits beyond the last byte");
        }
        out.extend_from_slice(&bytes[1..4 - padding]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Text, Encoding::Hex, Encoding::Base64];

    #[test]
    fn every_byte_string_comes_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let mut samples = vec![vec![], b"plain".to_vec(), "\u{e9}\u{20ac}".into(), every_byte];
        samples.extend((1..8).map(|n| vec![0xff; n]));
        for encoding in ALL {
            for sample in &samples {
                let text = encoding.encode(sample);
                assert_eq!(encoding.decode(&text).unwrap(), *sample, "{encoding:?} {text}");
                assert!(!text.contains(['\n', '\t', '\0']), "{encoding:?} stays on a line");
            }
        }
    }

    #[test]
    fn each_encoding_writes_these_texts() {
        assert_eq!(Encoding::Text.encode(b"a\\b\n\x01\xff"), "a\\\\b\\n\\x01\\xff");
        assert_eq!(Encoding::Hex.encode(b"\x00\xab"), "00ab");
        for (bytes, text) in [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(Encoding::Base64.encode(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn invalid_encodings_are_refused() {
        for (encoding, text) in [
            (Encoding::Text, "a\\"),
            (Encoding::Text, "\\q"),
            (Encoding::Text, "\\x4"),
            (Encoding::Text, "\\x4g"),
            (Encoding::Hex, "abc"),
            (Encoding::Hex, "+1"),
            (Encoding::Hex, "zz"),
            (Encoding::Base64, "Zg="),
            (Encoding::Base64, "Z==="),
            (Encoding::Base64, "Zg==Zg=="),
            (Encoding::Base64, "Zh=="),
            (Encoding::Base64, "Z-8="),
        ] {
            assert!(encoding.decode(text).is_err(), "{encoding:?} {text}");
        }
    }
}
