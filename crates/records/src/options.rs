//! [`TreeOptions`]: the options of a tree, their limits and their encoding in the manifest.

use frondb_block::Codec;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::{Error, Result};
use frondb_trunk::{FilterPolicy, TrunkOptions};

/// The options of a tree. The compression options can be changed later; all others are fixed when
/// the tree is created.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeOptions {
    /// Shape of the trunk, and encoding of runs.
    pub trunk: TrunkOptions,
    /// Name and version of the tree's update function; `None` if the tree takes no updates.
    pub update_fn: Option<(String, u32)>,
}

impl TreeOptions {
    /// Checks that every option is in its range.
    ///
    /// # Errors
    /// `Invalid`, with the name of the option and its range.
    pub fn check(&self) -> Result<()> {
        let t = &self.trunk;
        t.base_codec.validate()?;
        t.run_codec.validate()?;
        let within = |name: &str, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} is {value}; it must be {min} to {max}")))
        };
        within("fanout", t.fanout as u64, 2, 1024)?;
        within("base_block_bytes", t.base_block_bytes as u64, 256, 4 << 20)?;
        within("run_block_bytes", t.run_block_bytes as u64, 256, 4 << 20)?;
        within("leaf_bytes_max", t.leaf_bytes_max, 4 << 10, 4 << 30)?;
        within("leaf_bytes_min", t.leaf_bytes_min, 4 << 10, t.leaf_bytes_max)?;
        within("slice_bytes_min", t.slice_bytes_min, 256, 64 << 20)?;
        within("writes_before_base", u64::from(t.writes_before_base), 1, 4)?;
        within("growth_percent", t.growth_percent, 10, 1000)?;
        within("garbage_percent", t.garbage_percent, 5, 95)
    }

    /// Checks that a tree with these options can change to `next`.
    ///
    /// # Errors
    /// `Invalid` if an option is out of its range, or if a fixed option would change.
    pub fn check_change(&self, next: &Self) -> Result<()> {
        next.check()?;
        let TrunkOptions {
            base_codec,
            run_codec,
            base_block_bytes,
            run_block_bytes,
            leaf_bytes_min,
            leaf_bytes_max,
            ..
        } = next.trunk;
        let trunk = TrunkOptions {
            base_codec,
            run_codec,
            base_block_bytes,
            run_block_bytes,
            leaf_bytes_min,
            leaf_bytes_max,
            ..self.trunk
        };
        if trunk == next.trunk && self.update_fn == next.update_fn {
            return Ok(());
        }
        Err(Error::invalid(
            "only the codecs and the sizes of blocks and leaves of a tree can be changed: its filter, \
             fanout, merge schedule and update function are fixed when it is created",
        ))
    }

    /// Appends the encoding: codecs as text, numbers as varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let t = &self.trunk;
        put_bytes(out, t.base_codec.to_string().as_bytes());
        put_bytes(out, t.run_codec.to_string().as_bytes());
        let (filter, prefix) = match t.filter {
            FilterPolicy::None => (0, 0),
            FilterPolicy::Full => (1, 0),
            FilterPolicy::Runs => (2, 0),
            FilterPolicy::Prefix(n) => (3, n),
        };
        for number in [
            filter,
            u64::from(prefix),
            t.base_block_bytes as u64,
            t.run_block_bytes as u64,
            t.fanout as u64,
            t.leaf_bytes_min,
            t.leaf_bytes_max,
            t.slice_bytes_min,
            u64::from(t.writes_before_base),
            t.growth_percent,
            t.garbage_percent,
        ] {
            put_varint(out, number);
        }
        match &self.update_fn {
            None => put_varint(out, 0),
            Some((name, version)) => {
                put_varint(out, u64::from(*version) + 1);
                put_bytes(out, name.as_bytes());
            }
        }
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes end too early, or if an option is out of its range.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let base_codec = codec(input)?;
        let run_codec = codec(input)?;
        let filter = input.varint()?;
        let prefix = u16::try_from(input.varint()?).map_err(|_| Truncated)?;
        let filter = match filter {
            0 => FilterPolicy::None,
            1 => FilterPolicy::Full,
            2 => FilterPolicy::Runs,
            3 => FilterPolicy::Prefix(prefix),
            _ => return Err(Truncated),
        };
        let trunk = TrunkOptions {
            base_codec,
            run_codec,
            filter,
            base_block_bytes: input.varint_u32()? as usize,
            run_block_bytes: input.varint_u32()? as usize,
            fanout: input.varint_u32()? as usize,
            leaf_bytes_min: input.varint()?,
            leaf_bytes_max: input.varint()?,
            slice_bytes_min: input.varint()?,
            writes_before_base: u8::try_from(input.varint()?).map_err(|_| Truncated)?,
            growth_percent: input.varint()?,
            garbage_percent: input.varint()?,
        };
        let update_fn = match input.varint()? {
            0 => None,
            n => {
                let version = u32::try_from(n - 1).map_err(|_| Truncated)?;
                let name = std::str::from_utf8(input.bytes()?).map_err(|_| Truncated)?;
                Some((name.to_owned(), version))
            }
        };
        let options = Self { trunk, update_fn };
        options.check().map_err(|_| Truncated)?;
        Ok(options)
    }
}

fn codec(input: &mut Reader<'_>) -> Result<Codec, Truncated> {
    let text = std::str::from_utf8(input.bytes()?).map_err(|_| Truncated)?;
    text.parse().map_err(|_| Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    fn codec(prng: &mut Prng) -> Codec {
        let level = prng.below(24) as u8;
        let all =
            [Codec::None, Codec::Lz4, Codec::Zstd(level), Codec::Zlib(level), Codec::Lzma(level)];
        all[prng.index(all.len())]
    }

    /// One of `at` or a neighbour of it; in one of forty calls, any number.
    fn near(prng: &mut Prng, at: &[u64]) -> u64 {
        if prng.chance(1, 40) {
            return prng.next_u64();
        }
        at[prng.index(at.len())].saturating_add(prng.below(3)).saturating_sub(1)
    }

    /// Options within the ranges, at their ends, and just outside of them.
    fn random(prng: &mut Prng) -> TreeOptions {
        let filter = match prng.below(4) {
            0 => FilterPolicy::None,
            1 => FilterPolicy::Full,
            2 => FilterPolicy::Runs,
            _ => FilterPolicy::Prefix(near(prng, &[1, 300, 65_534]) as u16),
        };
        let block = &[300, 16 << 10, 4 << 20];
        let trunk = TrunkOptions {
            base_codec: codec(prng),
            run_codec: codec(prng),
            filter,
            base_block_bytes: near(prng, block) as usize,
            run_block_bytes: near(prng, block) as usize,
            fanout: near(prng, &[3, 16, 1024]) as usize,
            leaf_bytes_min: near(prng, &[5 << 10, 1 << 20]),
            leaf_bytes_max: near(prng, &[1 << 20, 4 << 30]),
            slice_bytes_min: near(prng, &[300, 64 << 10, 64 << 20]),
            writes_before_base: near(prng, &[2, 3, 4]) as u8,
            growth_percent: near(prng, &[11, 100, 1000]),
            garbage_percent: near(prng, &[6, 50, 95]),
        };
        let name: String = (0..prng.below(20)).map(|i| char::from(b'a' + i as u8)).collect();
        let version = near(prng, &[1, u64::from(u32::MAX)]).min(u64::from(u32::MAX)) as u32;
        TreeOptions { trunk, update_fn: prng.chance(1, 2).then_some((name, version)) }
    }

    /// The next open of a database must be able to read every option that `create_tree` accepted.
    #[test]
    fn accepted_options_survive_a_round_trip() {
        let mut prng = Prng::new(6);
        let (mut accepted, mut refused) = (0, 0);
        for i in 0..100_000 {
            let options = random(&mut prng);
            if options.check().is_err() {
                refused += 1;
                continue;
            }
            accepted += 1;
            let mut bytes = Vec::new();
            options.encode(&mut bytes);
            let mut input = Reader::new(&bytes);
            assert_eq!(TreeOptions::decode(&mut input).ok().as_ref(), Some(&options), "case {i}");
            assert!(input.is_empty(), "case {i}: bytes are left of {options:?}");
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
    }

    #[test]
    fn a_codec_level_that_does_not_exist_is_named() {
        for codec in [Codec::Zstd(0), Codec::Zstd(20), Codec::Zlib(0), Codec::Lzma(10)] {
            for of_runs in [false, true] {
                let mut options = TreeOptions::default();
                let which = if of_runs {
                    &mut options.trunk.run_codec
                } else {
                    &mut options.trunk.base_codec
                };
                *which = codec;
                let error = options.check().unwrap_err();
                assert_eq!(error.kind(), frondb_core::ErrorKind::Invalid);
                assert!(error.to_string().contains("levels"), "{error}");
            }
        }
    }
}
