//! The commands, one file for each group.

pub(crate) mod backup;
pub(crate) mod device;
pub(crate) mod dump;
pub(crate) mod entries;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod optimize;
pub(crate) mod prepared;
pub(crate) mod salvage;
pub(crate) mod scan;
mod session;
pub(crate) mod trees;
mod wear;
