//! Samples over a long range whose parts may differ.
//!
//! Some parts of a range may hold only deleted entries and others only live ones. A queue, or a
//! time series whose oldest rows are deleted, has adjacent deletes: in one range, or, in an
//! index of several columns, at the beginning of each value of the first column.
//!
//! A few samples may then all fall into parts of one kind. So the range is divided into strata of
//! equally many messages, more strata in a longer range, with one sample in each. A sample lies at
//! a random position in its stratum, so that the samples do not coincide with a regular pattern in
//! the data. Where two neighbouring samples differ much, further samples halve the messages between
//! them, again and again, until the uncertain part is a small part of the estimate:
//!
//! ```text
//!   messages   [ put delete | put delete | put delete | put delete | put  put ]
//!   samples    ^ 0      ^ 0        ^ 0            ^ 0     ^ 0 ^ 0.9    ^ 1   ^ 1
//!              ^ is the position of a sample, with its entries per message
//! ```
//!
//! This is stratified sampling, and the trapezoidal rule with smaller steps where the function is
//! steep, as in adaptive quadrature.

use frondb_core::prng::Prng;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_merge::Merger;
use frondb_trunk::{Scan, segment};

use crate::estimate::counts::messages;
use crate::estimate::key_range::Range;
use crate::estimate::key_space::KeySpace;
use crate::estimate::leaf::bounds;
use crate::estimate::sample::{SAMPLE_MESSAGES, Sample};
use crate::estimate::share::share;
use crate::version::Version;

/// Minimum and maximum number of strata.
const STRATA: (u64, u64) = (4, 24);

/// Messages per stratum, within the limits of the number of strata.
const STRATUM_MESSAGES: u64 = 8192;

/// Maximum number of further samples where the first ones differ.
const REFINEMENTS: usize = 16;

/// Refine only if at most this many pairs of neighbouring samples differ. If more pairs differ,
/// there are probably changes that no sample shows, and further samples at the visible changes
/// would not represent the others.
const CHANGES_MAX: usize = 2;

/// Two samples are alike if each has at least this share of the entries per message of the other.
const ALIKE: f64 = 0.5;

/// Two neighbouring samples leave uncertain the number of messages between them, times the
/// difference of their entries per message. Refine until this is at most this share of the
/// estimate.
const UNKNOWN: f64 = 0.125;

/// A position in the range at which a sample was taken.
struct Point {
    key: Vec<u8>,
    /// Messages of the range below the key.
    below: u64,
    /// Entries per message in the sample.
    live: f64,
}

/// The combined result of the samples of a range.
pub(super) enum StrataSample {
    /// The samples are alike, or there are fewer than two. Holds the sum of the samples.
    Alike(Sample),
    /// Some parts have far more entries per message than others. Holds the number of entries in the
    /// range.
    Entries(u64),
}

/// Takes samples in the strata of a range that is not short.
pub(super) fn sample_strata(
    version: &Version,
    snapshot: SeqNo,
    range: &Range,
) -> Result<StrataSample> {
    let strata = Strata { version, snapshot, range, messages: messages(version, range)? };
    let (mut points, mut sample) = (Vec::new(), Sample::default());
    for key in strata.first_keys()? {
        points.extend(strata.point(key, &mut sample)?);
    }
    let live = points.iter().map(|point| point.live);
    let (least, most) = live.fold((f64::MAX, 0.0), |(a, b), live| (live.min(a), live.max(b)));
    if points.len() < 2 || least >= most * ALIKE {
        return Ok(StrataSample::Alike(sample));
    }
    let is_change = |pair: &&[Point]| (pair[0].live - pair[1].live).abs() > most * ALIKE;
    if points.windows(2).filter(is_change).count() <= CHANGES_MAX {
        strata.refine(&mut points)?;
    }
    Ok(StrataSample::Entries(strata.entries(&points) as u64))
}

/// The range to sample.
struct Strata<'a> {
    version: &'a Version,
    snapshot: SeqNo,
    range: &'a Range,
    /// Messages of the range.
    messages: u64,
}

impl Strata<'_> {
    /// Returns the keys of the first samples: the beginning of the range, one key in each stratum,
    /// and one key near the end.
    fn first_keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys = vec![self.range.lo.clone()];
        let ends = (self.end_key(Direction::Forward)?, self.end_key(Direction::Backward)?);
        let (Some(mut least), Some(most)) = ends else { return Ok(keys) };
        let strata = (self.messages / STRATUM_MESSAGES).clamp(STRATA.0, STRATA.1);
        // The seed depends on the range alone, so an estimate is repeatable.
        let mut prng = Prng::new(self.messages);
        let places = (0..strata).map(|i| (i * 1024 + prng.below(1024), strata * 1024));
        let end = self.messages.saturating_sub(SAMPLE_MESSAGES);
        // Small enough that the search does not prefer round numbers as keys.
        let near = self.messages / (strata * 64);
        for wanted in places.map(|(part, of)| share(self.messages, part, of)).chain([end]) {
            if let Some(key) = self.key_at(wanted, near, &least, &most)? {
                keys.push(key.clone());
                least = least.max(key);
            }
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// Returns the key of the first message of the range in this direction. Reads it from the data,
    /// because counts are estimates within blocks.
    fn end_key(&self, direction: Direction) -> Result<Option<Vec<u8>>> {
        let (lo, hi) = (&self.range.lo[..], self.range.hi.as_deref());
        let mut at = match direction {
            Direction::Forward => Some(lo.to_vec()),
            Direction::Backward => hi.map(<[u8]>::to_vec),
        };
        loop {
            let trunk = &self.version.trunk;
            let snapshot = self.snapshot;
            let scan = Scan { direction, at: at.as_deref(), lo, hi, snapshot, expected: 0 };
            let part = segment(trunk, &scan, &[])?;
            let (from, to) = bounds(&part.lo, part.hi.as_deref());
            let mut sources: Vec<Box<dyn Source>> = Vec::new();
            for source in self.version.sources() {
                let memtable = &source.memtable;
                sources.push(Box::new(memtable.cursor(direction, from, to, self.snapshot)));
                for run in source.runs() {
                    sources.extend(part.source_of(run, direction, self.snapshot)?);
                }
            }
            let next = match direction {
                Direction::Forward => part.hi.as_deref().filter(|next| Some(*next) != hi),
                Direction::Backward => Some(&*part.lo).filter(|next| *next > lo),
            };
            at = next.map(<[u8]>::to_vec);
            sources.extend(part.sources);
            let mut merge = Merger::new(sources, direction);
            if merge.next()? {
                return Ok(Some(merge.key().to_vec()));
            }
            if at.is_none() {
                return Ok(None);
            }
        }
    }

    /// Returns a key of the range, between `least` and `most`, with `wanted` messages of the range
    /// below it, up to `near` more or fewer.
    fn key_at(&self, wanted: u64, near: u64, least: &[u8], most: &[u8]) -> Result<Option<Vec<u8>>> {
        let space = KeySpace::between(least, most);
        let (_, to) = space.find(space.from, wanted, near, |key| self.below(&key))?;
        let key = space.key(to);
        let is_inside = key > self.range.lo && self.range.hi.as_ref().is_none_or(|hi| key < *hi);
        Ok(is_inside.then_some(key))
    }

    /// Returns the number of messages of the range below `key`.
    fn below(&self, key: &[u8]) -> Result<u64> {
        messages(self.version, &self.range.clone().up_to(key.to_vec()))
    }

    /// Takes a sample at `key` and adds it to `all`; `None` if there are no messages from `key` on
    /// in its leaf.
    fn point(&self, key: Vec<u8>, all: &mut Sample) -> Result<Option<Point>> {
        let hi = self.range.hi.as_deref();
        let sample = Sample::take(self.version, self.snapshot, &key, hi)?;
        all.join(sample);
        let Some(live) = sample.live_per_message() else { return Ok(None) };
        let below = if key == self.range.lo { 0 } else { self.below(&key)? };
        Ok(Some(Point { key, below, live }))
    }

    /// Adds samples between the neighbours with the largest uncertain part.
    fn refine(&self, points: &mut Vec<Point>) -> Result<()> {
        for _ in 0..REFINEMENTS {
            let unknown = |i: usize| {
                let (a, b) = (&points[i - 1], &points[i]);
                (b.live - a.live).abs() * b.below.saturating_sub(a.below) as f64
            };
            let widest = (1..points.len()).max_by(|&a, &b| unknown(a).total_cmp(&unknown(b)));
            let Some(i) = widest else { break };
            let (a, b) = (&points[i - 1], &points[i]);
            let is_known = unknown(i) <= UNKNOWN * self.entries(points);
            if is_known || b.below.saturating_sub(a.below) <= SAMPLE_MESSAGES {
                break;
            }
            let middle = u64::midpoint(a.below, b.below);
            let near = b.below.abs_diff(a.below) / 8;
            let Some(key) = self.key_at(middle, near, &a.key, &b.key)? else { break };
            if key <= a.key || key >= b.key {
                break;
            }
            let Some(point) = self.point(key, &mut Sample::default())? else { break };
            points.insert(i, point);
        }
        Ok(())
    }

    /// Returns the number of entries. The messages between two samples count with the mean of the
    /// samples' entries per message.
    fn entries(&self, points: &[Point]) -> f64 {
        let between = points.windows(2).map(|pair| {
            let messages = pair[1].below.saturating_sub(pair[0].below);
            messages as f64 * f64::midpoint(pair[0].live, pair[1].live)
        });
        let before = points.first().map_or(0.0, |first| first.below as f64 * first.live);
        let behind = |last: &Point| self.messages.saturating_sub(last.below) as f64 * last.live;
        before + between.sum::<f64>() + points.last().map_or(0.0, behind)
    }
}
