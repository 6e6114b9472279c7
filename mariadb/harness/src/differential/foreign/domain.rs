//! Types of columns that foreign keys connect, and values for them.

use frondb_core::prng::Prng;

/// Types whose columns may refer to each other, and literals that fit most of the types. Some
/// literals are equal in the type but have different bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Domain {
    /// The types. The first is drawn most often.
    pub(super) types: &'static [&'static str],
    values: &'static [&'static str],
}

const fn of(types: &'static [&'static str], values: &'static [&'static str]) -> Domain {
    Domain { types, values }
}

const WORDS: &[&str] = &["'a'", "'A'", "'a '", "'b'", "'B  '", "'c'", "''", "'\u{e4}'", "'abcdef'"];

/// In each domain, no CHAR is longer than another type, since InnoDB refuses to copy the spaces of
/// a CHAR into a shorter column. FronDB checks whether the value without trailing spaces fits.
const DOMAINS: &[Domain] = &[
    of(&["INT"], &["1", "2", "3", "4", "5", "0", "-7"]),
    of(&["TINYINT UNSIGNED"], &["1", "2", "3", "200", "0", "255"]),
    of(&["BIGINT UNSIGNED"], &["1", "2", "3", "18446744073709551615"]),
    of(&["SMALLINT"], &["1", "2", "3", "-1", "-32768"]),
    of(&["DECIMAL(6,2)"], &["1", "1.00", "1.5", "-2.25", "0", "-0.01"]),
    of(&["DOUBLE"], &["0", "-0e0", "0.5", "1", "-3e10"]),
    of(&["DATE"], &["'2024-02-29'", "'1999-12-31'", "'2000-01-01'", "'9999-12-31'"]),
    of(&["DATETIME(3)"], &["'2024-02-29 1:02:03.004'", "'2024-02-29'", "'1999-12-31 23:59:59'"]),
    of(&["TIME(6)"], &["'1:02:03.000004'", "'-1:00:00'", "'0:00:00'", "'838:59:59'"]),
    of(&["YEAR"], &["2024", "1999", "1901"]),
    of(&["BIT(5)"], &["b'1'", "b'10'", "b'11111'", "b'0'"]),
    of(&["ENUM('x','y','z')"], &["'x'", "'y'", "'z'", "'X'"]),
    of(
        &["UUID"],
        &["'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-1000-8000-000000000001'"],
    ),
    of(&["INET6"], &["'::1'", "'::'", "'ffff::2'"]),
    of(
        &[
            "VARCHAR(8) COLLATE utf8mb4_general_ci",
            "VARCHAR(30) COLLATE utf8mb4_general_ci",
            "VARCHAR(3) COLLATE utf8mb4_general_ci",
        ],
        WORDS,
    ),
    of(
        &[
            "VARCHAR(8) COLLATE utf8mb4_general_ci",
            "CHAR(8) COLLATE utf8mb4_general_ci",
            "VARCHAR(12) COLLATE utf8mb4_general_ci",
        ],
        WORDS,
    ),
    of(
        &[
            "CHAR(6) COLLATE utf8mb4_unicode_ci",
            "VARCHAR(6) COLLATE utf8mb4_unicode_ci",
            "VARCHAR(20) COLLATE utf8mb4_unicode_ci",
        ],
        &["'ss'", "'\u{df}'", "'a'", "'A '", "''", "'\u{e4}'", "'b'"],
    ),
    of(&["VARCHAR(8) COLLATE utf8mb4_bin", "CHAR(8) COLLATE utf8mb4_bin"], WORDS),
    of(&["VARCHAR(8) COLLATE utf8mb4_nopad_bin", "VARCHAR(12) COLLATE utf8mb4_nopad_bin"], WORDS),
    of(
        &[
            "VARCHAR(8) COLLATE utf8mb4_unicode_nopad_ci",
            "VARCHAR(12) COLLATE utf8mb4_unicode_nopad_ci",
        ],
        WORDS,
    ),
    of(&["VARCHAR(8) CHARACTER SET latin1", "CHAR(8) CHARACTER SET latin1"], WORDS),
    of(&["CHAR(5) COLLATE latin1_bin", "VARCHAR(9) COLLATE latin1_bin"], WORDS),
    of(&["BINARY(3)"], &["'a'", "'A'", "'a\\0'", "'b'", "''", "'a '"]),
    of(&["VARBINARY(6)", "VARBINARY(20)"], &["'a'", "'A'", "'a\\0'", "'a '", "''", "'abcdef'"]),
];

impl Domain {
    pub(super) fn draw(random: &mut Prng) -> Self {
        DOMAINS[random.index(DOMAINS.len())]
    }

    /// Whether a CHAR can be the parent of a VARCHAR. InnoDB copies the padding of the CHAR into
    /// the VARCHAR; FronDB copies the value that SQL shows, which has no padding.
    pub(super) fn is_mixed(&self) -> bool {
        let any = |begin: &str| self.types.iter().any(|ty| ty.starts_with(begin));
        any("CHAR") && any("VARCHAR")
    }

    /// Draws a type of this domain.
    pub(super) fn ty(&self, random: &mut Prng) -> &'static str {
        if random.chance(1, 2) { self.types[0] } else { self.types[random.index(self.types.len())] }
    }

    /// Draws a literal of this domain.
    pub(super) fn value(&self, random: &mut Prng) -> &'static str {
        self.values[random.index(self.values.len())]
    }
}
