//! The data of nodes and links: log-normal sizes with the published medians, and text that
//! compresses as well as the published data.

use frondb_core::prng::Prng;

/// 64 letters, so that each encodes 6 bits; none needs an escape in SQL.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A kind of data.
pub(super) struct Payload {
    /// Median size, bytes: half of the sizes are larger.
    median: f64,
    max: f64,
    /// How many of 64 letters are random. The others are the same in each payload.
    random: usize,
}

/// Data of a node. 0.8 of its letters are random, with 6 bits each, so it compresses to 0.6.
pub(super) const NODE: Payload = Payload { median: 128.0, max: 1_048_576.0, random: 51 };
/// Data of a link, which compresses to 0.3.
pub(super) const LINK: Payload = Payload { median: 8.0, max: 255.0, random: 26 };

impl Payload {
    /// Appends random data as a literal in quotes.
    pub(super) fn append(&self, to: &mut String, prng: &mut Prng) {
        let mut left = self.size(prng);
        to.push('\'');
        while left > 0 {
            let count = left.min(LETTERS.len());
            let random = count * self.random / LETTERS.len();
            letters(to, prng, random);
            to.extend(LETTERS[random..count].iter().map(|letter| char::from(*letter)));
            left -= count;
        }
        to.push('\'');
    }

    /// Draws a size, bytes. Its natural logarithm has a standard deviation of 1.
    fn size(&self, prng: &mut Prng) -> usize {
        // Box-Muller transform to a normal distribution.
        let radius = (-2.0 * (1.0 - prng.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * prng.unit()).cos();
        (self.median * normal.exp()).round().min(self.max) as usize
    }
}

/// Appends random letters, ten from each random number.
fn letters(to: &mut String, prng: &mut Prng, mut count: usize) {
    while count > 0 {
        let mut bits = prng.next_u64();
        for _ in 0..count.min(10) {
            to.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
        count -= count.min(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_sizes_exceed_the_median() {
        let mut prng = Prng::new(1);
        for (payload, median) in [(NODE, 128), (LINK, 8)] {
            let sizes: Vec<usize> = (0..10_000).map(|_| payload.size(&mut prng)).collect();
            let above = sizes.iter().filter(|size| **size > median).count();
            assert!((4_500..5_500).contains(&above), "{above}");
            assert!(sizes.iter().all(|size| *size <= payload.max as usize));
        }
    }

    #[test]
    fn data_is_quoted_text_with_the_share_of_random_letters() {
        let mut prng = Prng::new(1);
        let (mut one, mut other) = (String::new(), String::new());
        let fixed = Payload { median: 6_400.0, max: 640.0, random: 51 };
        fixed.append(&mut one, &mut prng);
        fixed.append(&mut other, &mut prng);
        assert!(one.starts_with('\'') && one.ends_with('\'') && one.len() == 642);
        let same = one.bytes().zip(other.bytes()).filter(|(a, b)| a == b).count();
        // 13 of 64 letters repeat, and one in 64 of the random letters is equal by chance.
        assert!((130..170).contains(&same), "{same}");
    }
}
