//! Words of paths, names and searches.

use frondb_core::prng::Prng;

use super::skew::any;

const WORDS: [&str; 64] = [
    "about", "after", "again", "order", "item", "user", "photo", "blog", "news", "video", "game",
    "music", "book", "shop", "cart", "help", "terms", "login", "admin", "search", "list", "view",
    "page", "post", "tag", "team", "year", "week", "home", "garden", "travel", "kitchen", "summer",
    "winter", "black", "white", "small", "large", "green", "blue", "light", "fast", "new", "best",
    "free", "sale", "guide", "review", "story", "press", "mobile", "metal", "wood", "glass",
    "paper", "leather", "cotton", "table", "chair", "lamp", "camera", "phone", "watch", "bag",
];

pub(super) fn word(prng: &mut Prng) -> &'static str {
    any(prng, &WORDS)
}

/// Draws `count` words and joins them with `between`.
pub(super) fn words(prng: &mut Prng, count: usize, between: &str) -> String {
    (0..count).map(|_| word(prng)).collect::<Vec<_>>().join(between)
}
