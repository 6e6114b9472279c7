//! The names of operations in scripts of faults and in traces.

use frondb_device::intercept::Operation;

const ALL: [Operation; 14] = [
    Operation::Open,
    Operation::Exists,
    Operation::List,
    Operation::Remove,
    Operation::Rename,
    Operation::CreateDir,
    Operation::SyncDir,
    Operation::Lock,
    Operation::Read,
    Operation::Write,
    Operation::Sync,
    Operation::SetLen,
    Operation::Allocate,
    Operation::Punch,
];

/// Returns the name of an operation.
pub(crate) fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Open => "open",
        Operation::Exists => "exists",
        Operation::List => "list",
        Operation::Remove => "remove",
        Operation::Rename => "rename",
        Operation::CreateDir => "create_dir",
        Operation::SyncDir => "sync_dir",
        Operation::Lock => "lock",
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Sync => "sync",
        Operation::SetLen => "set_len",
        Operation::Allocate => "allocate",
        Operation::Punch => "punch",
    }
}

/// Returns the operation with this name.
pub(crate) fn parse(text: &str) -> Option<Operation> {
    ALL.into_iter().find(|operation| name(*operation) == text)
}

/// Returns whether an operation changes the device or makes changes durable. `false` for an open,
/// although it may create the file.
pub(crate) fn mutates(operation: Operation) -> bool {
    use Operation::{Exists, List, Lock, Open, Read};
    !matches!(operation, Open | Exists | List | Lock | Read)
}
