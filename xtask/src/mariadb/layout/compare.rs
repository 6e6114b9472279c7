//! The differences of two layouts, and the choice of the differences that concern the plugin.

use std::collections::BTreeSet;

use super::debug_info::{Class, Layouts, Part, PartName};

/// A difference: a part of a class that is at another place in the server, has another size there
/// or is missing there, a class of another size, or a constant with another value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drift {
    /// Whether the part is a virtual function.
    pub(super) is_called: bool,
    /// The class; empty for a constant.
    pub(super) class: String,
    /// The name of the part or constant in C++ code; empty for the size of a class.
    pub(super) name: String,
    /// The difference as text.
    pub(super) sentence: String,
}

impl Drift {
    /// Formats differences as lines, after the text `of`, which says what was compared.
    pub(super) fn text(drifts: &[Self], of: &str) -> String {
        let line = |d: &Self| format!("{}\t{}\t{}\t{}\n", d.is_called, d.class, d.name, d.sentence);
        format!("{of}\n\n{}", drifts.iter().map(line).collect::<String>())
    }

    /// Parses the result of [`text`](Self::text); `None` if it does not begin with `of`.
    pub(super) fn list(text: &str, of: &str) -> Option<Vec<Self>> {
        let lines = text.strip_prefix(of)?.strip_prefix("\n\n")?.lines();
        let drift = |line: &str| {
            let mut fields = line.splitn(4, '\t').map(str::to_owned);
            let is_called = fields.next()? == "true";
            let (class, name, sentence) = (fields.next()?, fields.next()?, fields.next()?);
            Some(Self { is_called, class, name, sentence })
        };
        lines.map(drift).collect()
    }
}

/// Returns the number of classes and constants that both layouts have, and their differences.
pub(super) fn compare(headers: &Layouts, server: &Layouts) -> (usize, Vec<Drift>) {
    let mut drifts = Vec::new();
    let mut both = 0;
    for (name, class) in &headers.classes {
        if let Some(theirs) = server.classes.get(name) {
            both += 1;
            compare_class(name, class, theirs, &mut drifts);
        }
    }
    for (name, value) in &headers.constants {
        let Some(theirs) = server.constants.get(name) else { continue };
        both += 1;
        if theirs != value {
            drifts.push(Drift {
                is_called: false,
                class: String::new(),
                name: name.rsplit("::").next().unwrap_or(name).to_owned(),
                sentence: format!("{name} is {value} in the headers and {theirs} in the server"),
            });
        }
    }
    (both, drifts)
}

fn compare_class(name: &str, ours: &Class, theirs: &Class, drifts: &mut Vec<Drift>) {
    let mut add = |is_called: bool, part: &str, sentence: String| {
        drifts.push(Drift { is_called, class: name.to_owned(), name: part.to_owned(), sentence });
    };
    for (part, place) in &ours.parts {
        let (is_called, plain, place_of): (bool, &str, fn(&Part) -> String) = match part {
            PartName::Base(part) | PartName::Member(part) => (false, part, bytes_of),
            PartName::Virtual { name, .. } => (true, name, slot_of),
        };
        match theirs.parts.get(part) {
            None => add(is_called, plain, format!("{name}::{plain} is not in the server")),
            Some(found) if found.at != place.at || differ(found.bits, place.bits) => {
                let (here, there) = (place_of(place), place_of(found));
                add(
                    is_called,
                    plain,
                    format!("{name}::{plain} is {here} in the headers and {there} in the server"),
                );
            }
            Some(_) => {}
        }
    }
    if ours.bytes != theirs.bytes {
        let (here, there) = (ours.bytes, theirs.bytes);
        add(false, "", format!("{name} has {here} bytes in the headers and {there} in the server"));
    }
}

fn differ(a: Option<u64>, b: Option<u64>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

fn bytes_of(part: &Part) -> String {
    let of = part.bits.map_or(String::new(), |bits| format!(" ({} bits)", bits));
    format!("at byte {}{of}", part.at / 8)
}

fn slot_of(part: &Part) -> String {
    format!("virtual function {}", part.at)
}

/// The names that the plugin uses, in its own source and in inline functions of the server's
/// headers that were compiled into the plugin.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) identifiers: BTreeSet<String>,
    /// The identifiers of member functions that are called.
    pub(super) called: BTreeSet<String>,
    pub(super) embodied: BTreeSet<String>,
}

impl Used {
    /// Returns whether the plugin may depend on the part that differs. C++ code names a member
    /// without its class, so every class with a member of that name counts. A class of which the
    /// plugin makes objects, or from which it derives (`embodied`), must have no difference at all.
    pub(super) fn concerns(&self, drift: &Drift) -> bool {
        let names = if drift.is_called { &self.called } else { &self.identifiers };
        // If the plugin does not name a class, it can call the class's virtual functions only
        // through a base class, which is compared too.
        let is_named = !drift.is_called || self.identifiers.contains(&drift.class);
        self.embodied.contains(&drift.class)
            || (is_named && names.contains(drift.name.trim_start_matches('~')))
    }
}
