//! The trait that each kind of data implements.

/// Makes the values of rows, one after the other.
pub(super) trait Source {
    /// Goes back to the first row.
    fn restart(&mut self);

    /// Appends the value of the next row to `value`.
    fn next(&mut self, value: &mut Vec<u8>);
}
