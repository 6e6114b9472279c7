//! What the cache keeps, in which form, and for how long.
//!
//! | file | question |
//! |---|---|
//! | [`choice`] | decoded or as it is on disk? All decisions about frames |
//! | [`frames`] | what a frame is, and what the cache remembers of hits |
//! | [`device_pace`] | is a read slow beside a decoding? |
//! | [`index_pressure`] | do indexes take too much of the cache? |
//! | [`presence`] | which blocks of a run does the cache hold? |
//! | [`read_credit`] | may background work read blocks that nobody asked for? |
//! | [`handover`] | does a merge leave its blocks in the cache? |

mod choice;
pub(crate) mod device_pace;
pub(crate) mod frames;
pub(crate) mod handover;
pub(crate) mod index_pressure;
pub(crate) mod presence;
pub(crate) mod read_credit;
