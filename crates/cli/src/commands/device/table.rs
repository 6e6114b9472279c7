//! A table, as text and as HTML.

use std::fmt::Write as _;

/// A table with sentences below it.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
}

impl Table {
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        let cells = |row: usize, column: usize| match row {
            0 => self.head[column],
            row => self.rows[row - 1].get(column).map_or("", String::as_str),
        };
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| (0..=self.rows.len()).map(|row| cells(row, column).len()).max())
            .map(Option::unwrap_or_default)
            .collect();
        let has_head = self.head.iter().any(|head| !head.is_empty());
        for row in usize::from(!has_head)..=self.rows.len() {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                // A column without a head contains text: align it to the left.
                let cell = cells(row, column);
                let is_text = self.head[column].is_empty();
                let _ = match is_text {
                    true => write!(line, "  {cell:<width$}"),
                    false => write!(line, "  {cell:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        text
    }

    pub(super) fn html(&self) -> String {
        let mut html = format!("<h2>{}</h2>\n<table>\n", escape(&self.title));
        if self.head.iter().any(|head| !head.is_empty()) {
            let head = self.head.iter().map(|head| format!("<th>{}</th>", escape(head)));
            let _ = writeln!(html, "<tr>{}</tr>", head.collect::<String>());
        }
        for row in &self.rows {
            let cells = row.iter().map(|cell| format!("<td>{}</td>", escape(cell)));
            let _ = writeln!(html, "<tr>{}</tr>", cells.collect::<String>());
        }
        html.push_str("</table>\n");
        for note in &self.notes {
            let _ = writeln!(html, "<p>{}</p>", escape(note));
        }
        html
    }
}

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
