//! The buffers of a merge, pooled for later merges. Otherwise a short scan would spend more time on
//! allocating memory than on its entries.
//!
//! A workspace is taken and returned as one object, so that a scan of ten entries moves no buffers.
//! Pooled workspaces are empty and hold no block. The pool belongs to the process, not to a thread,
//! so idle connections hold no workspaces.

use frondb_core::mem::Array;
use frondb_core::pool::Shared;

use crate::input::Input;
use crate::loser_tree::LoserTree;

/// Maximum size of all pooled workspaces, in bytes. A scan of a hundred rows needs about 20 KiB for
/// each of its few sources.
const POOL_BYTES_MAX: usize = 1 << 20;

/// Largest input that is pooled, in bytes.
const INPUT_BYTES_MAX: usize = 128 << 10;

/// Maximum number of workspaces that are pooled.
const POOL_MAX: usize = 32;

/// Maximum number of inputs of a pooled workspace.
const INPUTS_MAX: usize = 32;

/// The inputs of a merge, newest first, and their tournament.
#[derive(Default)]
pub(crate) struct Workspace {
    /// At least one input per source; more if an earlier merge had more sources.
    pub(crate) inputs: Vec<Input>,
    /// Codes of the inputs at the beginning of a tournament.
    pub(crate) codes: Array<u64>,
    pub(crate) tree: LoserTree,
}

/// The idle workspaces. The last one returned is the first one taken.
struct Pool {
    /// Workspaces with their sizes in bytes.
    workspaces: Vec<(Workspace, usize)>,
    /// Bytes of all workspaces.
    bytes: usize,
}

static POOL: Shared<Pool> = Shared::new(Pool::new());

impl Workspace {
    /// Returns a workspace with at least `inputs` inputs, all of them empty.
    pub(crate) fn take(inputs: usize) -> Self {
        // The workspace is new if the pool is empty or another thread holds the pool's lock.
        let mut workspace = POOL.try_with(Pool::take).unwrap_or_default();
        if workspace.inputs.len() < inputs {
            workspace.inputs.resize_with(inputs, Input::default);
        }
        workspace
    }

    /// Returns the workspace to the pool. Frees it instead if the pool is full or another thread
    /// holds the pool's lock.
    pub(crate) fn return_to_pool(mut self) {
        self.empty();
        let bytes = self.allocated();
        let mut returned = Some(self);
        POOL.try_with(|pool| pool.give(&mut returned, bytes));
        // Free everything that the pool did not take here, outside the lock.
        drop(returned);
    }

    /// Removes all entries, and frees buffers that are too large to be pooled.
    fn empty(&mut self) {
        self.inputs.truncate(INPUTS_MAX);
        for input in &mut self.inputs {
            input.chunk.clear();
            input.codes.clear();
            input.last_key.clear();
            if input.allocated() > INPUT_BYTES_MAX {
                *input = Input::default();
            }
        }
        self.codes.clear();
    }

    fn allocated(&self) -> usize {
        let inputs: usize = self.inputs.iter().map(Input::allocated).sum();
        inputs + self.inputs.capacity() * size_of::<Input>()
    }
}

impl Input {
    fn allocated(&self) -> usize {
        self.chunk.allocated() + self.codes.allocated() + self.last_key.capacity()
    }
}

impl Pool {
    const fn new() -> Self {
        Self { workspaces: Vec::new(), bytes: 0 }
    }

    fn take(&mut self) -> Workspace {
        let Some((workspace, bytes)) = self.workspaces.pop() else { return Workspace::default() };
        self.bytes -= bytes;
        workspace
    }

    fn give(&mut self, returned: &mut Option<Workspace>, bytes: usize) {
        if self.workspaces.len() < POOL_MAX && self.bytes + bytes <= POOL_BYTES_MAX {
            self.bytes += bytes;
            self.workspaces.extend(returned.take().map(|workspace| (workspace, bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(pool: &mut Pool, mut workspace: Workspace) -> bool {
        workspace.empty();
        let bytes = workspace.allocated();
        let mut returned = Some(workspace);
        pool.give(&mut returned, bytes);
        returned.is_none()
    }

    /// Returns a workspace of one input with about `bytes` bytes.
    fn of_bytes(bytes: usize) -> Workspace {
        let mut input = Input::default();
        input.codes.reserve(bytes / size_of::<u64>());
        Workspace { inputs: vec![input], ..Workspace::default() }
    }

    #[test]
    fn a_pooled_workspace_is_empty_and_keeps_the_order_of_its_inputs() {
        let mut pool = Pool::new();
        let mut workspace = Workspace::default();
        workspace.inputs.resize_with(2, Input::default);
        let [first, second] = &mut workspace.inputs[..] else { unreachable!() };
        first.chunk.push(b"key", frondb_core::SeqNo(1), frondb_core::MessageKind::Put, b"v");
        first.codes.reserve(100);
        second.codes.reserve(7);
        assert!(give(&mut pool, workspace));
        assert!(pool.bytes > 0);
        let again = pool.take();
        assert!(again.inputs.iter().all(|i| i.chunk.is_empty() && i.codes.is_empty()));
        let room: Vec<_> = again.inputs.iter().map(|input| input.codes.capacity()).collect();
        assert!(room[0] >= 100 && (7..100).contains(&room[1]), "{room:?}");
        assert_eq!((pool.workspaces.len(), pool.bytes), (0, 0));
    }

    #[test]
    fn the_pool_keeps_to_its_limits() {
        let mut pool = Pool::new();
        let count = (0..100).filter(|_| give(&mut pool, of_bytes(INPUT_BYTES_MAX / 3))).count();
        assert!(count >= 10 && pool.bytes <= POOL_BYTES_MAX, "{count} of {} bytes", pool.bytes);
        pool = Pool::new();
        assert!(give(&mut pool, of_bytes(2 * INPUT_BYTES_MAX)));
        assert!(pool.bytes < 4096, "a large input was pooled: {} bytes", pool.bytes);
        pool = Pool::new();
        (0..2 * POOL_MAX).for_each(|_| _ = give(&mut pool, of_bytes(8)));
        assert_eq!(pool.workspaces.len(), POOL_MAX);
        pool = Pool::new();
        let mut many = Workspace::default();
        many.inputs.resize_with(10 * INPUTS_MAX, Input::default);
        assert!(give(&mut pool, many));
        assert_eq!(pool.take().inputs.len(), INPUTS_MAX);
    }

    #[test]
    fn a_pooled_workspace_holds_no_block() {
        let mut workspace = of_bytes(8);
        let bytes = frondb_core::mem::Bytes::copy_from(b"a block");
        workspace.inputs[0].chunk.values = frondb_core::chunk::Values::Shared(bytes);
        workspace.empty();
        let values = &workspace.inputs[0].chunk.values;
        assert!(matches!(values, frondb_core::chunk::Values::Owned(_)));
    }
}
