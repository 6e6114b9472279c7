//! Snapshots.

use std::sync::Arc;

use frondb::{Error, ErrorKind, Result, Snapshot};
use napi_derive::napi;

use crate::shared::Handle;

/// A moment of a database, at which reads can see it.
#[napi]
pub struct NativeSnapshot {
    /// `None` once it was closed.
    snapshot: Option<Snapshot>,
    /// Dropped after the snapshot, which refers to the database.
    _handle: Arc<Handle>,
}

impl NativeSnapshot {
    pub(crate) fn new(snapshot: Snapshot, handle: &Arc<Handle>) -> Self {
        Self { snapshot: Some(snapshot), _handle: Arc::clone(handle) }
    }

    /// # Errors
    /// `Closed`.
    pub(crate) fn get(&self) -> Result<&Snapshot> {
        self.snapshot.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Closed, "the snapshot was closed: take another one")
        })
    }
}

#[napi]
impl NativeSnapshot {
    /// Whether it was closed.
    #[napi(getter)]
    pub fn closed(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Lets the database free what only this snapshot sees.
    #[napi]
    pub fn close(&mut self) {
        self.snapshot = None;
    }
}
