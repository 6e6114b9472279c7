//! The engines and their settings. The settings are those that the engines' makers recommend for
//! tables larger than memory. All engines have the same memory for data and the same durability:
//! the log is written at a commit and synced once a second.

use std::fs;
use std::path::Path;

use clap::ValueEnum;
use frondb_bench::measure::disk::allocated_bytes;
use frondb_bench::report::Measurement;
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{Engine, Options};

/// The database of the benchmark's tables.
pub(crate) const DATABASE: &str = "bench";

/// The library of MyRocks in the server's plugin directory.
const MYROCKS_FILE: &str = "/usr/lib/mysql/plugin/ha_rocksdb.so";

/// An engine to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Contender {
    /// FronDB
    Frondb,
    /// InnoDB, the server's own engine
    Innodb,
    /// MyRocks, the engine on RocksDB
    Myrocks,
}

/// MyRocks' settings as its makers recommend them for inserts: level sizes computed from the last
/// level, Bloom filters, lz4, and zstd at the bottom. Indexes and filters are partitioned.
/// Otherwise each insert, which looks up its primary key, would read the whole filter of a file
/// again, because such a filter is larger than half a shard of a cache of this size.
const MYROCKS_FAMILY: &str = "rocksdb-default-cf-options=write_buffer_size=32m;max_write_buffer_number=4;\
    target_file_size_base=32m;max_bytes_for_level_base=128m;level_compaction_dynamic_level_bytes=true;\
    compression=kLZ4Compression;bottommost_compression=kZSTD;optimize_filters_for_hits=true;\
    block_based_table_factory={cache_index_and_filter_blocks=1;filter_policy=bloomfilter:10:false;\
    whole_key_filtering=1;block_size=16384;index_type=kTwoLevelIndexSearch;partition_filters=1;\
    pin_top_level_index_and_filter=1}";

impl Contender {
    /// Whether the server can load MyRocks.
    pub(crate) fn is_myrocks_installed() -> bool {
        Path::new(MYROCKS_FILE).exists()
    }

    /// The engine's name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Frondb => "frondb",
            Self::Innodb => "innodb",
            Self::Myrocks => "myrocks",
        }
    }

    /// Returns the measurement with the names of the engine and of the workload.
    pub(crate) fn named(self, m: Measurement, workload: &str) -> Measurement {
        let (engine, workload) = (self.name().to_owned(), workload.to_owned());
        Measurement { engine, workload, settings: self.describe(), ..m }
    }

    /// The engine in the harness.
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Frondb => Engine::FronDb,
            Self::Innodb => Engine::InnoDb,
            Self::Myrocks => Engine::MyRocks,
        }
    }

    /// The engine's settings, without those of its memory.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Frondb => &["frondb-fsync-log-period=1000"],
            Self::Innodb => &[
                "innodb-flush-log-at-trx-commit=2",
                "innodb-flush-method=O_DIRECT",
                "innodb-log-file-size=512M",
                "innodb-io-capacity=2000",
                "innodb-io-capacity-max=20000",
            ],
            Self::Myrocks => &[
                "rocksdb-flush-log-at-trx-commit=2",
                "rocksdb-use-direct-reads=ON",
                "rocksdb-use-direct-io-for-flush-and-compaction=ON",
                "rocksdb-max-background-jobs=3",
                MYROCKS_FAMILY,
            ],
        }
    }

    /// The options with which a server for this engine starts.
    pub(crate) fn options(self, memory: u64, plugin: Option<&Path>) -> Result<Options> {
        let common = ["skip-log-bin", "innodb-stats-persistent=ON", "max-allowed-packet=64M"];
        let mut options = Options::new().set_all(common);
        options = match self {
            Self::Frondb => {
                let plugin = plugin.ok_or_else(|| {
                    Error::Usage(
                        "--plugin is missing: give the path of ha_frondb.so, as `make bench` does"
                            .to_owned(),
                    )
                })?;
                options.plugin(plugin)
            }
            Self::Innodb => options,
            Self::Myrocks => options.load("ha_rocksdb.so"),
        };
        if self != Self::Innodb {
            // The server's own tables need little memory.
            options = options.set("innodb-buffer-pool-size=8M");
        }
        Ok(options.set_all(self.engine().memory(memory)).set_all(self.settings().iter().copied()))
    }

    /// The engine's settings in one line, for reports.
    pub(crate) fn describe(self) -> String {
        format!("{}: {}", self.name(), self.settings().join(" "))
    }

    /// Bytes on disk of the engine's files in a data directory.
    pub(crate) fn disk_bytes(self, data: &Path) -> Result<u64> {
        let folder = match self {
            Self::Frondb => "#sql-frondb",
            Self::Myrocks => "#rocksdb",
            Self::Innodb => return innodb_bytes(data),
        };
        allocated_bytes(&data.join(folder))
    }
}

/// Bytes of the system tablespace, the undo files and the tables of the benchmark's database.
/// InnoDB's log is not counted: its size is configured and does not depend on the data.
fn innodb_bytes(data: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let doing = || format!("measure {}", data.display());
    let mut total = 0;
    for entry in fs::read_dir(data).map_err(Error::io(doing()))? {
        let entry = entry.map_err(Error::io(doing()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == DATABASE {
            total += allocated_bytes(&entry.path())?;
        } else if ["ibdata", "undo"].iter().any(|kind| name.starts_with(kind)) {
            total += entry.metadata().map_err(Error::io(doing()))?.blocks() * 512;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_has_its_memory_and_ours_a_plugin() {
        assert!(Contender::Frondb.options(1 << 27, None).is_err());
        for contender in Contender::value_variants() {
            let options = contender.options(1 << 27, Some(Path::new("/x/ha_frondb.so"))).unwrap();
            assert!(format!("{options:?}").contains("=134217728"), "{options:?}");
        }
    }
}
