//! Renders docs/benchmarks.md from sections, which are data, and from the JSON files of one run.
//!
//! ```text
//!   sections ---+
//!   (data)      +--> lookup --> table, summary --> page
//!   results  ---+    cells      Markdown           benchmarks.md
//! ```
//! | module | what it does |
//! |---|---|
//! | [`row`] | a section and its rows as data: a label, where the figure is, its unit, its floor |
//! | [`sections`] | all sections |
//! | [`lookup`] | from a row to its figures; a figure that is missing is an error |
//! | [`conditions`] | the text of a section, with the variables of the commands that ran |
//! | [`table`], [`text`] | the table of a section, and its cells |
//! | [`summary`] | the ratios at the top of the page, and where FronDB is slower or larger |
//! | [`run`], [`page`] | the paragraph about the run, and the whole page |
//! | [`readme`](mod@readme), [`choosing`](mod@choosing) | the figures of README.md and choosing.md, from the same sections |

mod choosing;
mod conditions;
#[cfg(test)]
pub(super) mod invented;
mod lookup;
mod page;
mod readme;
mod row;
mod run;
mod sections;
mod summary;
mod table;
mod text;

pub(super) use choosing::choosing;
pub(super) use page::{page, unmeasured};
pub(super) use readme::readme;
