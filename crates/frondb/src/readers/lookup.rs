//! Lookups that wait for the device: several of one tree are one
//! [`multi_get`](frondb_tree::multi_get), which reads their blocks at the same time.

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result, SeqNo};
use frondb_tree::{ReadContext, Snapshot, TreeCore, get, multi_get};

use crate::pending::Completer;

/// Memory charged for a waiting lookup besides its key, bytes: the request, and what it shares with
/// its future.
const REQUEST_BYTES: u64 = 256;

/// The value of a key, and what gives it to the future.
type Value = Option<Vec<u8>>;

/// A lookup that waits for the device.
pub(crate) struct LookupRequest {
    tree: Arc<TreeCore>,
    key: Box<[u8]>,
    /// Keeps what the lookup must see; `None` to read the newest state.
    at: Option<Snapshot>,
    completer: Completer<Value>,
    _charge: Reservation,
}

impl LookupRequest {
    pub(crate) fn new(
        budget: &Arc<Budget>,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<&Snapshot>,
        completer: Completer<Value>,
    ) -> Self {
        let charge = budget.reserve(Part::Work, REQUEST_BYTES + key.len() as u64);
        let (tree, at) = (Arc::clone(tree), at.cloned());
        Self { tree, key: key.into(), at, completer, _charge: charge }
    }

    pub(super) fn refuse(self, error: Error) {
        self.completer.complete(Err(error));
    }

    fn seq(&self) -> Option<SeqNo> {
        self.at.as_ref().map(Snapshot::seq)
    }

    /// Whether one call can look up both keys.
    fn goes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree) && self.seq() == other.seq()
    }
}

/// Looks up all keys whose futures still exist, and gives the futures their results.
pub(super) fn perform(reads: &ReadContext, mut requests: Vec<LookupRequest>) {
    requests.retain(|request| request.completer.is_wanted());
    while let Some(first) = requests.pop() {
        let (mut group, others) =
            requests.into_iter().partition::<Vec<_>, _>(|request| first.goes_with(request));
        requests = others;
        group.push(first);
        perform_group(reads, group);
    }
}

/// Looks up keys of one tree. If the common call fails, looks up each key alone, so that an error
/// reaches only the futures that it concerns.
fn perform_group(reads: &ReadContext, group: Vec<LookupRequest>) {
    let Some(first) = group.first() else { return };
    let (tree, seq) = (Arc::clone(&first.tree), first.seq());
    let together = (group.len() > 1).then(|| {
        let keys: Vec<&[u8]> = group.iter().map(|request| &*request.key).collect();
        checked(reads, &tree, || multi_get(reads, &tree, &keys, seq))
    });
    match together {
        Some(Ok(values)) => {
            let results = group.into_iter().zip(values);
            results.for_each(|(request, value)| request.completer.complete(Ok(value)));
        }
        _ => {
            for request in group {
                let value = checked(reads, &tree, || get::get(reads, &tree, &request.key, seq));
                request.completer.complete(value);
            }
        }
    }
}

/// Checks the tree before the read, and the database after it, as a call on the caller's thread
/// does.
fn checked<T>(
    reads: &ReadContext,
    tree: &Arc<TreeCore>,
    read: impl FnOnce() -> Result<T>,
) -> Result<T> {
    reads.check_read(tree, None)?;
    reads.health.while_open(read)
}
