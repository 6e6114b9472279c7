//! A device wrapper that records its calls, one per line, for tests that expect a sequence of
//! calls.
//!
//! ```text
//! open wal/000001.wal create
//! write wal/000001.wal 0+512
//! sync wal/000001.wal
//! rename manifest.new manifest
//! sync_dir /
//! ```
//! Lines are in the order in which the calls began.

use std::fmt;
use std::fmt::Write as _;

use frondb_core::sync::Mutex;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use frondb_device::{OpenOptions, SharedDevice};

use crate::operation::{mutates, name as name_of};

/// A device that records its calls.
pub type TraceDevice = Intercepted<Trace>;

/// The calls that are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// Calls that change something or make it durable.
    #[default]
    Mutations,
    /// All calls.
    All,
}

/// The recorded lines.
pub struct Trace {
    detail: Detail,
    lines: Mutex<String>,
}

impl Trace {
    /// Wraps `inner`, recording the calls of `detail`.
    #[must_use]
    pub fn over(inner: SharedDevice, detail: Detail) -> TraceDevice {
        TraceDevice::wrap(inner, Self { detail, lines: Mutex::default() })
    }

    /// Returns the lines since the last call of this method.
    #[must_use]
    pub fn take(&self) -> String {
        std::mem::take(&mut *self.lines.lock())
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({:?})", self.detail)
    }
}

impl Interceptor for Trace {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let makes = call.options.create || call.options.create_new;
        if self.detail == Detail::All || mutates(call.operation) || makes {
            let mut lines = self.lines.lock();
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{}", Line(call));
        }
        Verdict::Pass
    }
}

/// A call as a line of text.
struct Line<'a>(&'a Call<'a>);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { operation, name, to, offset, len, options } = *self.0;
        let name = if name.is_empty() { "/" } else { name };
        write!(f, "{} {name}", name_of(operation))?;
        match operation {
            Operation::Open => {
                let OpenOptions { create, create_new, write, direct } = options;
                let flags = [(create, "create"), (create_new, "create_new"), (direct, "direct")];
                for (_, flag) in flags.iter().filter(|(set, _)| *set) {
                    write!(f, " {flag}")?;
                }
                if write && !create && !create_new { f.write_str(" write") } else { Ok(()) }
            }
            Operation::Rename => write!(f, " {to}"),
            Operation::Read | Operation::Write | Operation::Allocate | Operation::Punch => {
                write!(f, " {offset}+{len}")
            }
            Operation::SetLen => write!(f, " {offset}"),
            Operation::Exists
            | Operation::List
            | Operation::Remove
            | Operation::CreateDir
            | Operation::SyncDir
            | Operation::Lock
            | Operation::Sync => Ok(()),
        }
    }
}
