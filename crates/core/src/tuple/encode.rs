//! Encodes parts into keys.

use super::format::{
    END, ESCAPED, TAG_BYTES, TAG_F32, TAG_F64, TAG_FALSE, TAG_NULL, TAG_STRING, TAG_TRUE, TAG_ZERO,
};
use super::part::{Part, Scalar};

/// Encodes a tuple as a key.
#[must_use]
pub fn encode(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        encode_part(part, &mut out);
    }
    out
}

/// Appends the encoding of `part` to `out`. For callers that build keys in their own buffer.
pub fn encode_part(part: &Part<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    match &part.scalar {
        Scalar::Null => out.push(TAG_NULL),
        Scalar::Bool(false) => out.push(TAG_FALSE),
        Scalar::Bool(true) => out.push(TAG_TRUE),
        Scalar::Int(value) => encode_integer(*value >= 0, value.unsigned_abs(), out),
        Scalar::Uint(value) => encode_integer(true, *value, out),
        Scalar::F32(value) => {
            let bits = value.to_bits();
            let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.push(TAG_F32);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Scalar::F64(value) => {
            let bits = value.to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.push(TAG_F64);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Scalar::Bytes(bytes) => encode_string(TAG_BYTES, bytes, out),
        Scalar::Str(string) => encode_string(TAG_STRING, string.as_bytes(), out),
    }
    if part.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

fn encode_integer(positive: bool, magnitude: u128, out: &mut Vec<u8>) {
    let skipped = magnitude.leading_zeros() as usize / 8;
    let bytes = &magnitude.to_be_bytes()[skipped..];
    if positive {
        out.push(TAG_ZERO + bytes.len() as u8);
        out.extend_from_slice(bytes);
    } else {
        out.push(TAG_ZERO - bytes.len() as u8);
        out.extend(bytes.iter().map(|byte| !byte));
    }
}

fn encode_string(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 3);
    out.push(tag);
    for (i, piece) in bytes.split(|&byte| byte == 0).enumerate() {
        if i > 0 {
            out.extend_from_slice(&[0, ESCAPED]);
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[0, END]);
}
