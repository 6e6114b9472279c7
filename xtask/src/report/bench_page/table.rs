//! The table of a section.

use super::lookup::Figures;
use super::row::{Floor, Section, Unit};
use super::text::{cell, floor};

/// Renders the table as Markdown. A column of floors exists only if a row has such a floor.
pub(super) fn table(section: &Section, rows: &[Figures]) -> String {
    let has = |floor: Floor| floor != Floor::None;
    let own_floors = rows.iter().any(|row| has(row.own.floor));
    let is_compared = |place: usize| {
        let mut cells = rows.iter().filter_map(|row| row.ratios.get(place));
        cells.any(|cell| has(cell.floor))
    };
    let ratio_floors: Vec<bool> = (0..section.peers.len()).map(is_compared).collect();
    let mut head = vec![String::new(), "FronDB".to_owned()];
    head.extend(own_floors.then(|| "floor".to_owned()));
    for (peer, has_floors) in section.peers.iter().zip(&ratio_floors) {
        head.push(format!("to {}", peer.name));
        head.extend(has_floors.then(|| "floor".to_owned()));
    }
    let mut table = line(&head) + &line(&vec!["---".to_owned(); head.len()]).replace(' ', "");
    for row in rows {
        let unit = row.row.unit;
        let mut cells = vec![row.row.label.to_owned(), cell(&row.own, unit)];
        cells.extend(own_floors.then(|| floor(row.own.floor, unit)));
        for (place, has_floors) in ratio_floors.iter().enumerate() {
            let ratio = row.ratios.get(place);
            cells.push(ratio.map_or_else(String::new, |ratio| cell(ratio, Unit::Times)));
            let limit = || ratio.map_or_else(String::new, |r| floor(r.floor, Unit::Times));
            cells.extend(has_floors.then(limit));
        }
        table.push_str(&line(&cells));
    }
    table
}

/// Renders a line of a table. An empty cell is one blank.
fn line(cells: &[String]) -> String {
    let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
    format!("|{}\n", cells.iter().map(cell).collect::<String>())
}
