//! Looks up the figures of a section's rows. A missing or malformed figure is an error that names
//! the file and the place of the figure.

use super::row::{Compare, Floor, Quantity, Row, Section};
use crate::Result;
use crate::report::measured::{Measured, Named};
use crate::report::results::Results;

const OURS: &str = "frondb";

/// A row with its figures.
pub(super) struct Figures {
    pub(super) row: &'static Row,
    pub(super) own: Cell,
    /// The ratios to the peers of the section, in their order; empty if the row is not compared.
    pub(super) ratios: Vec<Cell>,
}

/// A value with its floor.
pub(super) struct Cell {
    pub(super) value: f64,
    /// The lower and the upper quartile, if the value is a median.
    pub(super) quartiles: Option<(f64, f64)>,
    /// `Min`, `Max` or `None`, never `OfFile`.
    pub(super) floor: Floor,
}

impl Cell {
    pub(super) fn is_missed(&self) -> bool {
        match self.floor {
            Floor::Min(floor) => self.value < floor,
            Floor::Max(floor) => self.value > floor,
            Floor::None | Floor::OfFile => false,
        }
    }
}

/// Returns the figures of all rows of a section.
///
/// # Errors
/// The missing figures, one per line.
pub(super) fn figures(r: &Results, section: &Section) -> Result<Vec<Figures>> {
    let (mut figures, mut missing) = (Vec::new(), Vec::new());
    for row in section.rows {
        match of_row(r, section, row) {
            Ok(found) => figures.push(found),
            Err(error) if missing.contains(&error) => {}
            Err(error) => missing.push(error),
        }
    }
    if missing.is_empty() { Ok(figures) } else { Err(missing.join("\n")) }
}

fn of_row(r: &Results, section: &Section, row: &'static Row) -> Result<Figures> {
    let own = own(r, section, row)?;
    let mut ratios = Vec::new();
    if row.compare != Compare::Nothing {
        for (peer, floor) in section.peers.iter().zip(row.ratio_floors) {
            let (value, quartiles) = match row.compare {
                Compare::Pairs(what) => pairs(r, section, row, peer.engine, what)?,
                _ => (quotient(r, section, row, peer.engine, own.value)?, None),
            };
            ratios.push(Cell { value, quartiles, floor });
        }
    }
    Ok(Figures { row, own, ratios })
}

/// Returns FronDB's figure, with its floor.
fn own(r: &Results, section: &Section, row: &Row) -> Result<Cell> {
    let named = named(r, section, row)?;
    let value = match named {
        Some(named) => named.value,
        None => value(row.what, &measured(r, section, row, OURS)?)?,
    };
    let floor = match (row.floor, named) {
        (Floor::OfFile, Some(Named { floor: Some(floor), is_most: true, .. })) => Floor::Max(floor),
        (Floor::OfFile, Some(Named { floor: Some(floor), .. })) => Floor::Min(floor),
        (Floor::OfFile, _) => {
            let (step, _) = place(section, row);
            return Err(format!("{step}.json: the figure of the row `{}` has no floor", row.label));
        }
        (floor, _) => floor,
    };
    Ok(Cell { value, quartiles: None, floor })
}

/// Returns FronDB's figure if it is one of a list of named figures.
fn named(r: &Results, section: &Section, row: &Row) -> Result<Option<Named>> {
    match row.what {
        Quantity::Listed(name) => r.listed(place(section, row).0, name).map(Some),
        Quantity::Figure(name) => measured(r, section, row, OURS)?.named(name).map(Some),
        Quantity::Highest(ending) => {
            let mut highest: Option<Named> = None;
            for measured in r.all_variants(place(section, row).0)? {
                let named = measured.figure_ending(ending)?;
                if highest.is_none_or(|highest| named.value > highest.value) {
                    highest = Some(named);
                }
            }
            Ok(highest)
        }
        _ => Ok(None),
    }
}

fn quotient(r: &Results, section: &Section, row: &Row, engine: &str, own: f64) -> Result<f64> {
    let theirs = value(row.what, &measured(r, section, row, engine)?)?;
    // Both may be 0: a writer that waits for an ALTER may write nothing.
    Ok(if own == theirs { 1.0 } else { own / theirs })
}

/// Returns the median and the quartiles of the ratios of pairs of slices.
fn pairs(
    r: &Results,
    section: &Section,
    row: &Row,
    engine: &str,
    what: &str,
) -> Result<(f64, Option<(f64, f64)>)> {
    let ours = measured(r, section, row, OURS)?;
    let part = |part: &str| ours.figure(&format!("{engine}: {what}: {part}"));
    let quartiles = (part("lower quartile")?, part("upper quartile")?);
    Ok((part("median of the pairs")?, Some(quartiles)))
}

fn place<'a>(section: &'a Section, row: &Row) -> (&'a str, &'a str) {
    row.place.unwrap_or((section.steps[0], section.variant))
}

fn measured<'a>(
    r: &'a Results,
    section: &Section,
    row: &Row,
    engine: &str,
) -> Result<Measured<'a>> {
    let (step, variant) = place(section, row);
    r.variant(step, engine, variant)
}

/// Returns the figure of one engine.
fn value(what: Quantity, m: &Measured) -> Result<f64> {
    match what {
        Quantity::Member(name) => m.number(name),
        Quantity::Per(one, other) => divided(m, m.number(one)?, m.number(other)?, other),
        Quantity::PerThousand(one, other) => {
            divided(m, m.number(one)? * 1_000.0, m.number(other)?, other)
        }
        Quantity::Less(one, other) => Ok(m.number(one)? - m.number(other)?),
        Quantity::Figure(name) => m.figure(name),
        Quantity::Case(case, member) => m.case(case, member),
        Quantity::RawPerData => {
            let data = m.number("disk_bytes")? - m.number_or("reserved_bytes", 0.0);
            divided(m, m.number("raw_bytes")?, data, "disk_bytes without reserved_bytes")
        }
        Quantity::Listed(name) | Quantity::Highest(name) => {
            Err(format!("{}: `{name}` is a figure of FronDB alone", m.shown()))
        }
    }
}

fn divided(m: &Measured, value: f64, by: f64, name: &str) -> Result<f64> {
    match by > 0.0 {
        true => Ok(value / by),
        false => Err(format!("{}: {name} is {by}, so nothing is divided by it", m.shown())),
    }
}
