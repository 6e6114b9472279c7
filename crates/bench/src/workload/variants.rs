//! The variants of each workload: which cases it runs, and in which order.

use super::spec::FIT;
use super::{Variant, Workload, memory, reads};
use crate::engine::{Codec, Durability};
use crate::rows::DataKind;

impl Workload {
    /// Returns the variants of the workload, in the order in which they run. `codec` is the codec
    /// of workloads that do not compare codecs.
    #[must_use]
    pub fn variants(self, codec: Codec) -> Vec<Variant> {
        let plain = Variant::plain(codec);
        match self {
            Self::Compression => DataKind::ALL
                .into_iter()
                .flat_map(|kind| Codec::ALL.map(|codec| Variant::of_data(kind, codec)))
                .collect(),
            Self::Durable => {
                let cases = [(Durability::Sync, "sync"), (Durability::NoSync, "no sync")];
                let case = |(durability, name): (Durability, &str), rows: u64| Variant {
                    name: format!("{rows} a commit, {name}"),
                    durability,
                    batch_rows: Some(rows),
                    ..plain.clone()
                };
                cases
                    .into_iter()
                    .flat_map(|sync| [1, 1_000, 10_000].map(|rows| case(sync, rows)))
                    .collect()
            }
            Self::Fsync => {
                let synced = Variant { durability: Durability::Sync, ..plain };
                let fit = Variant { name: FIT.to_owned(), ..synced.clone() };
                let beside = |threads: u64| Variant {
                    name: format!("{threads} thread{}", if threads == 1 { "" } else { "s" }),
                    batch_rows: Some(1),
                    threads,
                    ..synced.clone()
                };
                std::iter::once(fit).chain([1, 4, 16, 64].map(beside)).collect()
            }
            Self::Reads => reads::RATIOS.map(|ratio| Variant::of_ratio(codec, ratio)).to_vec(),
            Self::Memory => memory::names()
                .map(|name| Variant { name: name.to_owned(), ..plain.clone() })
                .collect(),
            _ => vec![plain],
        }
    }
}

impl Variant {
    /// Returns the only variant of a workload.
    fn plain(codec: Codec) -> Self {
        Self {
            name: String::new(),
            codec,
            durability: Durability::NoSync,
            batch_rows: None,
            threads: 1,
            data_ratio: None,
            data: None,
        }
    }

    /// Returns the variant of [`Workload::Compression`] with this kind of data and this codec.
    #[must_use]
    pub fn of_data(kind: DataKind, codec: Codec) -> Self {
        let name = format!("{} {codec}", kind.name());
        Self { name, data: Some(kind), ..Self::plain(codec) }
    }

    /// Returns the variant of [`Workload::Reads`] whose data is `ratio` times the memory.
    #[must_use]
    pub fn of_ratio(codec: Codec, ratio: u64) -> Self {
        Self { name: reads::name(ratio), data_ratio: Some(ratio), ..Self::plain(codec) }
    }
}
