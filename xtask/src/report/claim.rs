//! A row of docs/heritage.md: the claim of a document about TokuDB, and FronDB's figure or
//! function.

use crate::Result;

/// A document with its claims.
pub(super) struct Document {
    pub(super) title: &'static str,
    /// The year of publication, if it is known.
    pub(super) year: Option<u16>,
    pub(super) claims: Vec<Claim>,
}

/// A row of the page.
pub(super) struct Claim {
    /// The claim of the document.
    pub(super) what: &'static str,
    /// The document's figure for TokuDB.
    pub(super) toku: &'static str,
    /// FronDB's figure or function, or the reason why there is no figure.
    pub(super) ours: Result<String>,
    /// Where the figure is measured, or where the function is described or tested.
    pub(super) source: Source,
    /// A remark that a reader needs to compare the two figures.
    pub(super) remark: String,
}

/// Where FronDB's figure is measured, or where its function is described or tested.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A step of the report.
    Step(&'static str),
    /// A link to a test or a page, in Markdown.
    Link(&'static str),
}

impl Source {
    /// Returns the step, if the source is a step.
    pub(super) fn step(self) -> Option<&'static str> {
        match self {
            Self::Step(step) => Some(step),
            Self::Link(_) => None,
        }
    }
}

impl Claim {
    /// Creates a claim that a step measures.
    pub(super) fn measured(
        what: &'static str,
        toku: &'static str,
        step: &'static str,
        ours: Result<String>,
    ) -> Self {
        Self { what, toku, ours, source: Source::Step(step), remark: String::new() }
    }

    /// Creates a claim without a figure: a function that exists or is missing.
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
