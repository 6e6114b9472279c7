//! The transaction that wrote each version of a list, and anomalies of a single read.
//!
//! The final lists give the order of versions: a read returns a prefix of the list's final
//! contents, followed by the reader's own appends.

use std::collections::BTreeMap;

use super::anomaly::Anomaly;
use super::history::{History, KeyNumber, Replayed};

/// The transaction of an append. `kept`: whether the append was committed. `is_last`: whether it is
/// the transaction's last append to its list, without appends that were rolled back.
#[derive(Clone, Copy, Debug)]
struct Writer {
    transaction: usize,
    kept: bool,
    is_last: bool,
}

/// A read of a list. `length`: the number of values of other transactions that it returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VersionRead {
    pub(crate) transaction: usize,
    pub(crate) key: KeyNumber,
    pub(crate) length: usize,
}

/// The versions of all lists and the reads of committed transactions.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// For each list, the transactions that made its versions, in order.
    pub(crate) writers: BTreeMap<KeyNumber, Vec<usize>>,
    pub(crate) reads: Vec<VersionRead>,
}

/// How repeated reads of one list by one transaction must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeated {
    /// All reads see the same version of other transactions' appends.
    Same,
    /// Later reads may see more.
    Newer,
}

/// Finds the order of versions, and adds every anomaly except cycles to `anomalies`.
pub(crate) fn order_of(
    history: &History,
    repeated: Repeated,
    anomalies: &mut Vec<Anomaly>,
) -> Order {
    let writers = writers_of(history, anomalies);
    check_last(history, &writers, anomalies);
    let mut reader = Reader { history, writers: &writers, repeated, anomalies, reads: Vec::new() };
    (0..history.transactions.len()).for_each(|number| reader.transaction(number));
    let reads = reader.reads;
    let writer_of = |value: &u64| writers.get(value).map(|writer| writer.transaction);
    let lists = history.last.iter();
    let writers =
        lists.map(|(key, list)| (*key, list.iter().filter_map(writer_of).collect())).collect();
    Order { writers, reads }
}

fn writers_of(history: &History, anomalies: &mut Vec<Anomaly>) -> BTreeMap<u64, Writer> {
    let mut writers = BTreeMap::new();
    for (transaction, recorded) in history.transactions.iter().enumerate() {
        let mut twice = Vec::new();
        let kept = recorded.replay(|step| {
            if let Replayed::Append(value) = step {
                let writer = Writer { transaction, kept: false, is_last: false };
                if writers.insert(value, writer).is_some() {
                    twice.push(value);
                }
            }
        });
        anomalies.extend(twice.into_iter().map(|value| Anomaly::Duplicate { value }));
        let mut later = Vec::new();
        for (key, value) in kept.iter().rev() {
            if let Some(writer) = writers.get_mut(value) {
                writer.kept = recorded.is_committed();
                writer.is_last = !later.contains(key);
                later.push(*key);
            }
        }
    }
    writers
}

/// Compares the final lists with the committed appends.
fn check_last(history: &History, writers: &BTreeMap<u64, Writer>, anomalies: &mut Vec<Anomaly>) {
    let mut seen = BTreeMap::new();
    for (key, list) in &history.last {
        for value in list {
            if seen.insert(*value, *key).is_some() {
                anomalies.push(Anomaly::Duplicate { value: *value });
            }
            if !writers.get(value).is_some_and(|writer| writer.kept) {
                anomalies.push(Anomaly::NeverCommitted { key: *key, value: *value });
            }
        }
    }
    for (transaction, recorded) in history.transactions.iter().enumerate() {
        if !recorded.is_committed() {
            continue;
        }
        for (key, value) in recorded.replay(|_| {}) {
            if seen.get(&value) != Some(&key) {
                anomalies.push(Anomaly::LostAppend { transaction, key, value });
            }
        }
    }
}

struct Reader<'a> {
    history: &'a History,
    writers: &'a BTreeMap<u64, Writer>,
    repeated: Repeated,
    anomalies: &'a mut Vec<Anomaly>,
    reads: Vec<VersionRead>,
}

impl Reader<'_> {
    fn transaction(&mut self, transaction: usize) {
        let history = self.history;
        let recorded = &history.transactions[transaction];
        let mut seen: BTreeMap<KeyNumber, usize> = BTreeMap::new();
        recorded.replay(|step| {
            let Replayed::Read { key, values, own } = step else { return };
            let Some(others) = values.strip_suffix(own) else {
                self.anomalies.push(Anomaly::OwnAppendMissing { transaction, key });
                return;
            };
            if !self.read(transaction, key, others) {
                return;
            }
            let length = others.len();
            let agrees = seen.insert(key, length).is_none_or(|before| match self.repeated {
                Repeated::Same => length == before,
                Repeated::Newer => length >= before,
            });
            if !agrees {
                self.anomalies.push(Anomaly::NotRepeatable { transaction, key });
            }
            // The reads of a transaction that was rolled back create no edges, but they must not
            // have seen a state that the list never had.
            if recorded.is_committed() {
                self.reads.push(VersionRead { transaction, key, length });
            }
        });
    }

    /// Checks that the values of other transactions in a read are a version of the list.
    fn read(&mut self, transaction: usize, key: KeyNumber, others: &[u64]) -> bool {
        let writer_of = |value: &u64| self.writers.get(value).copied();
        for value in others {
            let writer = writer_of(value);
            let rolled_back = writer.is_none_or(|writer| !writer.kept);
            if rolled_back || writer.is_some_and(|writer| writer.transaction == transaction) {
                self.anomalies.push(Anomaly::G1a { transaction, key, value: *value });
                return false;
            }
        }
        if let Some(value) = others.last()
            && !writer_of(value).is_some_and(|writer| writer.is_last)
        {
            self.anomalies.push(Anomaly::G1b { transaction, key, value: *value });
            return false;
        }
        let list = self.history.last.get(&key).map_or(&[][..], |list| list);
        if !list.starts_with(others) {
            self.anomalies.push(Anomaly::NoVersion { transaction, key });
            return false;
        }
        true
    }
}
