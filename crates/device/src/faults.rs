//! Any device, with errors, torn writes, flipped bits and a full disk by script.
//!
//! A script is text, a rule a line (or between semicolons):
//!
//! ```text
//! fail write wal nth=3 error=EIO            # the third write to a file with "wal" in its name
//! fail sync data nth=1 count=all            # every sync of a data file
//! tear write manifest nth=2 bytes=100       # 100 bytes of the second write arrive, then EIO
//! flip data offset=4096 bit=3               # reads of that byte bring it with bit 3 inverted
//! nospace * after=1048576                   # ENOSPC once so many bytes were written or allocated
//! random any * chance=1/100 seed=7          # one call of a hundred fails, by lot
//! ```
//!
//! | field | meaning | default |
//! |---|---|---|
//! | operation | one of [`Operation`], or `any` | |
//! | file | a part of the name, or `*` for all | |
//! | `nth` | the first matching call that fails, from 1 | 1 |
//! | `count` | how many fail from then on, or `all` | 1 |
//! | `error` | EIO, ENOSPC, EACCES, EMFILE or EROFS | EIO |
//!
//! Each rule counts its own matching calls; the first rule that strikes decides. [`Script`] prints as it
//! is parsed. Thread-safe; with several threads the order of their calls decides who is third.

use std::fmt;
use std::str::FromStr;

use rustix::io::Errno;

use frondb_core::prng::Prng;
use frondb_core::sync::Mutex;
use frondb_core::{Error, Result};

use crate::device::SharedDevice;
use crate::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};

/// The errors a rule can ask for, by name.
const ERRNOS: [(&str, Errno); 5] = [
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("EACCES", Errno::ACCESS),
    ("EMFILE", Errno::MFILE),
    ("EROFS", Errno::ROFS),
];

/// Which calls a rule is about.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    /// None for any.
    operation: Option<Operation>,
    /// A part of the name; empty for all.
    file: String,
}

impl Target {
    fn matches(&self, operation: Operation, name: &str) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation) && name.contains(&self.file)
    }
}

/// What a rule does.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Effect {
    Fail { nth: u64, count: u64, error: Errno },
    Tear { nth: u64, count: u64, bytes: usize, error: Errno },
    Flip { offset: u64, bit: u32 },
    NoSpace { after: u64 },
    Random { num: u64, den: u64, seed: u64, error: Errno },
}

/// A line of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    target: Target,
    effect: Effect,
}

/// Rules, in the order in which they are asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script(Vec<Rule>);

/// A device that fails by a script.
pub type FaultDevice = Intercepted<Faults>;

/// The script of a [`FaultDevice`] and how far it has come.
pub struct Faults(Mutex<State>);

#[derive(Default)]
struct State {
    rules: Vec<Running>,
    struck: u64,
}

/// A rule with its counters.
struct Running {
    rule: Rule,
    /// Matching calls so far; bytes taken so far for `nospace`.
    seen: u64,
    prng: Prng,
}

impl FaultDevice {
    /// `inner` with the faults of `script`.
    #[must_use]
    pub fn new(inner: SharedDevice, script: &Script) -> Self {
        let device = Self::wrap(inner, Faults(Mutex::default()));
        device.set_script(script);
        device
    }

    /// Replaces the script; its counters start anew. An empty one heals the device.
    pub fn set_script(&self, script: &Script) {
        let start = |rule: &Rule| {
            let seed = if let Effect::Random { seed, .. } = rule.effect { seed } else { 0 };
            Running { rule: rule.clone(), seen: 0, prng: Prng::new(seed) }
        };
        self.interceptor().0.lock().rules = script.0.iter().map(start).collect();
    }

    /// How many calls met a fault so far.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.interceptor().0.lock().struck
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({} rules)", self.0.lock().rules.len())
    }
}

impl Running {
    /// Counts a matching call; the errno and, for a torn write, how much of it arrives.
    fn strike(&mut self, call: &Call<'_>) -> Option<(Errno, Option<usize>)> {
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
            Effect::Flip { .. } => None,
        }
    }
}

impl Interceptor for Faults {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let mut state = self.0.lock();
        // Every rule counts the call, also behind one that strikes.
        let struck: Vec<_> = state.rules.iter_mut().map(|rule| rule.strike(call)).collect();
        let Some((errno, torn)) = struck.into_iter().flatten().next() else {
            return Verdict::Pass;
        };
        state.struck += 1;
        let error = Error::io(call.operation.name(), call.name, &errno.into());
        match torn {
            Some(bytes) => Verdict::Tear(bytes, error),
            None => Verdict::Fail(error),
        }
    }

    fn after_read(&self, name: &str, start: u64, bytes: &mut [u8]) {
        let mut state = self.0.lock();
        let mut flipped = 0;
        for Running { rule, .. } in &state.rules {
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
        state.struck += flipped;
    }
}

impl FromStr for Script {
    type Err = Error;

    /// # Errors
    /// `Invalid` naming the rule that is wrong and why.
    fn from_str(text: &str) -> Result<Self> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
        let rules = lines.flat_map(|line| line.split(';')).map(str::trim);
        rules.filter(|rule| !rule.is_empty()).map(str::parse).collect::<Result<_>>().map(Self)
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse_rule(text).map_err(|reason| Error::invalid(format!("fault rule {text:?}: {reason}")))
    }
}

/// The words of a rule that are still to be understood.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        if self.0.is_empty() { Err(format!("{what} is missing")) } else { Ok(self.0.remove(0)) }
    }

    fn operation(&mut self) -> Result<Option<Operation>, String> {
        match self.next("the operation")? {
            "any" => Ok(None),
            word => {
                Operation::parse(word).map(Some).ok_or_else(|| format!("no operation {word:?}"))
            }
        }
    }

    fn file(&mut self) -> Result<String, String> {
        let word = self.next("the file")?;
        Ok(if word == "*" { String::new() } else { word.to_owned() })
    }

    /// The value of `key=value`, if it is there.
    fn option(&mut self, key: &str) -> Option<&'a str> {
        let value = |word: &&'a str| word.strip_prefix(key)?.strip_prefix('=');
        let index = self.0.iter().position(|word| value(word).is_some())?;
        value(&self.0.remove(index))
    }

    fn number<T: FromStr>(&mut self, key: &str, default: Option<T>) -> Result<T, String> {
        match (self.option(key), default) {
            (Some(text), _) => text.parse().map_err(|_| format!("{key}={text} is no number")),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("{key}= is missing")),
        }
    }

    fn count(&mut self) -> Result<u64, String> {
        if self.0.contains(&"count=all") {
            self.option("count");
            return Ok(u64::MAX);
        }
        self.number("count", Some(1))
    }

    fn error(&mut self) -> Result<Errno, String> {
        let name = self.option("error").unwrap_or("EIO");
        let known = ERRNOS.iter().find(|(known, _)| *known == name);
        known.map(|(_, errno)| *errno).ok_or_else(|| format!("no error {name:?}"))
    }

    fn chance(&mut self) -> Result<(u64, u64), String> {
        let text = self.option("chance").ok_or("chance= is missing")?;
        let parts = text.split_once('/').and_then(|(num, den)| {
            Some((num.parse::<u64>().ok()?, den.parse::<u64>().ok().filter(|den| *den > 0)?))
        });
        parts.ok_or_else(|| format!("chance={text} is not like 1/100"))
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut words = Words(text.split_whitespace().collect());
    let verb = words.next("the verb")?;
    let operation = match verb {
        "fail" | "tear" | "random" => words.operation()?,
        "flip" => Some(Operation::Read),
        "nospace" => None,
        _ => return Err(format!("no verb {verb:?}")),
    };
    if verb == "tear" && operation != Some(Operation::Write) {
        return Err("only a write can be torn".to_owned());
    }
    let target = Target { operation, file: words.file()? };
    let effect = match verb {
        "fail" => Effect::Fail {
            nth: words.number("nth", Some(1))?,
            count: words.count()?,
            error: words.error()?,
        },
        "tear" => Effect::Tear {
            nth: words.number("nth", Some(1))?,
            count: words.count()?,
            bytes: words.number("bytes", None)?,
            error: words.error()?,
        },
        "flip" => Effect::Flip {
            offset: words.number("offset", None)?,
            bit: words.number("bit", Some(0)).and_then(|bit| match bit {
                0..8 => Ok(bit),
                _ => Err(format!("bit={bit} is not in 0..8")),
            })?,
        },
        "nospace" => Effect::NoSpace { after: words.number("after", Some(0))? },
        _ => {
            let (num, den) = words.chance()?;
            Effect::Random { num, den, seed: words.number("seed", Some(0))?, error: words.error()? }
        }
    };
    match words.0.first() {
        Some(word) => Err(format!("{word:?} has no meaning here")),
        None => Ok(Rule { target, effect }),
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.target.file.is_empty() { "*" } else { &self.target.file };
        let operation = self.target.operation.map_or("any", Operation::name);
        let name = |errno: &Errno| {
            ERRNOS.iter().find(|(_, known)| known == errno).map_or("EIO", |(name, _)| name)
        };
        let count =
            |count: u64| if count == u64::MAX { "all".to_owned() } else { count.to_string() };
        match &self.effect {
            Effect::Fail { nth, count: times, error } => {
                let (count, error) = (count(*times), name(error));
                write!(f, "fail {operation} {file} nth={nth} count={count} error={error}")
            }
            Effect::Tear { nth, count: times, bytes, error } => {
                let (count, error) = (count(*times), name(error));
                write!(f, "tear write {file} nth={nth} count={count} bytes={bytes} error={error}")
            }
            Effect::Flip { offset, bit } => write!(f, "flip {file} offset={offset} bit={bit}"),
            Effect::NoSpace { after } => write!(f, "nospace {file} after={after}"),
            Effect::Random { num, den, seed, error } => {
                let error = name(error);
                write!(f, "random {operation} {file} chance={num}/{den} seed={seed} error={error}")
            }
        }
    }
}
