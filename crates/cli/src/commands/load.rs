//! `load`: loads a file of entries into a tree.
//!
//! By default the bulk loader sorts the entries outside of the tree and ingests them with one
//! commit. A load that fails or is killed has loaded nothing and created no tree.
//!
//! With `--batch` each batch is visible when it commits. By default batches are committed without a
//! sync, and one sync at the end makes all of them durable, so that the latency of the disk does
//! not slow the load. `--sync batch` also loads in batches, and syncs each of them. The batches
//! committed before a failure stay. The load can then be run again: it writes the same entries
//! again, which changes nothing. If the tree does not exist, the commit of the first batch creates
//! it.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use frondb::{
    Batch, BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Durability, ErrorKind, Tree,
};
use serde_json::json;

use super::session::{Session, note, tree_options};
use crate::args::{Common, Load, SyncArg};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::records::guess::Sample;
use crate::records::reader;

/// Number of bytes at the start of the file from which its format is guessed.
const SAMPLE_BYTES: usize = 64 << 10;

/// Entries in a batch with `--sync batch` and without `--batch`.
const BATCH_ENTRIES: u64 = 10_000;

/// Bytes at which a batch is committed, even if it has few entries: a batch is one log record.
const BATCH_BYTES: usize = 4 << 20;

/// Loads a file.
pub(crate) fn load(common: &Common, args: &Load) -> Result<(), Failure> {
    let from_stdin = args.file == Path::new("-");
    let name = |failure: Failure| failure.about(&args.file).context(args.file.display());
    let (input, total): (Box<dyn Read>, _) = if from_stdin {
        (Box::new(std::io::stdin().lock()), None)
    } else {
        let file = File::open(&args.file).map_err(|error| name(error.into()))?;
        if args.file.is_dir() {
            return Err(name(Failure::usage("the path is a directory")));
        }
        let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
        (Box::new(file), total)
    };
    let (input, position) = Counted::new(input);
    let mut input = BufReader::with_capacity(1 << 18, input);
    let first = sample(&mut input).map_err(|error| name(error.into()))?;
    let looked_at = Sample { bytes: &first, is_whole: first.len() < SAMPLE_BYTES };
    let (format, text) = args.layout(common, &looked_at)?;
    let input = first.as_slice().chain(input);
    let mut records = reader(format, &text, input).map_err(name)?;
    let layout = records.layout();
    note(common, &format!("{}: {}", args.file.display(), layout.sentence()));
    if common.quiet && !common.json && !args.header && layout.header.is_some() {
        // Without a note the user does not learn that the first row, which may be data, was taken
        // as a header.
        return Err(name(Failure::input(
            "the first row looks like a header: with --quiet say --header or --no-header",
        )));
    }

    let session = Session::open(common, &args.tree.dir)?;
    let (mut loader, tree) = Loader::new(&session, args)?;
    let mut progress = Progress::bytes(common, total);
    let mut entries = 0;
    let loaded = (|| {
        while let Some((key, value)) = records.next().map_err(name)? {
            loader.put(&tree, &key, &value).map_err(of_entry)?;
            entries += 1;
            progress.at(position.get(), entries);
        }
        progress.end();
        loader.finish(common).map_err(of_entry)
    })();
    drop(progress);
    let done = loader.done();
    if let Err(failure) = loaded {
        let committed = done.entries;
        return Err(failure.context(format!("stopped after {committed} entries were loaded")));
    }
    session.close()?;
    let mut out = Output::new(common);
    let name = &args.tree.tree;
    let Done { entries: stored, replaced, batches } = done;
    let result = json!({
        "tree": name, "entries": stored, "read": entries, "replaced": replaced, "batches": batches,
        "format": layout.format, "delimiter": layout.delimiter, "header": layout.header,
        "key": layout.key, "value": layout.value, "kept_as_text": records.kept_as_text(),
    });
    if records.kept_as_text() > 0 {
        let cells = records.kept_as_text();
        note(
            common,
            &format!(
                "{cells} cells of columns of numbers or booleans are texts, and were kept as such"
            ),
        );
    }
    out.done(&result, |_| match replaced {
        None => format!("loaded {stored} entries into {name} in {batches} batches"),
        Some(0) => format!("loaded {stored} entries into {name}"),
        Some(n) => {
            format!("loaded {stored} entries into {name}; {n} more had keys that came again")
        }
    })?;
    out.finish()
}

/// Reads the first bytes of the input, or all if there are fewer.
fn sample(input: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut first = Vec::new();
    input.take(SAMPLE_BYTES as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// The result of a load.
#[derive(Clone, Copy, Default)]
struct Done {
    /// Number of entries committed. With batches, a key that is in several batches counts once for
    /// each.
    entries: u64,
    /// Number of entries that a later entry of the same key replaced; unknown (`None`) with
    /// batches.
    replaced: Option<u64>,
    /// The number of commits.
    batches: u64,
}

/// Turns an error about an invalid key or value into one about the file.
fn of_entry(failure: Failure) -> Failure {
    if failure.kind == ErrorKind::Invalid.name() { failure.of_input() } else { failure }
}

/// Opens the tree; `None` if it does not exist.
fn existing(session: &Session<'_>, args: &Load) -> Result<Option<Tree>, Failure> {
    let name = &args.tree.tree;
    match session.db.open_tree(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // Accept options that are equal to those of the tree, so that a failed load can be run
        // again.
        Ok(tree) if args.options.is_given() && tree.options() != tree_options(&args.options)? => {
            Err(Failure::usage(format!(
                "tree {name} exists with other options: leave them out, or change the codec and the \
                 size of blocks with `frondb alter`"
            )))
        }
        other => Ok(Some(other?)),
    }
}

/// Stores the entries: with one commit, or batch by batch.
enum Loader<'a> {
    /// The load, `None` once it is finished, and its result.
    Bulk(Option<Bulk>, Done),
    Batches(Batches<'a>),
}

impl<'a> Loader<'a> {
    fn new(session: &'a Session<'a>, args: &Load) -> Result<(Self, Tree), Failure> {
        let tree = existing(session, args)?;
        let in_batches = args.batch.is_some() || args.sync == SyncArg::Batch;
        let (mut batches, mut bulk) = (Batches::new(session, args), None);
        if !in_batches || tree.is_none() {
            bulk = Some(Bulk::new(session, batches.durability_of(in_batches))?);
        }
        let tree = match (tree, &bulk) {
            (None, Some(bulk)) => {
                bulk.load.new_tree(&args.tree.tree, tree_options(&args.options)?)?
            }
            (tree, _) => tree.ok_or_else(|| Failure::usage("there is no such tree"))?,
        };
        if in_batches {
            batches.first = bulk;
            return Ok((Self::Batches(batches), tree));
        }
        Ok((Self::Bulk(bulk, Done::default()), tree))
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Bulk(Some(bulk), _) => Ok(bulk.writer.put(tree, key, value)?),
            Self::Bulk(None, _) => Ok(()),
            Self::Batches(batches) => batches.put(tree, key, value),
        }
    }

    fn finish(&mut self, common: &Common) -> Result<(), Failure> {
        match self {
            Self::Batches(batches) => batches.finish(),
            Self::Bulk(under_way, done) => {
                let Some(bulk) = under_way.take() else { return Ok(()) };
                let mut progress = Progress::entries(common, 0);
                let report = bulk.finish(&mut |at| {
                    progress.of(at.done, at.total);
                    progress.say("sorting");
                    true
                })?;
                let batches = u64::from(report.entries > 0);
                *done =
                    Done { entries: report.entries, replaced: Some(report.duplicates), batches };
                Ok(())
            }
        }
    }

    fn done(&self) -> Done {
        match self {
            Self::Bulk(_, done) => *done,
            Self::Batches(batches) => {
                Done { entries: batches.committed, replaced: None, batches: batches.batches }
            }
        }
    }
}

/// A bulk load in progress.
struct Bulk {
    load: BulkLoad,
    writer: BulkWriter,
}

impl Bulk {
    fn new(session: &Session<'_>, durability: Durability) -> Result<Self, Failure> {
        let load = session.db.bulk_load(BulkOptions { durability, ..BulkOptions::default() })?;
        let writer = load.writer();
        Ok(Self { load, writer })
    }

    fn finish(self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport, Failure> {
        self.writer.finish()?;
        Ok(self.load.finish(progress)?)
    }
}

/// Fills and commits batches.
struct Batches<'a> {
    session: &'a Session<'a>,
    durability: Durability,
    /// The first batch of a new tree: a bulk load, which also creates the tree. `None` once it is
    /// committed, or if the tree exists already.
    first: Option<Bulk>,
    first_bytes: usize,
    batch: Batch,
    entries_max: usize,
    /// Number of entries written, committed or not.
    entries: u64,
    committed: u64,
    batches: u64,
}

impl<'a> Batches<'a> {
    fn new(session: &'a Session<'a>, args: &Load) -> Self {
        let durability = match args.sync {
            SyncArg::End => Durability::NoSync,
            SyncArg::Batch => Durability::Sync,
        };
        let entries_max =
            usize::try_from(args.batch.unwrap_or(BATCH_ENTRIES)).unwrap_or(usize::MAX);
        Self {
            session,
            durability,
            first: None,
            first_bytes: 0,
            batch: Batch::new(),
            entries_max,
            entries: 0,
            committed: 0,
            batches: 0,
        }
    }

    /// Returns the durability of a bulk load. Without `in_batches` the load is the only commit, and
    /// is always synced.
    fn durability_of(&self, in_batches: bool) -> Durability {
        if in_batches { self.durability } else { Durability::Sync }
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if let Some(first) = &mut self.first {
            first.writer.put(tree, key, value)?;
            self.entries += 1;
            self.first_bytes += key.len() + value.len();
            let full = self.entries >= self.entries_max as u64 || self.first_bytes >= BATCH_BYTES;
            return if full { self.commit() } else { Ok(()) };
        }
        let before = self.batch.len();
        self.batch.put(tree, key, value);
        self.entries += 1;
        // A batch does not store an invalid entry, but its commit then fails. Commit now, so that
        // the load stops at this entry.
        let refused = self.batch.len() == before;
        let full = refused
            || self.batch.len() >= self.entries_max
            || self.batch.bytes() >= BATCH_BYTES
            // Also commit at half of the memory limit, so that any further entry fits.
            || self.batch.memory_bytes() as u64 >= self.session.db.batch_bytes_max() / 2;
        if full { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        match self.first.take() {
            Some(first) => drop(first.finish(&mut |_| true)?),
            None => self.session.db.write(&self.batch, self.durability)?,
        }
        self.batch.clear();
        self.committed = self.entries;
        self.batches += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        // Commit the first batch even if it is empty, to create the tree.
        if self.first.is_some() || !self.batch.is_empty() {
            self.commit()?;
        }
        Ok(self.session.db.sync()?)
    }
}
/// Counts the bytes that are read, for the progress display.
struct Counted<R> {
    input: R,
    position: Rc<Cell<u64>>,
}

impl<R: Read> Counted<R> {
    fn new(input: R) -> (Self, Rc<Cell<u64>>) {
        let position = Rc::new(Cell::new(0));
        (Self { input, position: Rc::clone(&position) }, position)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.position.set(self.position.get() + n as u64);
        Ok(n)
    }
}
