//! The top of the page: a table of ratios, and the list of figures in which FronDB is slower or
//! larger.

use std::fmt::Write as _;

use super::conditions::filled;
use super::lookup::Figures;
use super::row::{Row, Section, Unit};
use super::text::{floor, ratio, value};
use crate::Result;
use crate::report::results::Results;

/// Renders the table of the sections with a `short` name: a line for each peer, and a line for each
/// figure that is not compared.
pub(super) fn in_short(r: &Results, sections: &[(&Section, Vec<Figures>)]) -> Result<String> {
    let mut table = "| load | against | FronDB |\n|---|---|---|\n".to_owned();
    for (section, rows) in sections.iter().filter(|(section, _)| !section.short.is_empty()) {
        let load = filled(r, section, section.short)?;
        let mut load = format!("[{load}](#{})", heading(section));
        let shown: Vec<&Figures> = rows.iter().filter(|row| !row.row.short.is_empty()).collect();
        for (place, peer) in section.peers.iter().enumerate() {
            let ratios = shown.iter().filter_map(|row| Some((row, row.ratios.get(place)?)));
            let cells: Vec<String> = ratios
                .map(|(row, cell)| format!("{} {}", ratio(cell.value), row.row.short))
                .collect();
            let _ = writeln!(table, "| {load} | {} | {} |", peer.name, cells.join(", "));
            // The line of the second peer follows, about the same load.
            "the same".clone_into(&mut load);
        }
        for row in shown.iter().filter(|row| row.ratios.is_empty()) {
            let unit = row.row.unit;
            let limit = floor(row.own.floor, unit);
            let own = value(row.own.value, unit);
            let _ = writeln!(table, "| {load} | floor: {limit} | {own} {} |", row.row.short);
        }
    }
    Ok(table)
}

/// Renders the list of ratios on the wrong side of 1, a line for each section and peer.
pub(super) fn slower(sections: &[(&Section, Vec<Figures>)]) -> String {
    let mut list = String::new();
    for (section, rows) in sections {
        for (place, peer) in section.peers.iter().enumerate() {
            let behind = rows.iter().filter_map(|row| {
                let cell = row.ratios.get(place)?;
                is_behind(row.row, cell.value).then_some((row, cell.value))
            });
            push(&mut list, &format!("{}, to {}", link(section), peer.name), behind);
        }
        let behind = rows.iter().filter(|row| row.row.is_itself_ratio);
        let behind = behind.filter(|row| is_behind(row.row, row.own.value));
        push(&mut list, &link(section), behind.map(|row| (row, row.own.value)));
    }
    match list.is_empty() {
        true => "In no figure of this page.\n".to_owned(),
        false => list,
    }
}

fn push<'a>(list: &mut String, whose: &str, behind: impl Iterator<Item = (&'a Figures, f64)>) {
    let figures: Vec<String> = behind
        .map(|(row, value)| {
            // Remove the unit of the figure, because the list shows the ratio.
            let label = match row.row.unit {
                Unit::Times => row.row.label,
                _ => row.row.label.rsplit_once(", MB").map_or(row.row.label, |(label, _)| label),
            };
            format!("{label} {}", ratio(value))
        })
        .collect();
    if !figures.is_empty() {
        let _ = writeln!(list, "- {whose}: {}", figures.join("; "));
    }
}

/// Whether a ratio is on the wrong side of 1, after rounding as on the page.
fn is_behind(row: &Row, value: f64) -> bool {
    let is_wrong = if row.is_less_better { value > 1.0 } else { value < 1.0 };
    is_wrong && ratio(value) != ratio(1.0)
}

fn link(section: &Section) -> String {
    format!("[{}](#{})", section.title, heading(section))
}

/// Returns the anchor of the section's heading.
fn heading(section: &Section) -> String {
    section.title.to_lowercase().replace(' ', "-")
}
