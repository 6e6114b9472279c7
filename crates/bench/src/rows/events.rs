//! Events of an application as JSON, each on one line:
//!
//! ```text
//!  {"id":"9f02b7a4c1d8e365","ts":1700000000041,"type":"click","user":{"id":"u0816351",
//!  "country":"de","platform":"ios","version":"3.14.2"},"session":"5be7c0de",
//!  "product":{"sku":"SKU-204817","name":"Small Garden Lamp","price":182.37},"latency_ms":38}
//! ```
//!
//! The 20,000 users and 5,000 products occur with Zipf frequencies, each always with the same
//! attributes. There are nine types of events with different fields. Each event has a random id of
//! 16 digits; times and latencies vary. On 4 MiB zlib reaches a ratio of 4.9, xz 8.2.

use std::io::Write;

use frondb_core::prng::Prng;

use super::skew::{Skew, any, exponential, lognormal};
use super::source::Source;
use super::words::{word, words};

/// 2023-11-14 22:13:20 UTC in ms, the time before the first event.
const EPOCH_MS: u64 = 1_700_000_000_000;
const MS_BETWEEN: f64 = 7.0;
const USERS: usize = 20_000;
const PRODUCTS: usize = 5_000;
/// Binary logarithm of the length of a session in ms: a user gets a new one every 70 minutes.
const SESSION_MS_LOG: u32 = 22;

const KINDS: [&str; 9] = [
    "page_view",
    "click",
    "add_to_cart",
    "search",
    "purchase",
    "login",
    "logout",
    "error",
    "heartbeat",
];
const COUNTRIES: [&str; 9] = ["de", "fr", "us", "gb", "it", "es", "pl", "br", "in"];

/// The events, one after the other.
pub(super) struct Events {
    seed: u64,
    prng: Prng,
    users: Vec<User>,
    user: Skew,
    products: Vec<String>,
    product: Skew,
    kind: Skew,
    now_ms: u64,
}

struct User {
    /// The user as JSON.
    json: String,
    /// Random bits: XORed with the number of a session, they are the session's id.
    mix: u64,
}

impl Events {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed ^ 0x3EB1_0900_0000_0002);
        let users = (0..USERS).map(|_| new_user(&mut prng)).collect();
        let products = (0..PRODUCTS).map(|_| new_product(&mut prng)).collect();
        Self {
            seed,
            prng,
            users,
            user: Skew::zipf(USERS, 0.7),
            products,
            product: Skew::zipf(PRODUCTS, 0.9),
            kind: Skew::zipf(KINDS.len(), 1.0),
            now_ms: EPOCH_MS,
        }
    }
}

impl Source for Events {
    fn restart(&mut self) {
        *self = Self::new(self.seed);
    }

    fn next(&mut self, event: &mut Vec<u8>) {
        let prng = &mut self.prng;
        self.now_ms += exponential(prng, MS_BETWEEN) as u64;
        let user = &self.users[self.user.draw(prng)];
        let kind = KINDS[self.kind.draw(prng)];
        let session = (user.mix ^ (self.now_ms >> SESSION_MS_LOG)) as u32;
        // Writing to a vector cannot fail.
        let _ = write!(
            event,
            "{{\"id\":\"{:016x}\",\"ts\":{},\"type\":\"{kind}\",\"user\":{},\
             \"session\":\"{session:08x}\"",
            prng.next_u64(),
            self.now_ms,
            user.json
        );
        if matches!(kind, "add_to_cart" | "purchase" | "click" | "page_view") {
            let product = &self.products[self.product.draw(prng)];
            let _ = write!(event, ",\"product\":{product}");
        }
        match kind {
            "purchase" => {
                let quantity = 1 + exponential(prng, 1.0) as u64;
                let _ = write!(event, ",\"quantity\":{quantity},\"currency\":\"EUR\"");
            }
            "search" => {
                let count = 1 + prng.index(3);
                let (query, results) = (words(prng, count, " "), prng.below(500));
                let _ = write!(event, ",\"query\":\"{query}\",\"results\":{results}");
            }
            "error" => {
                let (ms, code) =
                    (prng.range(1_000..9_000), any(prng, &["500", "502", "503", "504"]));
                let _ = write!(event, ",\"message\":\"timeout after {ms} ms\",\"code\":{code}");
            }
            _ => {}
        }
        let _ = write!(event, ",\"latency_ms\":{}}}", lognormal(prng, 33.0, 0.8) as u64);
    }
}

fn new_user(prng: &mut Prng) -> User {
    let json = format!(
        "{{\"id\":\"u{:07}\",\"country\":\"{}\",\"platform\":\"{}\",\"version\":\"{}.{}.{}\"}}",
        prng.below(10_000_000),
        any(prng, &COUNTRIES),
        any(prng, &["ios", "android", "web"]),
        prng.range(1..5),
        prng.below(20),
        prng.below(10)
    );
    User { json, mix: prng.next_u64() }
}

fn new_product(prng: &mut Prng) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let name = [(); 3].map(|()| capital(word(prng))).join(" ");
    let (sku, cents) = (prng.below(1_000_000), prng.range(199..99_999));
    let price = format!("{}.{:02}", cents / 100, cents % 100);
    format!("{{\"sku\":\"SKU-{sku:06}\",\"name\":\"{name}\",\"price\":{price}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_json_in_the_order_of_their_times_with_the_fields_of_their_type() {
        let (mut events, mut last, mut seen) = (Events::new(1), 0, [false; 9]);
        for _ in 0..5_000 {
            let mut event = Vec::new();
            events.next(&mut event);
            let event: serde_json::Value = serde_json::from_slice(&event).unwrap();
            let ms = event["ts"].as_u64().unwrap();
            assert!(ms >= last);
            last = ms;
            let kind = event["type"].as_str().unwrap();
            let number = KINDS.iter().position(|known| *known == kind).unwrap();
            seen[number] = true;
            assert_eq!(event["product"].is_object(), number < 3 || kind == "purchase", "{event}");
            assert_eq!(event["query"].is_string(), kind == "search", "{event}");
            assert_eq!(event["code"].is_number(), kind == "error", "{event}");
            assert_eq!(event["id"].as_str().unwrap().len(), 16);
            assert!(event["user"]["country"].is_string() && event["latency_ms"].is_u64());
        }
        assert_eq!(seen, [true; 9]);
    }
}
