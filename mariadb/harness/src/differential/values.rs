//! Literals for columns. They come from small pools, so that rows collide and statements find rows.
//! The pools contain everything that makes sorting hard: case, accents, trailing spaces, control
//! characters, letters that expand or contract, signs, limits.

use frondb_core::prng::Prng;

use super::catalog::{Family, Type};
use super::pieces::{PIECES, hex};

/// A literal, or NULL if the column allows it.
pub(super) fn literal(random: &mut Prng, ty: &Type, nullable: bool) -> String {
    if nullable && random.chance(1, 8) {
        return "NULL".to_owned();
    }
    match ty.family {
        Family::Integer { bits, unsigned } => integer(random, bits, unsigned),
        Family::Decimal => format!("{}.{:03}", signed(random, 40), random.below(1000)),
        Family::Float => {
            format!("{}.{}e{}", signed(random, 9), random.below(100), signed(random, 8))
        }
        Family::Bit(bits) => format!("b'{:b}'", random.below(if bits > 6 { 40 } else { 2 })),
        Family::Date => format!("'{}'", date(random)),
        Family::Time => format!(
            "'{}{:02}:{:02}:{:02}.{:06}'",
            if random.chance(1, 3) { "-" } else { "" },
            random.below(30),
            random.below(3),
            random.below(60),
            random.below(3) * 250_001
        ),
        Family::DateTime => format!(
            "'{} {:02}:{:02}:{:02}.{:03}'",
            date(random),
            random.below(24),
            random.below(2),
            random.below(3),
            random.below(2) * 123
        ),
        Family::Year => format!("{}", 1990 + random.below(40)),
        Family::Text { long } => text(random, ty, if long { 30 } else { 5 }),
        Family::Bytes { long } => bytes(random, if long { 300 } else { 6 }),
        Family::Enum => one_of(random, &["'a'", "'b'", "'c d'", "''"]),
        Family::Set => one_of(random, &["'x'", "'y,x'", "'z,w'", "''", "'x,y,z,w'", "'w'"]),
        Family::Json => format!("'{{\"k\": {}, \"t\": [{}]}}'", random.below(20), random.below(3)),
        Family::Uuid => {
            format!("'{:08x}-0000-1000-8000-{:012x}'", random.below(40) << 20, random.below(9))
        }
        Family::Inet4 => format!("'{}.0.0.{}'", random.below(3) * 90, random.below(200)),
        Family::Inet6 => format!("'{:x}::{:x}'", random.below(3) * 0x7fff, random.below(300)),
        Family::Geometry => geometry(random),
    }
}

fn one_of(random: &mut Prng, values: &[&str]) -> String {
    random.pick(values).copied().unwrap_or("NULL").to_owned()
}

fn signed(random: &mut Prng, limit: u64) -> i64 {
    random.below(2 * limit) as i64 - limit as i64
}

/// Draws mostly a small number, sometimes a limit of the type or a number just beyond it.
fn integer(random: &mut Prng, bits: u32, unsigned: bool) -> String {
    let (lowest, highest) = if unsigned {
        (0, (1i128 << bits) - 1)
    } else {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    };
    let value = match random.below(24) {
        0 => lowest,
        1 => highest,
        2 if random.chance(1, 6) => highest + 1,
        _ if unsigned => i128::from(random.below(60)),
        _ => i128::from(signed(random, 30)),
    };
    value.to_string()
}

fn date(random: &mut Prng) -> String {
    format!("{}-{:02}-{:02}", 1995 + random.below(40), 1 + random.below(12), 1 + random.below(28))
}

/// Draws a text of fewer than `pieces` pieces, as a literal.
fn text(random: &mut Prng, ty: &Type, pieces: u64) -> String {
    // A character that the column's character set lacks causes an error or becomes a question mark.
    let from = if random.chance(1, 30) { &PIECES } else { &*ty.pieces };
    let count = random.below(pieces);
    let text: String = (0..count).filter_map(|_| random.pick(from).copied()).collect();
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return format!("'{text}'");
    }
    format!("_utf8mb4 0x{}", hex(text.as_bytes()))
}

fn bytes(random: &mut Prng, longest: u64) -> String {
    let longest = if random.chance(1, 3) { longest } else { longest.min(3) };
    let mut bytes = vec![0; random.below(longest + 1) as usize];
    for byte in &mut bytes {
        // Bytes at limits, which show wrong escapes and signs.
        *byte = [0, 1, 0x20, 0x61, 0x7F, 0x80, 0xFF][random.index(7)];
    }
    if bytes.is_empty() { "''".to_owned() } else { format!("0x{}", hex(&bytes)) }
}

/// Draws a geometry of a random shape. A column of a type other than GEOMETRY refuses some shapes.
fn geometry(random: &mut Prng) -> String {
    let (x, y) = (random.below(9), random.below(9));
    let shape = match random.below(3) {
        0 => format!("POINT({x} {y})"),
        1 => format!("LINESTRING({x} {y},1 2,{y} {x})"),
        _ => format!("POLYGON((0 0,{x} 9,9 {y},0 0))"),
    };
    format!("ST_GeomFromText('{shape}')")
}
