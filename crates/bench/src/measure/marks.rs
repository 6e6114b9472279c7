//! The times at which a load reached each thousandth of its planned rows. They give the rate of the
//! last fifth of the rows, even if a time limit ended the load early.

use std::time::Duration;

/// A mark for each thousandth of the rows.
#[derive(Clone, Debug)]
pub struct Marks {
    marks: Vec<(u64, Duration)>,
    stride: u64,
}

impl Marks {
    /// Creates an empty list for a load of at most `rows`.
    #[must_use]
    pub fn new(rows: u64) -> Self {
        Self { marks: Vec::new(), stride: (rows / 1_000).max(1) }
    }

    /// Notes that `rows` are acknowledged after `elapsed`.
    pub fn record(&mut self, rows: u64, elapsed: Duration) {
        if self.marks.last().is_none_or(|(last, _)| rows >= last + self.stride) {
            self.marks.push((rows, elapsed));
        }
    }

    /// Returns the rows a second from the first mark at or after four fifths of `rows` to the last
    /// row. `rows` is the number of rows written, `elapsed` the time of the whole load. `None` if
    /// no row follows that mark.
    #[must_use]
    pub fn last_fifth(&self, rows: u64, elapsed: Duration) -> Option<f64> {
        let (from, at) = self.marks.iter().find(|(mark, _)| mark * 5 >= rows * 4)?;
        let time = elapsed.checked_sub(*at)?.as_secs_f64();
        (rows > *from && time > 0.0).then(|| (rows - from) as f64 / time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fifth_is_that_of_the_written_rows() {
        let mut marks = Marks::new(1_000);
        (1..=10).for_each(|i| marks.record(i * 100, Duration::from_secs(i)));
        let rate = marks.last_fifth(1_000, Duration::from_secs(14));
        assert_eq!(rate, Some(200.0 / 6.0));
        assert_eq!(Marks::new(0).last_fifth(0, Duration::ZERO), None);
        let mut one = Marks::new(10);
        one.record(10, Duration::from_secs(1));
        assert_eq!(one.last_fifth(10, Duration::from_secs(1)), None);
    }

    #[test]
    fn a_thousand_marks_are_enough() {
        let mut marks = Marks::new(1_000_000);
        (1..=1_000_000).for_each(|rows| marks.record(rows, Duration::from_micros(rows)));
        assert!(marks.marks.len() <= 1_001);
    }
}
