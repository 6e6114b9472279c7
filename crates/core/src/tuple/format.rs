//! The bytes of the format: the tags of parts, and the two bytes that can follow a 00 in a string.
//! The head of [`tuple`](super) has a table of them.

pub(super) const TAG_NULL: u8 = 0x01;
pub(super) const TAG_FALSE: u8 = 0x02;
pub(super) const TAG_TRUE: u8 = 0x03;
pub(super) const TAG_ZERO: u8 = 0x20;
pub(super) const TAG_INT_MIN: u8 = TAG_ZERO - INT_BYTES_MAX;
pub(super) const TAG_INT_MAX: u8 = TAG_ZERO + INT_BYTES_MAX;
pub(super) const TAG_F32: u8 = 0x38;
pub(super) const TAG_F64: u8 = 0x39;
pub(super) const TAG_BYTES: u8 = 0x40;
pub(super) const TAG_STRING: u8 = 0x41;
pub(super) const INT_BYTES_MAX: u8 = 16;

/// The byte after a 00 that is part of the string.
pub(super) const ESCAPED: u8 = 0xff;
/// The byte after the 00 that ends the string.
pub(super) const END: u8 = 0x01;
