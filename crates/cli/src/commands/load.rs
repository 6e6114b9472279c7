//! `load`: a file of entries into a tree.
//!
//! By default the bulk loader sorts the entries outside of the tree and attaches them with one
//! commit: a load that fails, or is killed, has loaded nothing. One that fails drops the tree if it
//! made it; one that is killed may leave it empty.
//!
//! With `--batch` entries show up as they come. Batches are committed without a sync each, and one
//! sync at the end makes all of them durable: loading then runs at the engine's pace and not at the
//! disk's latency. A load that fails leaves the batches before it; running it again puts the same
//! entries once more, which changes nothing.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use frondb::{Batch, BulkLoad, BulkOptions, BulkWriter, Durability, ErrorKind, Tree};
use serde_json::json;

use super::session::{Session, tree_options};
use crate::args::{Common, Load, SyncArg};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::records::reader;

/// Entries in one batch if only how it is synced is given.
const BATCH_ENTRIES: u64 = 10_000;

/// A batch is committed when it has this many bytes, whatever the number of its entries: one record
/// of the log holds it.
const BATCH_BYTES: usize = 4 << 20;

/// Loads a file.
pub(crate) fn load(common: &Common, args: &Load) -> Result<(), Failure> {
    let columns = (args.key_column.as_deref(), args.value_column.as_deref());
    let (format, text) = args.form.layout(common, &args.file, columns)?;
    let from_stdin = args.file == Path::new("-");
    let name = |failure: Failure| failure.context(args.file.display());
    let (input, total): (Box<dyn Read>, _) = if from_stdin {
        (Box::new(std::io::stdin().lock()), None)
    } else {
        let file = File::open(&args.file).map_err(|error| name(error.into()))?;
        if args.file.is_dir() {
            return Err(name(Failure::usage("it is a directory")));
        }
        let total = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
        (Box::new(file), total)
    };
    let (input, position) = Counted::new(input);
    let mut records =
        reader(format, &text, BufReader::with_capacity(1 << 18, input)).map_err(name)?;

    let session = Session::open(common, &args.tree.dir)?;
    let mut loader = Loader::new(&session, args)?;
    let (tree, created) = open_or_create(&session, args)?;
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
    let (committed, batches) = loader.committed();
    if let Err(failure) = loaded {
        drop(loader);
        drop(tree);
        // A tree of this load goes with it, unless it has batches that were said to be kept.
        let left = created && committed == 0 && session.db.drop_tree(&args.tree.tree).is_err();
        let left =
            if left { format!(", tree {} is left empty", args.tree.tree) } else { String::new() };
        return Err(failure.context(format!("stopped after {committed} entries were loaded{left}")));
    }
    session.close()?;
    let mut out = Output::new(common);
    let result = json!({ "tree": args.tree.tree, "entries": entries, "batches": batches });
    out.done(&result, |_| format!("loaded {entries} entries into {}", args.tree.tree))?;
    out.finish()
}

/// A failure of putting entries: a key or value that no tree takes is the file's fault.
fn of_entry(failure: Failure) -> Failure {
    if failure.kind == ErrorKind::Invalid.name() { failure.of_input() } else { failure }
}

/// The tree, and whether it was made here.
fn open_or_create(session: &Session<'_>, args: &Load) -> Result<(Tree, bool), Failure> {
    let name = &args.tree.tree;
    match session.db.open_tree(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok((session.db.create_tree(name, tree_options(&args.options))?, true))
        }
        // Options that are the same as before change nothing: a load that failed can be run again.
        Ok(tree) if args.options.is_given() && tree.options() != tree_options(&args.options) => {
            Err(Failure::usage(format!(
                "tree {name} exists with other options, and they are fixed"
            )))
        }
        other => Ok((other?, false)),
    }
}

/// Takes the entries, all at once or batch by batch.
enum Loader<'a> {
    /// `None` once it is finished.
    Bulk(Option<(BulkLoad, BulkWriter)>, u64),
    Batches(Batches<'a>),
}

impl<'a> Loader<'a> {
    fn new(session: &'a Session<'a>, args: &Load) -> Result<Self, Failure> {
        if args.batch.is_some() || args.sync == SyncArg::Batch {
            return Ok(Self::Batches(Batches::new(session, args)));
        }
        let load = session.db.bulk_load(BulkOptions::default())?;
        let writer = load.writer();
        Ok(Self::Bulk(Some((load, writer)), 0))
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Bulk(Some((_, writer)), _) => Ok(writer.put(tree, key, value)?),
            Self::Bulk(None, _) => Ok(()),
            Self::Batches(batches) => batches.put(tree, key, value),
        }
    }

    fn finish(&mut self, common: &Common) -> Result<(), Failure> {
        match self {
            Self::Batches(batches) => batches.finish(),
            Self::Bulk(under_way, committed) => {
                let Some((load, writer)) = under_way.take() else { return Ok(()) };
                writer.finish()?;
                let mut progress = Progress::entries(common, 0);
                let report = load.finish(&mut |at| {
                    progress.of(at.done, at.total);
                    progress.say("sorting");
                    true
                })?;
                *committed = report.entries + report.duplicates;
                Ok(())
            }
        }
    }

    /// Entries that are loaded, and in how many commits.
    fn committed(&self) -> (u64, u64) {
        match self {
            Self::Bulk(_, committed) => (*committed, u64::from(*committed > 0)),
            Self::Batches(batches) => (batches.committed, batches.batches),
        }
    }
}

/// Fills batches and commits them.
struct Batches<'a> {
    session: &'a Session<'a>,
    durability: Durability,
    batch: Batch,
    entries_max: usize,
    /// Entries put, committed or not.
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
        let batch = Batch::new();
        Self { session, durability, batch, entries_max, entries: 0, committed: 0, batches: 0 }
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let before = self.batch.len();
        self.batch.put(tree, key, value);
        self.entries += 1;
        // A batch keeps what is wrong with an entry for its commit, and does not count the entry.
        let refused = self.batch.len() == before;
        let full = refused
            || self.batch.len() >= self.entries_max
            || self.batch.bytes() >= BATCH_BYTES
            // Half of what is allowed leaves room for any entry.
            || self.batch.memory_bytes() as u64 >= self.session.db.batch_bytes_max() / 2;
        if full { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.session.db.write(&self.batch, self.durability)?;
        self.batch.clear();
        self.committed = self.entries;
        self.batches += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            self.commit()?;
        }
        Ok(self.session.db.sync()?)
    }
}
/// Counts what is read, for the progress.
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
