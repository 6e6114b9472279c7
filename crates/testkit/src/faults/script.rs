//! The text of fault scripts: rules as values, parsed and printed. [`faults`](super) explains their
//! meaning.

use std::fmt;
use std::str::FromStr;

use rustix::io::Errno;

use frondb_core::{Error, Result};
use frondb_device::intercept::Operation;

use crate::operation;

/// The errors that a rule can return, by name.
const ERRNOS: [(&str, Errno); 5] = [
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("EACCES", Errno::ACCESS),
    ("EMFILE", Errno::MFILE),
    ("EROFS", Errno::ROFS),
];

/// The calls that a rule matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// `None` matches any operation.
    pub(super) operation: Option<Operation>,
    /// A part of the name; empty for all.
    pub(super) file: String,
}

impl Target {
    pub(super) fn matches(&self, operation: Operation, name: &str) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation) && name.contains(&self.file)
    }
}

/// The effect of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Fail { nth: u64, count: u64, error: Errno },
    Tear { nth: u64, count: u64, bytes: usize, error: Errno },
    Flip { offset: u64, bit: u32 },
    Unreadable { offset: u64 },
    NoSpace { after: u64 },
    Random { num: u64, den: u64, seed: u64, error: Errno },
}

/// A line of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    pub(super) target: Target,
    pub(super) effect: Effect,
}

/// Rules, in order of precedence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script(pub(super) Vec<Rule>);

impl FromStr for Script {
    type Err = Error;

    /// # Errors
    /// `Invalid`, naming the wrong rule and the reason.
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

/// The words of a rule that are not parsed yet.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        if self.0.is_empty() { Err(format!("{what} is missing")) } else { Ok(self.0.remove(0)) }
    }

    fn operation(&mut self) -> Result<Option<Operation>, String> {
        match self.next("the operation")? {
            "any" => Ok(None),
            word => operation::parse(word)
                .map(Some)
                .ok_or_else(|| format!("unknown operation {word:?}")),
        }
    }

    fn file(&mut self) -> Result<String, String> {
        let word = self.next("the file")?;
        Ok(if word == "*" { String::new() } else { word.to_owned() })
    }

    /// Removes the word `key=value`, if present, and returns the value.
    fn option(&mut self, key: &str) -> Option<&'a str> {
        let value = |word: &&'a str| word.strip_prefix(key)?.strip_prefix('=');
        let index = self.0.iter().position(|word| value(word).is_some())?;
        value(&self.0.remove(index))
    }

    fn number<T: FromStr>(&mut self, key: &str, default: Option<T>) -> Result<T, String> {
        match (self.option(key), default) {
            (Some(text), _) => text.parse().map_err(|_| format!("{key}={text} is not a number")),
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
        known.map(|(_, errno)| *errno).ok_or_else(|| format!("unknown error {name:?}"))
    }

    fn chance(&mut self) -> Result<(u64, u64), String> {
        let text = self.option("chance").ok_or("chance= is missing")?;
        let parts = text.split_once('/').and_then(|(num, den)| {
            Some((num.parse::<u64>().ok()?, den.parse::<u64>().ok().filter(|den| *den > 0)?))
        });
        parts.ok_or_else(|| format!("chance={text} is not a fraction such as 1/100"))
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut words = Words(text.split_whitespace().collect());
    let verb = words.next("the verb")?;
    let operation = match verb {
        "fail" | "tear" | "random" => words.operation()?,
        "flip" => Some(Operation::Read),
        "nospace" | "unreadable" => None,
        _ => return Err(format!("unknown verb {verb:?}")),
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
        "unreadable" => Effect::Unreadable { offset: words.number("offset", None)? },
        "nospace" => Effect::NoSpace { after: words.number("after", Some(0))? },
        _ => {
            let (num, den) = words.chance()?;
            Effect::Random { num, den, seed: words.number("seed", Some(0))?, error: words.error()? }
        }
    };
    match words.0.first() {
        Some(word) => Err(format!("unexpected word {word:?}")),
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
        let operation = self.target.operation.map_or("any", operation::name);
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
            Effect::Unreadable { offset } => write!(f, "unreadable {file} offset={offset}"),
            Effect::NoSpace { after } => write!(f, "nospace {file} after={after}"),
            Effect::Random { num, den, seed, error } => {
                let error = name(error);
                write!(f, "random {operation} {file} chance={num}/{den} seed={seed} error={error}")
            }
        }
    }
}
