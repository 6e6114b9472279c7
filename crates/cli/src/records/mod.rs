//! Files of entries, which `dump` writes and `load` reads.
//!
//! | format | file | for |
//! |---|---|---|
//! | `csv`, `tsv` | [`text`], cells in [`cells`], quotes in [`quotes`] | tables of other programs |
//! | `jsonl` | [`lines`]; only `load` | objects of other programs |
//! | `binary` | [`binary`], bytes in [`format`] | exact and checked: another database |

pub(crate) mod binary;
mod cells;
mod format;
mod forms;
pub(crate) mod guess;
pub(crate) mod lines;
mod quotes;
mod record;
mod text;

pub(crate) use cells::Cells;
pub(crate) use forms::{reader, writer};
pub(crate) use record::Format;
#[cfg(any(test, feature = "testing"))]
pub(crate) use record::{Entry, RecordReader, RecordWriter};
pub(crate) use text::TextOptions;
