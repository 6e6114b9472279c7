//! The command line as types, with all help texts. docs/operating/command-line.md is generated
//! from them, so the page and the program cannot differ.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use frondb::Codec;

use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::records::guess::{self, Sample};
use crate::records::{Cells, Format, TextOptions};

/// Everything on the command line.
#[derive(Parser, Debug)]
#[command(
    name = "frondb",
    version,
    about = "Create, fill, read and check a FronDB database",
    after_help = "A database is a directory; one process at a time can have it open. \
                  `frondb help COMMAND` shows the options of a command; `frondb exit-codes` \
                  explains the exit codes.",
    max_term_width = 100
)]
pub(crate) struct CommandLine {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of all commands.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of all commands.
#[derive(Args, Debug, Clone)]
pub(crate) struct Common {
    /// Print JSON: one object, or one on each line for lists; errors as JSON on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Encoding of keys; in a table `text` uses escapes only with --escapes
    #[arg(long, global = true, value_enum, value_name = "ENCODING", default_value_t)]
    pub(crate) keys: Encoding,
    /// Encoding of values; in a table `text` uses escapes only with --escapes
    #[arg(long, global = true, value_enum, value_name = "ENCODING", default_value_t)]
    pub(crate) values: Encoding,
    /// Memory budget of the engine, for example 256MiB or 2GiB
    #[arg(long, global = true, value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    pub(crate) memory: u64,
    /// Directory of the log, if it is not in the database directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Permission bits of new files, including dumps, in octal: 0600 to 0666; directories get an x
    /// for each r
    #[arg(long, global = true, value_name = "MODE", default_value = "0600", value_parser = mode)]
    pub(crate) file_mode: u32,
    /// Print results and errors only: no progress, notes or confirmations
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Do not change the database, and allow other readers; commands that write fail
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Create a database, and optionally trees in it
    Create(Create),
    /// List the trees
    Trees(Database),
    /// Rename a tree
    Rename(Rename),
    /// Change a tree's codec, or the sizes of its blocks and leaves; old data is recompressed in
    /// the background, or at once by `optimize`
    Alter(Alter),
    /// Drop a tree and all its data
    Drop(Tree),
    /// Print the value of a key; exit code 1 if there is none
    Get(Get),
    /// Set the value of a key
    Put(Put),
    /// Delete keys, or a range of keys
    Del(Del),
    /// Print keys and values in order
    Scan(Scan),
    /// Load a file of CSV, TSV, JSON lines or a dump into a tree
    Load(Load),
    /// Write a tree to a CSV, TSV or binary file
    Dump(Dump),
    /// List prepared transactions, or commit or roll back one of them
    Prepared(Prepared),
    /// Print statistics of the database and its trees
    Stats(Stats),
    /// Consolidate trees: free the space of deleted rows and make reads fast; Ctrl-C stops it and
    /// keeps the work done so far
    Optimize(Optimize),
    /// Read and check all data; exit code 6 if anything is damaged
    Verify(Verify),
    /// Copy a database into a new directory, in full or only the changes since another backup
    Backup(Backup),
    /// Make a database from a full backup and the incremental ones after it
    Restore(Restore),
    /// Compare a backup with its checksums; exit code 6 if anything is damaged
    VerifyBackup(VerifyBackup),
    /// Save the readable data of a damaged database into a new one; exit code 6 if anything is lost
    Salvage(Salvage),
    /// Measure the device of a directory: its start-up time, bandwidth and limits, and the sizes
    /// that suit it; Ctrl-C stops it and leaves no file
    Device(Device),
    /// List the exit codes
    ExitCodes,
}

/// A database.
#[derive(Args, Debug)]
pub(crate) struct Database {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// `stats`
#[derive(Args, Debug)]
pub(crate) struct Stats {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print a page in Prometheus' text format, without the statistics of trees
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    /// Print what the database has written to its files, by cause, since it was created and over
    /// the last hour, as recorded at the latest checkpoint, merge or close; does not open the
    /// database, which another process may have open
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) wear: bool,
    /// With --wear: endurance of the drive in terabytes (its TBW), to print how long a new one
    /// lasts
    #[arg(long, value_name = "TB", requires = "wear", value_parser = terabytes)]
    pub(crate) tbw: Option<f64>,
}

/// Parses the endurance of a drive, terabytes.
fn terabytes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("give a number of terabytes above 0, such as 600".to_owned()),
    }
}

/// A tree of a database.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Name of the tree
    #[arg(value_name = "TREE")]
    pub(crate) tree: String,
}

/// `create`
#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Directory of the database; may be missing, empty or a database already
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Names of trees to create
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
    /// Options of the new trees
    #[command(flatten)]
    pub(crate) options: TreeArgs,
}

/// Options of a new tree.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct TreeArgs {
    #[arg(long, value_name = "CODEC", value_parser = codec, help = format!("Codec of a new tree: {}", Codec::choices()))]
    pub(crate) codec: Option<Codec>,
    /// The new tree is a non-unique index: scanned by prefix, without reads of single full keys
    #[arg(long)]
    pub(crate) secondary: bool,
    #[command(flatten)]
    pub(crate) named: NamedOptions,
}

/// Options of a tree by their names.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct NamedOptions {
    /// Another option of the tree, such as block_bytes=64K or fanout=32; can be repeated; a value
    /// of 0 means the default. The page options.md lists the options
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = named_option)]
    pub(crate) options: Vec<(String, String)>,
}

impl NamedOptions {
    /// Sets the options.
    pub(crate) fn set(&self, options: frondb::TreeOptions) -> frondb::Result<frondb::TreeOptions> {
        self.options.iter().try_fold(options, |options, (name, value)| options.set(name, value))
    }
}

/// Parses a codec.
fn codec(text: &str) -> Result<Codec, String> {
    text.parse::<Codec>().map_err(|error| error.message().to_owned())
}

/// Parses NAME=VALUE. Refuses an unknown name, and a value out of its range.
fn named_option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no =")?;
    frondb::TreeOptions::new().set(name, value).map_err(|e| e.message().to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

impl TreeArgs {
    /// Returns whether any option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.codec.is_some() || self.secondary || !self.named.options.is_empty()
    }
}

/// `rename`
#[derive(Args, Debug)]
pub(crate) struct Rename {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// New name of the tree
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// `alter`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").args(["codec", "options"]).required(true).multiple(true)))]
pub(crate) struct Alter {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    #[arg(
        long,
        value_name = "CODEC",
        value_parser = codec,
        help = format!(
            "New codec of the tree, with blocks of the size that suits it: {}",
            Codec::choices()
        )
    )]
    pub(crate) codec: Option<Codec>,
    #[command(flatten)]
    pub(crate) named: NamedOptions,
}

/// `get`
#[derive(Args, Debug)]
pub(crate) struct Get {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// The key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) key: String,
    /// Write the bytes of the value as they are, without a newline
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
}

/// `put`
#[derive(Args, Debug)]
pub(crate) struct Put {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// The key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) key: String,
    /// The value
    #[arg(value_name = "VALUE", allow_negative_numbers = true, required_unless_present = "file")]
    pub(crate) value: Option<String>,
    /// Read the value from a file, or from standard input if it is `-`
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub(crate) file: Option<PathBuf>,
}

/// `del`
#[derive(Args, Debug)]
pub(crate) struct Del {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// Keys to delete
    #[arg(value_name = "KEY", allow_negative_numbers = true, conflicts_with_all = ["from", "to", "prefix"])]
    pub(crate) key: Vec<String>,
    /// Or a range of keys
    #[command(flatten)]
    pub(crate) range: KeyRange,
}

/// A range of keys.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct KeyRange {
    /// First key
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) from: Option<String>,
    /// End of the range: the first key not in it
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub(crate) to: Option<String>,
    /// Only keys that begin with this
    #[arg(long, value_name = "KEY", allow_negative_numbers = true, conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<String>,
}

/// `scan`
#[derive(Args, Debug)]
pub(crate) struct Scan {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// The range of keys
    #[command(flatten)]
    pub(crate) range: KeyRange,
    /// Print from the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print at most this many entries
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print keys only
    #[arg(long, conflicts_with = "count")]
    pub(crate) keys_only: bool,
    /// Print only the number of entries
    #[arg(long)]
    pub(crate) count: bool,
}

/// How a file of entries is laid out.
#[derive(Args, Debug, Clone)]
pub(crate) struct FileArgs {
    /// Format of the file; default by its extension; for other names `load` guesses from the
    /// contents, and `dump` writes the binary format
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// The table has no header row with column names
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Text cells use the escapes of the command line, such as \xHH, and can hold any bytes;
    /// without this they are literal
    #[arg(long)]
    pub(crate) escapes: bool,
}

impl FileArgs {
    /// Returns the format that the user gave, or else the format of the file's extension; `None`
    /// for other extensions and for standard streams.
    fn known_format(&self, file: &Path) -> Option<Format> {
        let by_name = || if file == Path::new("-") { None } else { Format::of_name(file) };
        self.format.or_else(by_name)
    }

    /// Returns the format of a dump and the layout of its table. Table options of a binary file are
    /// an error.
    pub(crate) fn of_dump(
        &self,
        common: &Common,
        file: &Path,
    ) -> Result<(Format, TextOptions), Failure> {
        let format = self.known_format(file).unwrap_or(Format::Binary);
        if format == Format::Binary && (self.no_header || self.escapes) {
            return Err(only_tables());
        }
        Ok((format, self.text(common, format)))
    }

    fn text(&self, common: &Common, format: Format) -> TextOptions {
        TextOptions {
            delimiter: format.delimiter(),
            header: !self.no_header,
            key_column: None,
            value_column: None,
            types: Vec::new(),
            keys: Cells::of(common.keys, self.escapes),
            values: Cells::of(common.values, self.escapes),
        }
    }
}

fn only_tables() -> Failure {
    Failure::usage("header, column, delimiter and escape options are for tables only")
        .with_hint("use --format csv or tsv, or a file name with that extension")
}

impl Load {
    /// Returns the format and the layout of the file: the options that the user gave, and for the
    /// rest a guess from the first bytes.
    pub(crate) fn layout(
        &self,
        common: &Common,
        sample: &Sample<'_>,
    ) -> Result<(Format, TextOptions), Failure> {
        let is_table_given = self.delimiter.is_some() || self.header || self.form.no_header;
        let given = self.form.known_format(&self.file);
        let format = given.unwrap_or_else(|| match guess::format(sample) {
            // The options of the user say that the file is a table.
            Format::Binary | Format::Jsonl if is_table_given && !guess::is_dump(sample) => {
                Format::Csv
            }
            guessed => guessed,
        });
        let mut text = self.form.text(common, format);
        text.key_column = self.key_column.clone();
        text.value_column = self.value_column.clone();
        if matches!(format, Format::Csv | Format::Tsv) {
            let guessed = || guess::delimiter(sample, format.delimiter());
            text.delimiter = self.delimiter.unwrap_or_else(guessed);
            let rows = guess::rows(sample, text.delimiter);
            text.header = self.header || (!self.form.no_header && guess::has_header(&rows));
            if self.types == TypesArg::Guess {
                let data = rows.get(usize::from(text.header)..).unwrap_or_default();
                text.types = guess::types(data, rows.first().map_or(0, csv::ByteRecord::len));
            }
            return Ok((format, text));
        }
        let columns = self.key_column.is_some() || self.value_column.is_some();
        let table = is_table_given || (format == Format::Binary && (columns || self.form.escapes));
        if table { Err(only_tables()) } else { Ok((format, text)) }
    }
}

/// Parses a delimiter: one ASCII character, or the word `tab`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if !b"\"\r\n".contains(byte) && byte.is_ascii() => Ok(*byte),
        _ => {
            Err("give one ASCII character other than a quote or a line break, or `tab`".to_owned())
        }
    }
}

/// The types of the cells of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum TypesArg {
    /// Numbers or booleans if all cells of a column are
    #[default]
    Guess,
    /// All cells are text
    Text,
}

/// `load`
#[derive(Args, Debug)]
pub(crate) struct Load {
    /// The tree, which is created if it does not exist
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Layout of the file
    #[command(flatten)]
    pub(crate) form: FileArgs,
    /// Character between the cells of a table, or `tab`; default that of the format if it divides
    /// all rows into the same number of cells, otherwise `,`, a tab, `;` or `|` if one of them does
    #[arg(long, value_name = "C", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// The first row has the column names; by default it does unless one of its cells begins with a
    /// digit, is `true` or `false`, or occurs again in the row or in its column
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// Column or JSON field of the key, columns by name or number from 1; default the first
    #[arg(long, value_name = "COLUMN")]
    pub(crate) key_column: Option<String>,
    /// Column or JSON field of the value; default the other column of two, all other columns as a
    /// JSON object if there are more, and empty values if there is none
    #[arg(long, value_name = "COLUMN")]
    pub(crate) value_column: Option<String>,
    /// Types of the columns that become fields of a JSON object
    #[arg(long, value_enum, default_value_t)]
    pub(crate) types: TypesArg,
    /// Commit after each N entries, at most 1,000,000, or after 4 MiB; without --batch and --sync
    /// batch the file is sorted first and loaded with one commit, all or nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) batch: Option<u64>,
    /// When to sync; `batch` loads in batches, of 10,000 entries without --batch, and syncs each;
    /// the end of the load is always synced
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sync: SyncArg,
    /// Options of the tree if it is created
    #[command(flatten)]
    pub(crate) options: TreeArgs,
}

/// When batches are synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum SyncArg {
    /// Sync once, at the end
    #[default]
    End,
    /// Sync each batch
    Batch,
}

/// `prepared`
#[derive(Args, Debug)]
pub(crate) struct Prepared {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Commit the transaction of this name, given in the encoding of keys
    #[arg(long, value_name = "NAME", conflicts_with = "rollback")]
    pub(crate) commit: Option<String>,
    /// Roll back the transaction of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) rollback: Option<String>,
}

/// `optimize`
#[derive(Args, Debug)]
pub(crate) struct Optimize {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Optimize only these trees
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
    /// The part of each tree's data, from its smallest key on: above 0, at most 1
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = fraction)]
    pub(crate) fraction: f64,
    /// Rewrite at most N leaves per second; a leaf has 8 to 256 MiB; 0 means no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) leaves_per_second: u64,
}

/// `verify`
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Verify only these trees
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
}

/// `backup`
#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Directory of the backup, outside of DIR; may be missing or empty
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Copy only what the backup in this directory and those before it do not have
    #[arg(long, value_name = "BACKUP")]
    pub(crate) since: Option<PathBuf>,
    /// Read at most this much per second, for example 50MiB; 0 means no limit
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub(crate) bytes_per_second: u64,
}

/// `restore`
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The full backup, then the incremental ones in the order in which they were made
    #[arg(value_name = "BACKUP", required = true, num_args = 1..)]
    pub(crate) backups: Vec<PathBuf>,
    /// Directory of the new database, outside of the backups; may be missing or empty
    #[arg(value_name = "TO", required = true)]
    pub(crate) to: PathBuf,
}

/// `verify-backup`
#[derive(Args, Debug)]
pub(crate) struct VerifyBackup {
    /// Directory of the backup
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: PathBuf,
}

/// `salvage`
#[derive(Args, Debug)]
pub(crate) struct Salvage {
    /// Directory of the damaged database, which is not changed
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Directory of the new database, outside of DIR; may be missing or empty, and is not created
    /// if nothing is saved
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// If the damage to the manifest or the log makes it unknown whether any row is current, save
    /// the trees nevertheless, as NAME.uncertain
    #[arg(long)]
    pub(crate) uncertain: bool,
}

/// `dump`
#[derive(Args, Debug)]
pub(crate) struct Dump {
    /// The tree
    #[command(flatten)]
    pub(crate) tree: Tree,
    /// The file, or `-` for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Layout of the file
    #[command(flatten)]
    pub(crate) form: FileArgs,
    /// The range of keys
    #[command(flatten)]
    pub(crate) range: KeyRange,
}

/// `device`
#[derive(Args, Debug)]
pub(crate) struct Device {
    /// A directory on the device; need not be a database
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Seconds to measure, about; longer is more exact
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    pub(crate) seconds: f64,
    /// Numbers of threads to measure with, 1 to 256 each
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4,16")]
    pub(crate) threads: Vec<usize>,
    /// Measure random writes, too; wears the device
    #[arg(long)]
    pub(crate) write: bool,
    /// Size of the file to measure with, at least 16MiB; default 4GiB, or as much as a quarter of
    /// the time allows to write; twice as much must be free
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Compression factor of blocks, for the advice: raw_bytes divided by disk_bytes of `frondb
    /// stats`; default that of sample rows
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) compression: Option<f64>,
    /// Draw the chart into a file: NAME.svg, or NAME.html with the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) chart: Option<PathBuf>,
    /// Start-up time in microseconds and bandwidth in MB per second by the device's datasheet, for
    /// example 16,250; drawn as a line in the chart
    #[arg(long, value_name = "S,W", value_parser = datasheet)]
    pub(crate) datasheet: Option<(f64, f64)>,
    /// File with the device's wear counters, or `-` for standard input: JSON of `smartctl -a -j` or
    /// of `nvme smart-log -o json`
    #[arg(long, value_name = "FILE")]
    pub(crate) smart: Option<PathBuf>,
    /// The device's endurance by its datasheet, in terabytes written
    #[arg(long, value_name = "TB", value_parser = positive)]
    pub(crate) tbw: Option<f64>,
    /// Bytes written per day, to compute the lifetime; default the average so far by --smart
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes_per_day: Option<u64>,
}

/// Parses a number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "give a number, such as 1.5".to_owned())?;
    let is_sound = number > 0.0 && number.is_finite();
    is_sound.then_some(number).ok_or_else(|| "give a number above 0".to_owned())
}

/// Parses a compression factor, at least 1.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio = positive(text)?;
    (ratio >= 1.0).then_some(ratio).ok_or_else(|| "give a number of at least 1".to_owned())
}

/// Parses microseconds and MB per second; returns seconds and bytes per second.
fn datasheet(text: &str) -> Result<(f64, f64), String> {
    let (startup, bandwidth) = text
        .split_once(',')
        .ok_or_else(|| "give microseconds and MB a second, such as 16,250".to_owned())?;
    Ok((positive(startup.trim())? / 1e6, positive(bandwidth.trim())? * 1e6))
}

/// Parses a number of bytes with an optional unit.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        unit => return Err(format!("unknown unit `{unit}`: use KiB, MiB, GiB or TiB")),
    };
    let number: u64 =
        digits.parse().map_err(|_| "a size is a number and a unit, such as 256MiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

/// Parses a fraction above 0 and at most 1.
fn fraction(text: &str) -> Result<f64, String> {
    let wrong = || "a fraction is a number above 0 and at most 1, such as 0.5".to_owned();
    let fraction: f64 = text.parse().map_err(|_| wrong())?;
    (fraction > 0.0 && fraction <= 1.0).then_some(fraction).ok_or_else(wrong)
}

/// Parses permission bits in octal.
fn mode(text: &str) -> Result<u32, String> {
    let mode =
        u32::from_str_radix(text, 8).map_err(|_| "a mode has octal digits only".to_owned())?;
    let sound = mode & 0o600 == 0o600 && mode & !0o666 == 0;
    sound.then_some(mode).ok_or_else(|| "a mode is between 0600 and 0666".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(mode("0640"), Ok(0o640));
        assert_eq!(mode("600"), Ok(0o600));
        for wrong in ["", "-600", "0700", "0400", "8", "0o600"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fractions_are_parts_of_a_whole() {
        assert_eq!(fraction("0.25"), Ok(0.25));
        assert_eq!(fraction("1"), Ok(1.0));
        for wrong in ["", "0", "-1", "1.01", "half", "NaN"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_datasheet_has_two_numbers() {
        assert_eq!(datasheet("16,250"), Ok((16e-6, 250e6)));
        for wrong in ["", "16", "16,", "16us,250", "0,250", "16,-1", "16,inf", "1,2,3"] {
            assert!(datasheet(wrong).is_err(), "{wrong}");
        }
        assert!(ratio("0.5").is_err() && ratio("NaN").is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("4KiB"), Ok(4096));
        assert_eq!(size("2g"), Ok(2 << 30));
        for wrong in ["", "MiB", "1.5GiB", "10MB2", "99999999TiB", "4X"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
