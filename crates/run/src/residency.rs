//! What the cache keeps, in which form, and for how long.
//!
//! | file | question |
//! |---|---|
//! | [`choice`] | decoded or as it is on disk? All decisions about frames |
//! | [`frames`] | what is a frame, and what is known about hits on frames? |
//! | [`device_pace`] | does a read take much longer than decoding a block? |
//! | [`index_pressure`] | do indexes take too much of the cache? |
//! | [`presence`] | how many lookups of a run find their key? |
//! | [`read_credit`] | do reads justify caching a block that is being written? |
//! | [`handover`] | does a merge's output replace its inputs in the cache? |

mod choice;
pub(crate) mod device_pace;
pub(crate) mod frames;
pub(crate) mod handover;
pub(crate) mod index_pressure;
pub(crate) mod presence;
pub(crate) mod read_credit;
