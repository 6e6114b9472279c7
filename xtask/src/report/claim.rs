//! A row of docs/heritage.md: what a document says of TokuDB, and what FronDB has.

use crate::Result;

/// A document with what it claims.
pub(super) struct Document {
    pub(super) title: &'static str,
    /// The year in which it appeared, if it is known.
    pub(super) year: Option<u16>,
    pub(super) claims: Vec<Claim>,
}

/// A row of the page.
pub(super) struct Claim {
    /// What the document says.
    pub(super) what: &'static str,
    /// The document's figure for TokuDB.
    pub(super) toku: &'static str,
    /// What FronDB has, or why there is no figure.
    pub(super) ours: Result<String>,
    /// Where it is measured.
    pub(super) source: Source,
    /// What a reader must know to compare the two figures.
    pub(super) remark: String,
}

/// Where FronDB's figure is measured, or its function is described.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A step of the report.
    Step(&'static str),
    /// A link to a test or a page, in Markdown.
    Link(&'static str),
}

impl Source {
    /// The step, if it is one.
    pub(super) fn step(self) -> Option<&'static str> {
        match self {
            Self::Step(step) => Some(step),
            Self::Link(_) => None,
        }
    }
}

impl Claim {
    /// A claim that a step measures.
    pub(super) fn measured(
        what: &'static str,
        toku: &'static str,
        step: &'static str,
        ours: Result<String>,
    ) -> Self {
        Self { what, toku, ours, source: Source::Step(step), remark: String::new() }
    }

    /// A claim without a figure: a function that exists or is missing.
    pub(super) fn function(
        what: &'static str,
        toku: &'static str,
        ours: &str,
        link: &'static str,
    ) -> Self {
        let ours = Ok(ours.to_owned());
        Self { what, toku, ours, source: Source::Link(link), remark: String::new() }
    }

    pub(super) fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = remark.into();
        self
    }
}
