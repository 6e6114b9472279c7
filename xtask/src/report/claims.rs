//! The claims of the documents, a module for each document. TokuDB's figures, and InnoDB's figures
//! beside them, come from the documents. FronDB's figures, and InnoDB's figures beside them, come
//! from the results.
//!
//! | module | document |
//! |---|---|
//! | [`ssd`] | Three ways that fractal tree indexes improve SSD |
//! | [`device`] | What is a performance model for SSDs? |
//! | [`optimize`] | TokuDB table optimization |
//! | [`durable`] | High insertion rates with durable transactions |
//! | [`linkbench`] | LinkBench, InnoDB vs TokuDB; the library as a key-value store; a conference |

mod device;
pub(super) mod durable;
pub(super) mod linkbench;
pub(super) mod optimize;
pub(super) mod ssd;

use super::claim::Document;
use super::results::Results;

/// Returns all documents, in the order of the page.
pub(super) fn documents(r: &Results) -> Vec<Document> {
    vec![
        ssd::document(r),
        device::document(r),
        optimize::document(r),
        durable::document(r),
        linkbench::document(r),
    ]
}
