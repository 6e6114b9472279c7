//! English-like text: paragraphs of sentences with the statistics of English that codecs see.
//!
//! * Words have Zipf frequencies. The most frequent ones are those of English (`the`, `of`, ...);
//!   the others are made of English syllables, frequent ones of fewer.
//! * A word depends on the word before it: each has eight words that often follow it.
//! * A paragraph has one of 500 topics, with words of its own.
//!
//! General compressors reach about the ratios of English books: on 4 MiB zlib 2.5, zstd 19 and xz
//! 3.4.

use frondb_core::prng::Prng;

use super::skew::Skew;
use super::source::Source;

const VOCABULARY: usize = 30_000;
const TOPICS: usize = 500;
const TOPIC_WORDS: usize = 80;
const FOLLOWERS: usize = 8;

/// Of 100 words, how many follow the word before them, and how many of the rest belong to the
/// topic.
const FOLLOWING_PERCENT: u64 = 30;
const TOPIC_PERCENT: u64 = 22;

/// The most frequent words of English, which make up half of a text.
const FREQUENT: [&str; 64] = [
    "the", "of", "and", "to", "a", "in", "that", "he", "was", "it", "his", "is", "with", "as", "I",
    "had", "for", "at", "by", "on", "not", "be", "from", "but", "her", "or", "which", "you",
    "this", "she", "were", "all", "have", "are", "they", "one", "him", "an", "my", "so", "there",
    "no", "their", "been", "when", "if", "would", "who", "what", "said", "more", "we", "will",
    "them", "me", "has", "out", "up", "some", "could", "into", "then", "do", "its",
];
const BEGINNINGS: [&str; 40] = [
    "b", "br", "c", "ch", "cl", "cr", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m",
    "n", "p", "pl", "pr", "qu", "r", "s", "sh", "sp", "st", "str", "t", "th", "tr", "v", "w", "wh",
    "", "in", "re", "con", "de", "un",
];
const VOWELS: [&str; 14] =
    ["a", "e", "i", "o", "u", "ea", "ou", "ai", "ee", "oo", "ie", "a", "e", "i"];
const ENDINGS: [&str; 16] =
    ["", "n", "r", "t", "l", "s", "d", "nd", "nt", "st", "m", "ck", "ng", "rt", "ss", ""];
const SUFFIXES: [&str; 16] = [
    "", "", "", "", "s", "s", "ed", "ing", "ly", "er", "tion", "ment", "ness", "al", "able", "ity",
];

/// The paragraphs, one after the other.
pub(super) struct Prose {
    seed: u64,
    prng: Prng,
    words: Vec<String>,
    frequency: Skew,
    followers: Vec<[u16; FOLLOWERS]>,
    follower: Skew,
    topics: Vec<[u16; TOPIC_WORDS]>,
    topic_word: Skew,
}

impl Prose {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::new(seed ^ 0x3EB1_0900_0000_0003);
        let frequency = Skew::zipf(VOCABULARY, 1.0);
        let words = vocabulary(&mut prng);
        let draw = |prng: &mut Prng| frequency.draw(prng) as u16;
        let followers = (0..VOCABULARY).map(|_| std::array::from_fn(|_| draw(&mut prng))).collect();
        // The most frequent words belong to no topic, because all topics use them.
        let rare = |prng: &mut Prng| prng.range(FREQUENT.len() as u64..VOCABULARY as u64) as u16;
        let topics = (0..TOPICS).map(|_| std::array::from_fn(|_| rare(&mut prng))).collect();
        Self {
            seed,
            prng,
            words,
            frequency,
            followers,
            follower: Skew::zipf(FOLLOWERS, 1.0),
            topics,
            topic_word: Skew::zipf(TOPIC_WORDS, 0.8),
        }
    }

    fn word(&mut self, before: usize, topic: usize) -> usize {
        let prng = &mut self.prng;
        match prng.below(100) {
            0..FOLLOWING_PERCENT => usize::from(self.followers[before][self.follower.draw(prng)]),
            _ if prng.chance(TOPIC_PERCENT, 100) => {
                usize::from(self.topics[topic][self.topic_word.draw(prng)])
            }
            _ => self.frequency.draw(prng),
        }
    }

    fn sentence(&mut self, topic: usize, text: &mut Vec<u8>) {
        let length = 5 + self.prng.index(12) + self.prng.index(12);
        let mut word = self.frequency.draw(&mut self.prng);
        for place in 0..length {
            let letters = self.words[word].as_bytes();
            let begin = text.len();
            text.extend_from_slice(letters);
            if place == 0 {
                text[begin].make_ascii_uppercase();
            }
            match place + 1 < length {
                false => text.push(b'.'),
                true if self.prng.chance(1, 12) => text.extend_from_slice(b", "),
                true => text.push(b' '),
            }
            word = self.word(word, topic);
        }
    }
}

impl Source for Prose {
    fn restart(&mut self) {
        *self = Self::new(self.seed);
    }

    fn next(&mut self, paragraph: &mut Vec<u8>) {
        let topic = self.prng.index(TOPICS);
        for sentence in 0..1 + self.prng.index(6) {
            if sentence > 0 {
                paragraph.push(b' ');
            }
            self.sentence(topic, paragraph);
        }
    }
}

/// The words, the most frequent first.
fn vocabulary(prng: &mut Prng) -> Vec<String> {
    let frequent = FREQUENT.iter().map(|&word| word.to_owned());
    let made = (FREQUENT.len()..VOCABULARY).map(|rank| {
        let syllables = match rank {
            0..2_500 => 1,
            2_500..10_000 => 1 + prng.index(2),
            _ => 2 + prng.index(2) * prng.index(2),
        };
        let pick = |prng: &mut Prng, from: &[&str]| from[prng.index(from.len())].to_owned();
        let syllable = |prng: &mut Prng| {
            pick(prng, &BEGINNINGS) + &pick(prng, &VOWELS) + &pick(prng, &ENDINGS)
        };
        let stem: String = (0..syllables).map(|_| syllable(prng)).collect();
        stem + &pick(prng, &SUFFIXES)
    });
    frequent.chain(made).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn paragraphs_are_sentences_with_the_word_frequencies_of_english() {
        let mut prose = Prose::new(1);
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut words = 0;
        for _ in 0..2_000 {
            let mut paragraph = Vec::new();
            prose.next(&mut paragraph);
            let paragraph = String::from_utf8(paragraph).unwrap();
            assert!(paragraph.ends_with('.') && paragraph.starts_with(char::is_uppercase));
            for word in paragraph.split([' ', ',', '.']).filter(|word| !word.is_empty()) {
                *counts.entry(word.to_lowercase()).or_default() += 1;
                words += 1;
            }
        }
        let share = |word: &str| counts[word] as f64 / words as f64;
        assert!((0.04..0.12).contains(&share("the")), "{}", share("the"));
        assert!(share("the") > 1.5 * share("of") && share("of") > share("him"));
        assert!(counts.len() > 10_000, "{}", counts.len());
    }
}
