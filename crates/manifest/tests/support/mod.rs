//! Shared by the tests of the manifest: opening it, and edits that can be told apart.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb_core::Result;
use frondb_core::prng::Prng;
use frondb_device::SharedDevice;
use frondb_manifest::{Manifest, ManifestOptions, Recovered};

pub(crate) const DB: u128 = 0xF00D;

pub(crate) fn options() -> ManifestOptions {
    ManifestOptions { reserve_bytes: 2048 }
}

pub(crate) fn create(device: &SharedDevice) -> Result<Manifest> {
    Manifest::create(Arc::clone(device), DB, options(), &[])
}

pub(crate) fn open(device: &SharedDevice) -> Result<(Manifest, Recovered)> {
    Manifest::open(Arc::clone(device), options())
}

/// Appends an edit and makes it durable.
pub(crate) fn log(manifest: &Manifest, edit: &[u8]) -> Result<()> {
    manifest.sync(manifest.append(edit)?)
}

/// The edit with this number.
pub(crate) fn edit(number: u64) -> Vec<u8> {
    let mut prng = Prng::new(number);
    let mut bytes = vec![0; 8 + prng.below(120) as usize];
    prng.fill(&mut bytes);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The number of an edit, checked to be complete.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, edit(number), "an edit that was never written");
    number
}

/// A state is the list of numbers of all edits in it; a snapshot is its encoding.
pub(crate) fn encode(state: &[u64]) -> Vec<u8> {
    state.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The state that a recovered manifest describes.
pub(crate) fn state(recovered: &Recovered) -> Vec<u64> {
    assert_eq!(recovered.db_id, DB);
    let snapshot = recovered.snapshot.chunks(8);
    snapshot
        .map(|number| u64::from_le_bytes(number.try_into().unwrap()))
        .chain(recovered.edits.iter().map(|bytes| number_of(bytes)))
        .collect()
}

/// Writes a snapshot of `state` and puts it in force.
pub(crate) fn rotate(manifest: &Manifest, state: &[u64]) -> Result<()> {
    let mut writer = manifest.begin_snapshot()?;
    writer.write(&encode(state))?;
    writer.finish()
}
