//! Long ranges of which some parts are all dead and others all live: a queue, or a time series that is cut
//! off at its old end, whose deletes lie side by side; once, or behind each first value of an index.
//!
//! A few samples may then all see the one kind of part. So there are more the longer the range is, one for each
//! stratum of equally many messages, not in its middle but at some place of it, lest they keep step with what
//! they look at. And where two neighbours differ much the messages between them are halved, and halved
//! again, until what is not known is a small part of what is live:
//!
//! ```text
//!   messages   [ put delete | put delete | put delete | put delete | put  put ]
//!   samples    ^ 0      ^ 0        ^ 0            ^ 0     ^ 0 ^ 0.9    ^ 1   ^ 1   entries a message
//! ```
//!
//! It is stratified sampling, and the trapezoidal rule with steps chosen where the function is steep, as in
//! adaptive quadrature.

use frondb_core::prng::Prng;
use frondb_core::{Direction, Result, SeqNo, Source};
use frondb_merge::Merger;
use frondb_trunk::segment;

use crate::estimate::range::{KeySpace, Range, messages, share};
use crate::estimate::sample::{PROBE_MESSAGES, Sample, bounds, probe};
use crate::version::Version;

/// Strata, at least and at most, and the messages of one between the two.
const STRATA: (u64, u64) = (4, 24);
const STRATUM_MESSAGES: u64 = 8192;

/// Samples more, at most, where the first differ.
const REFINEMENTS: usize = 16;

/// Changes between neighbours up to which each is looked for: with more there are others that no sample shows,
/// and what is found of those would stand for too little.
const CHANGES: usize = 2;

/// Samples that all have at least this part of what the liveliest has are taken together.
const ALIKE: f64 = 0.5;

/// What may stay unknown, as a part of what was found.
const UNKNOWN: f64 = 0.125;

/// A sample, and where it was taken.
struct Point {
    key: Vec<u8>,
    /// Messages of the range before it.
    below: u64,
    /// Entries a message there.
    live: f64,
}

/// What samples say of a range.
pub(crate) enum Found {
    /// It is alike everywhere, or hardly looked into.
    Alike(Sample),
    /// Some parts have far more entries a message than others; so many in all.
    Entries(u64),
}

/// Takes samples of a range that is not short.
pub(crate) fn look(version: &Version, snapshot: SeqNo, range: &Range) -> Result<Found> {
    let looker = Looker { version, snapshot, range, all: messages(version, range)? };
    let (mut points, mut sample) = (Vec::new(), Sample::default());
    for key in looker.first_keys()? {
        points.extend(looker.point(key, &mut sample)?);
    }
    let live = points.iter().map(|point| point.live);
    let (least, most) = live.fold((f64::MAX, 0.0), |(a, b), live| (live.min(a), live.max(b)));
    if points.len() < 2 || least >= most * ALIKE {
        return Ok(Found::Alike(sample));
    }
    let change = |pair: &&[Point]| (pair[0].live - pair[1].live).abs() > most * ALIKE;
    if points.windows(2).filter(change).count() <= CHANGES {
        looker.refine(&mut points)?;
    }
    Ok(Found::Entries(looker.entries(&points) as u64))
}

struct Looker<'a> {
    version: &'a Version,
    snapshot: SeqNo,
    range: &'a Range,
    /// Its messages.
    all: u64,
}

impl Looker<'_> {
    /// The range's beginning, a key in each stratum, and one at the end.
    fn first_keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys = vec![self.range.lo.clone()];
        let edges = (self.edge(Direction::Forward)?, self.edge(Direction::Backward)?);
        let (Some(mut least), Some(most)) = edges else { return Ok(keys) };
        let strata = (self.all / STRATUM_MESSAGES).clamp(STRATA.0, STRATA.1);
        // Always the same places: an estimate is repeatable.
        let mut prng = Prng::new(self.all);
        let places = (0..strata).map(|i| (i * 1024 + prng.below(1024), strata * 1024));
        let end = self.all.saturating_sub(PROBE_MESSAGES);
        // Not near enough for keys that are round numbers to be met more often than others.
        let near = self.all / (strata * 64);
        for wanted in places.map(|(part, of)| share(self.all, part, of)).chain([end]) {
            if let Some(key) = self.key_at(wanted, near, &least, &most)? {
                keys.push(key.clone());
                least = least.max(key);
            }
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// The first message's key in a direction. Counts alone do not tell: within blocks they are estimates, and of
    /// keys that are numbers of eight bytes few may differ.
    fn edge(&self, direction: Direction) -> Result<Option<Vec<u8>>> {
        let (lo, hi) = (&self.range.lo[..], self.range.hi.as_deref());
        let mut at = if direction == Direction::Forward {
            Some(lo.to_vec())
        } else {
            hi.map(<[u8]>::to_vec)
        };
        loop {
            let trunk = &self.version.trunk;
            let part = segment(trunk, direction, at.as_deref(), lo, hi, self.snapshot, &[])?;
            let (from, to) = bounds(&part.lo, part.hi.as_deref());
            let mut sources: Vec<Box<dyn Source>> = Vec::new();
            for slot in self.version.sources() {
                sources.push(Box::new(slot.memtable.cursor(direction, from, to, self.snapshot)));
                for run in slot.runs() {
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

    /// A key of the range between two others with `wanted` messages below, or up to `near` more or fewer.
    fn key_at(&self, wanted: u64, near: u64, least: &[u8], most: &[u8]) -> Result<Option<Vec<u8>>> {
        let space = KeySpace::between(least, most);
        let (_, to) = space.find(space.from, wanted, near, |key| self.below(&key))?;
        let key = space.key(to);
        let is_inside = key > self.range.lo && self.range.hi.as_ref().is_none_or(|hi| key < *hi);
        Ok(is_inside.then_some(key))
    }

    fn below(&self, key: &[u8]) -> Result<u64> {
        messages(self.version, &self.range.clone().up_to(key.to_vec()))
    }

    /// Takes a sample, which is added to `all`; `None` if nothing was there to see.
    fn point(&self, key: Vec<u8>, all: &mut Sample) -> Result<Option<Point>> {
        let mut here = Sample::default();
        probe(self.version, self.snapshot, &key, self.range.hi.as_deref(), &mut here)?;
        all.join(here);
        let Some(live) = here.live_a_message() else { return Ok(None) };
        let below = if key == self.range.lo { 0 } else { self.below(&key)? };
        Ok(Some(Point { key, below, live }))
    }

    /// Adds samples where they tell most.
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
            if is_known || b.below.saturating_sub(a.below) <= PROBE_MESSAGES {
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

    /// The entries, with what lies between two samples as their mean.
    fn entries(&self, points: &[Point]) -> f64 {
        let between = points.windows(2).map(|pair| {
            let messages = pair[1].below.saturating_sub(pair[0].below);
            messages as f64 * f64::midpoint(pair[0].live, pair[1].live)
        });
        let first = points.first().map_or(0.0, |first| first.below as f64 * first.live);
        let behind = |last: &Point| self.all.saturating_sub(last.below) as f64 * last.live;
        first + between.sum::<f64>() + points.last().map_or(0.0, behind)
    }
}
