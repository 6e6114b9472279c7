//! A device wrapper that injects errors, torn writes, flipped bits and a full disk according to a
//! script.
//!
//! A script is text, one rule per line (or separated by semicolons):
//!
//! ```text
//! fail write wal nth=3 error=EIO            # the third write to a file with "wal" in its name
//! fail sync data nth=1 count=all            # every sync of a data file
//! tear write manifest nth=2 bytes=100       # 100 bytes of the second write arrive, then EIO
//! flip data offset=4096 bit=3               # reads of that byte return it with bit 3 inverted
//! unreadable data offset=4096               # reads of that byte fail with EIO until it is written
//! nospace * after=1048576                   # ENOSPC once so many bytes were written or allocated
//! random any * chance=1/100 seed=7          # one call in a hundred fails, at random
//! ```
//!
//! | field | meaning | default |
//! |---|---|---|
//! | operation | one of [`Operation`], or `any` | |
//! | file | a part of the name, or `*` for all | |
//! | `nth` | the first matching call that fails, from 1 | 1 |
//! | `count` | number of calls that fail, beginning with that one, or `all` | 1 |
//! | `error` | EIO, ENOSPC, EACCES, EMFILE or EROFS | EIO |
//!
//! Each rule counts its own matching calls; the first rule that applies decides. A [`Script`] is
//! printed as a text that parses to the same script. Thread-safe; if several threads make calls,
//! their order decides which call is the `nth`.

mod script;

use std::fmt;

use rustix::io::Errno;

use frondb_core::Error;
use frondb_core::prng::Prng;
use frondb_core::sync::Mutex;
use frondb_device::SharedDevice;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use script::Effect;

use crate::operation;

pub use script::{Rule, Script};

/// A device that fails according to a script.
pub type FaultDevice = Intercepted<Faults>;

/// The script of a [`FaultDevice`] and the counters of its rules.
pub struct Faults(Mutex<FaultState>);

#[derive(Default)]
struct FaultState {
    rules: Vec<ActiveRule>,
    injected: u64,
}

/// A rule with its counters.
struct ActiveRule {
    rule: Rule,
    /// Matching calls so far; for `nospace`, bytes written or allocated so far; for `unreadable`,
    /// writes of the byte.
    seen: u64,
    prng: Prng,
}

impl Faults {
    /// Wraps `inner` with the faults of `script`.
    #[must_use]
    pub fn over(inner: SharedDevice, script: &Script) -> FaultDevice {
        let device = FaultDevice::wrap(inner, Self(Mutex::default()));
        device.set_script(script);
        device
    }

    /// Replaces the script and resets its counters. An empty script heals the device.
    pub fn set_script(&self, script: &Script) {
        let start = |rule: &Rule| {
            let seed = if let Effect::Random { seed, .. } = rule.effect { seed } else { 0 };
            ActiveRule { rule: rule.clone(), seen: 0, prng: Prng::new(seed) }
        };
        self.0.lock().rules = script.0.iter().map(start).collect();
    }

    /// Returns the number of faults injected so far: calls that failed or were torn, and bits that
    /// were flipped.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.0.lock().injected
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({} rules)", self.0.lock().rules.len())
    }
}

impl ActiveRule {
    /// Counts a matching call. If the rule applies, returns the errno and, for a torn write, the
    /// number of bytes that are written.
    fn apply(&mut self, call: &Call<'_>) -> Option<(Errno, Option<usize>)> {
        if !self.rule.target.matches(call.operation, call.name) {
            return None;
        }
        let within = |seen: u64, nth: u64, count: u64| seen >= nth && seen - nth < count;
        match self.rule.effect {
            Effect::Fail { nth, count, error } => {
                self.seen += 1;
                within(self.seen, nth, count).then_some((error, None))
            }
            Effect::Tear { nth, count, bytes, error } => {
                self.seen += 1;
                within(self.seen, nth, count).then_some((error, Some(bytes)))
            }
            Effect::NoSpace { after } => {
                let takes = matches!(call.operation, Operation::Write | Operation::Allocate);
                if !takes {
                    return None;
                }
                let total = self.seen.saturating_add(call.len);
                if total > after {
                    return Some((Errno::NOSPC, None));
                }
                self.seen = total;
                None
            }
            Effect::Random { num, den, error, .. } => {
                self.prng.chance(num, den).then_some((error, None))
            }
            Effect::Unreadable { offset } => {
                let has_it = offset.checked_sub(call.offset).is_some_and(|at| at < call.len);
                // A disk replaces a bad sector when the sector is written.
                self.seen += u64::from(has_it && call.operation == Operation::Write);
                let is_bad = has_it && self.seen == 0 && call.operation == Operation::Read;
                is_bad.then_some((Errno::IO, None))
            }
            Effect::Flip { .. } => None,
        }
    }
}

impl Interceptor for Faults {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let mut state = self.0.lock();
        // Every rule counts the call, even after a rule that applied.
        let outcomes: Vec<_> = state.rules.iter_mut().map(|rule| rule.apply(call)).collect();
        let Some((errno, torn)) = outcomes.into_iter().flatten().next() else {
            return Verdict::Pass;
        };
        state.injected += 1;
        let error = Error::io(operation::name(call.operation), call.name, &errno.into());
        match torn {
            Some(bytes) => Verdict::Tear(bytes, error),
            None => Verdict::Fail(error),
        }
    }

    fn after_read(&self, name: &str, start: u64, bytes: &mut [u8]) {
        let mut state = self.0.lock();
        let mut flipped = 0;
        for ActiveRule { rule, .. } in &state.rules {
            let Effect::Flip { offset, bit } = rule.effect else { continue };
            if !rule.target.matches(Operation::Read, name) {
                continue;
            }
            let index = offset.checked_sub(start).and_then(|index| usize::try_from(index).ok());
            if let Some(byte) = index.and_then(|index| bytes.get_mut(index)) {
                *byte ^= 1 << bit;
                flipped += 1;
            }
        }
        state.injected += flipped;
    }
}
