//! The encoding of a tree's options in the manifest: a byte 0, the number of options, and for each
//! option its tag, its name if the tag is above [`TrunkOptions::LAST_UNNAMED_TAG`], and its value
//! as text. Files of format 7 and earlier have the options by position and begin with the length
//! and the name of a codec. That length is never 0, so the first byte tells the encodings apart.

use frondb_block::Codec;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_trunk::{FilterPolicy, TrunkOptions};

use super::TreeOptions;
use crate::EditFault;

/// The tag of the update function, whose text is its version, a space, and its name.
const UPDATE_FN: u32 = 13;

impl TreeOptions {
    /// Appends the encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, 0);
        let count = TrunkOptions::ROWS.len() + usize::from(self.update_fn.is_some());
        put_varint(out, count as u64);
        for row in TrunkOptions::ROWS {
            put_varint(out, u64::from(row.tag));
            if row.tag > TrunkOptions::LAST_UNNAMED_TAG {
                put_bytes(out, row.name.as_bytes());
            }
            put_bytes(out, (row.text)(&self.trunk).as_bytes());
        }
        if let Some((name, version)) = &self.update_fn {
            put_varint(out, u64::from(UPDATE_FN));
            put_bytes(out, format!("{version} {name}").as_bytes());
        }
    }

    /// Decodes options that [`encode`](Self::encode) of this or an earlier build wrote.
    ///
    /// # Errors
    /// `UnknownOption` if this build does not know an option; `Malformed` if the bytes end too
    /// early, or if an option is out of its range.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, EditFault> {
        let options = match text(input)? {
            "" => by_tag(input)?,
            base_codec => by_position(base_codec, input)?,
        };
        options.check().map_err(|_| EditFault::Malformed)?;
        Ok(options)
    }
}

fn by_tag(input: &mut Reader<'_>) -> Result<TreeOptions, EditFault> {
    let mut options = TreeOptions::default();
    for _ in 0..input.varint()? {
        let tag = input.varint_u32()?;
        let name = if tag > TrunkOptions::LAST_UNNAMED_TAG { text(input)? } else { "" };
        let value = text(input)?;
        if tag == UPDATE_FN {
            let (version, name) = value.split_once(' ').ok_or(EditFault::Malformed)?;
            let version = version.parse().map_err(|_| EditFault::Malformed)?;
            options.update_fn = Some((name.to_owned(), version));
            continue;
        }
        let row = TrunkOptions::ROWS.iter().find(|row| row.tag == tag);
        let row = row.ok_or_else(|| {
            let number = || format!("number {tag}");
            EditFault::UnknownOption(if name.is_empty() { number() } else { name.to_owned() })
        })?;
        (row.set)(&mut options.trunk, value).map_err(|_| EditFault::Malformed)?;
    }
    Ok(options)
}

#[allow(clippy::needless_update, reason = "options that were added later have their defaults")]
fn by_position(base_codec: &str, input: &mut Reader<'_>) -> Result<TreeOptions, EditFault> {
    let run_codec = text(input)?;
    let filter = input.varint()?;
    let prefix = u16::try_from(input.varint()?).map_err(|_| Truncated)?;
    let trunk = TrunkOptions {
        base_codec: codec(base_codec)?,
        run_codec: codec(run_codec)?,
        filter: match filter {
            0 => FilterPolicy::None,
            1 => FilterPolicy::Full,
            2 => FilterPolicy::Runs,
            3 => FilterPolicy::Prefix(prefix),
            _ => return Err(EditFault::Malformed),
        },
        base_block_bytes: input.varint_u32()? as usize,
        run_block_bytes: input.varint_u32()? as usize,
        fanout: input.varint_u32()? as usize,
        leaf_bytes_min: input.varint()?,
        leaf_bytes_max: input.varint()?,
        slice_bytes_min: input.varint()?,
        writes_before_base: u8::try_from(input.varint()?).map_err(|_| Truncated)?,
        growth_percent: input.varint()?,
        garbage_percent: input.varint()?,
        ..TrunkOptions::default()
    };
    let update_fn = match input.varint()? {
        0 => None,
        n => {
            let version = u32::try_from(n - 1).map_err(|_| Truncated)?;
            Some((text(input)?.to_owned(), version))
        }
    };
    Ok(TreeOptions { trunk, update_fn })
}

fn text<'a>(input: &mut Reader<'a>) -> Result<&'a str, Truncated> {
    std::str::from_utf8(input.bytes()?).map_err(|_| Truncated)
}

fn codec(text: &str) -> Result<Codec, Truncated> {
    text.parse().map_err(|_| Truncated)
}

#[cfg(test)]
#[allow(clippy::needless_update, reason = "options that were added later have their defaults")]
mod tests {
    use super::*;
    use frondb_core::prng::Prng;

    fn codec(prng: &mut Prng) -> Codec {
        let level = prng.below(24) as u8;
        let all =
            [Codec::None, Codec::Lz4, Codec::Zstd(level), Codec::Zlib(level), Codec::Lzma(level)];
        all[prng.index(all.len())]
    }

    /// Returns a number of `at` or a neighbour of that number; in one of forty calls, any number.
    fn near(prng: &mut Prng, at: &[u64]) -> u64 {
        if prng.chance(1, 40) {
            return prng.next_u64();
        }
        at[prng.index(at.len())].saturating_add(prng.below(3)).saturating_sub(1)
    }

    /// Returns options inside of the ranges, at their ends, and just outside.
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
            ..TrunkOptions::default()
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

    /// A file of an earlier build has the options by their position.
    #[test]
    fn options_by_position_are_read() {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, b"zstd:3");
        put_bytes(&mut bytes, b"none");
        for number in [3, 9, 8192, 4096, 4, 5000, 6000, 300, 3, 50, 60] {
            put_varint(&mut bytes, number);
        }
        put_varint(&mut bytes, 8);
        put_bytes(&mut bytes, b"add");
        let read = TreeOptions::decode(&mut Reader::new(&bytes)).unwrap();
        let trunk = TrunkOptions {
            base_codec: Codec::Zstd(3),
            run_codec: Codec::None,
            filter: FilterPolicy::Prefix(9),
            base_block_bytes: 8192,
            run_block_bytes: 4096,
            fanout: 4,
            leaf_bytes_min: 5000,
            leaf_bytes_max: 6000,
            slice_bytes_min: 300,
            writes_before_base: 3,
            growth_percent: 50,
            garbage_percent: 60,
            ..TrunkOptions::default()
        };
        assert_eq!(read, TreeOptions { trunk, update_fn: Some(("add".to_owned(), 7)) });
    }

    #[test]
    fn an_option_of_a_newer_build_is_named() {
        let mut bytes = vec![0, 2, 6];
        put_bytes(&mut bytes, b"9");
        put_varint(&mut bytes, 200);
        put_bytes(&mut bytes, b"expire_after");
        put_bytes(&mut bytes, b"1d");
        let fault = TreeOptions::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(fault, EditFault::UnknownOption("expire_after".to_owned()));
    }

    #[test]
    fn an_option_that_is_missing_has_its_default() {
        let mut bytes = vec![0, 1, 6];
        put_bytes(&mut bytes, b"9");
        let read = TreeOptions::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(read, TreeOptions::default().fanout(9));
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
