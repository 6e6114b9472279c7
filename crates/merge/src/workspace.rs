//! The buffers of a merge, pooled for later merges: a short scan would otherwise spend more time on
//! memory than on its entries.
//!
//! A workspace is taken and returned as one object, so that a scan of ten entries moves no buffers.
//! Pooled workspaces are empty and hold no block. The pool belongs to the process, not to a thread,
//! so a thousand idle connections hold no workspaces.

use frondb_core::mem::Array;
use frondb_core::pool::Shared;

use crate::input::Input;
use crate::loser_tree::LoserTree;

/// Bytes of all pooled workspaces: a scan of a hundred rows needs some 20 KiB for each of its few
/// sources.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Largest input that is pooled, bytes.
const INPUT_BYTES_MAX: usize = 128 << 10;

/// Most workspaces that are pooled.
const KEPT_MAX: usize = 32;

/// Most inputs of a pooled workspace.
const INPUTS_MAX: usize = 32;

/// The inputs of a merge, newest first, and their tournament.
#[derive(Default)]
pub(crate) struct Workspace {
    /// At least one input per source; an earlier merge may have had more.
    pub(crate) inputs: Vec<Input>,
    /// Codes of the inputs at the beginning of a tournament.
    pub(crate) codes: Array<u64>,
    pub(crate) tree: LoserTree,
}

/// The idle workspaces. The last one returned is taken first.
struct Kept {
    /// Each with its size in bytes.
    workspaces: Vec<(Workspace, usize)>,
    /// Bytes of all workspaces.
    bytes: usize,
}

static KEPT: Shared<Kept> = Shared::new(Kept::new());

impl Workspace {
    /// A workspace with at least `inputs` inputs, all of them empty.
    pub(crate) fn take(inputs: usize) -> Self {
        // A new workspace if another thread holds the pool's lock.
        let mut workspace = KEPT.try_with(Kept::take).unwrap_or_default();
        if workspace.inputs.len() < inputs {
            workspace.inputs.resize_with(inputs, Input::default);
        }
        workspace
    }

    /// Returns the workspace to the pool, if there is room.
    pub(crate) fn give_back(mut self) {
        self.empty();
        let bytes = self.allocated();
        let mut given = Some(self);
        KEPT.try_with(|kept| kept.keep(&mut given, bytes));
        // Whatever the pool did not take is freed here, outside the lock.
        drop(given);
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

impl Kept {
    const fn new() -> Self {
        Self { workspaces: Vec::new(), bytes: 0 }
    }

    fn take(&mut self) -> Workspace {
        let Some((workspace, bytes)) = self.workspaces.pop() else { return Workspace::default() };
        self.bytes -= bytes;
        workspace
    }

    fn keep(&mut self, given: &mut Option<Workspace>, bytes: usize) {
        if self.workspaces.len() < KEPT_MAX && self.bytes + bytes <= KEPT_BYTES_MAX {
            self.bytes += bytes;
            self.workspaces.extend(given.take().map(|workspace| (workspace, bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: &mut Kept, mut workspace: Workspace) -> bool {
        workspace.empty();
        let bytes = workspace.allocated();
        let mut given = Some(workspace);
        kept.keep(&mut given, bytes);
        given.is_none()
    }

    /// A workspace of one input with about `bytes` bytes.
    fn of_bytes(bytes: usize) -> Workspace {
        let mut input = Input::default();
        input.codes.reserve(bytes / size_of::<u64>());
        Workspace { inputs: vec![input], ..Workspace::default() }
    }

    #[test]
    fn what_was_kept_is_empty_and_keeps_the_order_of_its_inputs() {
        let mut kept = Kept::new();
        let mut workspace = Workspace::default();
        workspace.inputs.resize_with(2, Input::default);
        let [first, second] = &mut workspace.inputs[..] else { unreachable!() };
        first.chunk.push(b"key", frondb_core::SeqNo(1), frondb_core::MessageKind::Put, b"v");
        first.codes.reserve(100);
        second.codes.reserve(7);
        assert!(keep(&mut kept, workspace));
        assert!(kept.bytes > 0);
        let again = kept.take();
        assert!(again.inputs.iter().all(|i| i.chunk.is_empty() && i.codes.is_empty()));
        let room: Vec<_> = again.inputs.iter().map(|input| input.codes.capacity()).collect();
        assert!(room[0] >= 100 && (7..100).contains(&room[1]), "{room:?}");
        assert_eq!((kept.workspaces.len(), kept.bytes), (0, 0));
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut kept = Kept::new();
        let count = (0..100).filter(|_| keep(&mut kept, of_bytes(INPUT_BYTES_MAX / 3))).count();
        assert!(count >= 10 && kept.bytes <= KEPT_BYTES_MAX, "{count} of {} bytes", kept.bytes);
        kept = Kept::new();
        assert!(keep(&mut kept, of_bytes(2 * INPUT_BYTES_MAX)));
        assert!(kept.bytes < 4096, "a large input was kept: {} bytes", kept.bytes);
        kept = Kept::new();
        (0..2 * KEPT_MAX).for_each(|_| _ = keep(&mut kept, of_bytes(8)));
        assert_eq!(kept.workspaces.len(), KEPT_MAX);
        kept = Kept::new();
        let mut many = Workspace::default();
        many.inputs.resize_with(10 * INPUTS_MAX, Input::default);
        assert!(keep(&mut kept, many));
        assert_eq!(kept.take().inputs.len(), INPUTS_MAX);
    }

    #[test]
    fn no_block_is_held() {
        let mut workspace = of_bytes(8);
        let bytes = frondb_core::mem::Bytes::copy_from(b"a block");
        workspace.inputs[0].chunk.values = frondb_core::chunk::Values::Shared(bytes);
        workspace.empty();
        let values = &workspace.inputs[0].chunk.values;
        assert!(matches!(values, frondb_core::chunk::Values::Owned(_)));
    }
}
