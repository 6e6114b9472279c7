//! Entries in files: what `dump` writes and `load` reads.
//!
//! | format | file | for |
//! |---|---|---|
//! | `csv`, `tsv` | [`text`] | tables of other programs |
//! | `binary` | [`binary`], bytes in [`format`] | exact and checked: another database |

pub(crate) mod binary;
mod format;
mod record;
mod text;

pub(crate) use record::{Entry, Format, RecordReader, RecordWriter, reader, writer};
pub(crate) use text::TextOptions;
