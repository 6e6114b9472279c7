//! A row of a web server's log, which services write by the billion: a sequential key, and a line
//! of text that mostly repeats from row to row.
//!
//! | key bytes | field                                         |
//! |-----------|-----------------------------------------------|
//! | 0..8      | time in ms, big-endian                        |
//! | 8..12     | number within the millisecond, big-endian     |
//!
//! The value is the line: time, host, process, level, method and path, status, bytes, duration,
//! session, address, referrer and user agent. Host, path, status, referrer and agent come from
//! small sets with skew (the smaller of two draws); durations, sizes, sessions and addresses are
//! random, as in real logs, and limit every codec.

use std::io::Write;

use frondb_core::prng::Prng;

use crate::engine::{Batch, TreeSpec};

/// The tree of the log.
pub const LOG_TREES: [TreeSpec; 1] = [TreeSpec { name: "log", unique: true }];

/// 2012-06-01 00:00:00 UTC in ms, the time of the first row.
const EPOCH_MS: u64 = 1_338_508_800_000;
const ROWS_PER_MS: u64 = 4;

const PATHS: [&str; 12] = [
    "/api/v2/session/refresh",
    "/static/js/application.min.js",
    "/api/v2/catalog/search",
    "/index.html",
    "/static/css/theme-default.css",
    "/api/v2/cart/items",
    "/product/detail",
    "/api/v2/user/profile",
    "/static/img/sprites/navigation.png",
    "/api/v2/orders/history",
    "/help/contact",
    "/robots.txt",
];
const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/536.5 (KHTML, like Gecko) Chrome/19.0.1084.52 Safari/536.5",
    "Mozilla/5.0 (Windows NT 6.1; WOW64; rv:12.0) Gecko/20100101 Firefox/12.0",
    "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; WOW64; Trident/5.0)",
    "Mozilla/5.0 (iPad; CPU OS 5_1_1 like Mac OS X) AppleWebKit/534.46 (KHTML, like Gecko) Version/5.1 Mobile/9B206 Safari/7534.48.3",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
];
const STATUSES: [u16; 6] = [200, 200, 304, 302, 404, 500];

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its key.
    pub key: [u8; 12],
    /// Its text.
    pub line: Vec<u8>,
}

impl LogRow {
    /// The key of row `id`.
    #[must_use]
    pub fn key(id: u64) -> [u8; 12] {
        let mut key = [0; 12];
        key[0..8].copy_from_slice(&(EPOCH_MS + id / ROWS_PER_MS).to_be_bytes());
        key[8..12].copy_from_slice(&((id % ROWS_PER_MS) as u32).to_be_bytes());
        key
    }

    /// Row `id` of the log of `seed`.
    #[must_use]
    pub fn new(seed: u64, id: u64) -> Self {
        let mut prng = Prng::new(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ id);
        let ms = EPOCH_MS + id / ROWS_PER_MS;
        let (second, day) = (ms / 1_000 % 60, ms / 86_400_000 - EPOCH_MS / 86_400_000 + 1);
        let (minute, hour) = (ms / 60_000 % 60, ms / 3_600_000 % 24);
        let status = STATUSES[skewed(&mut prng, STATUSES.len())];
        let level = if status == 500 { "ERROR" } else { "INFO" };
        let mut line = Vec::with_capacity(384);
        // Writing to a vector cannot fail.
        let _ = write!(
            line,
            "2012-06-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z web-{:02}.eu-west.example.com \
             frontend[{}]: level={level} method=GET path={}?id={} status={status} bytes={} \
             duration_us={} session={:016x} client=10.{}.{}.{} \
             referrer=\"http://www.example.com{}\" agent=\"{}\"",
            ms % 1_000,
            skewed(&mut prng, 40),
            2_000 + skewed(&mut prng, 16),
            PATHS[skewed(&mut prng, PATHS.len())],
            prng.below(100_000),
            prng.below(60_000),
            prng.below(900_000),
            prng.below(1 << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            prng.below(4),
            prng.below(256),
            prng.below(256),
            PATHS[skewed(&mut prng, PATHS.len())],
            AGENTS[skewed(&mut prng, AGENTS.len())],
        );
        Self { key: Self::key(id), line }
    }

    /// Adds the row to `batch`.
    pub fn insert(&self, batch: &mut Batch) {
        batch.put(0, &self.key, &self.line);
    }
}

/// An index in `0..n`, small ones more likely.
fn skewed(prng: &mut Prng, n: usize) -> usize {
    prng.index(n).min(prng.index(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_ascend() {
        assert!((0..10_000).all(|id| LogRow::key(id) < LogRow::key(id + 1)));
    }

    #[test]
    fn a_line_is_text_of_some_300_bytes_and_repeatable() {
        let row = LogRow::new(1, 1_000_000);
        assert_eq!(row, LogRow::new(1, 1_000_000));
        assert_ne!(row.line, LogRow::new(2, 1_000_000).line);
        let text = String::from_utf8(row.line).unwrap();
        assert!(text.starts_with("2012-06-01T00:04:10.000Z web-"), "{text}");
        let bytes: usize = (0..1_000).map(|id| LogRow::new(1, id).line.len()).sum();
        assert!((250_000..400_000).contains(&bytes), "{bytes}");
    }
}
