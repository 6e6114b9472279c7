//! `load`: a file of entries into a tree.
//!
//! Batches are committed without a sync each, and one sync at the end makes all of them durable:
//! loading then runs at the engine's pace and not at the disk's latency. A load that fails leaves
//! the batches before it; running it again puts the same entries once more, which changes nothing.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use frondb::{Batch, Durability, ErrorKind, Tree};
use serde_json::json;

use super::session::{Session, tree_options};
use crate::args::{Common, Load, SyncArg};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::records::{Format, TextOptions, reader};

/// A batch is committed when it has this many bytes, whatever the number of its entries: one record
/// of the log holds it.
const BATCH_BYTES: usize = 4 << 20;

/// Loads a file.
pub(crate) fn load(common: &Common, args: &Load) -> Result<(), Failure> {
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
    let format = Format::of(args.form.format, (!from_stdin).then_some(&args.file));
    let text = TextOptions {
        delimiter: format.delimiter(),
        header: !args.form.no_header,
        key_column: args.key_column.clone(),
        value_column: args.value_column.clone(),
        keys: common.keys,
        values: common.values,
    };
    let (input, position) = Counted::new(input);
    let mut records =
        reader(format, &text, BufReader::with_capacity(1 << 18, input)).map_err(name)?;

    let session = Session::open(common, &args.tree.dir)?;
    let tree = open_or_create(&session, args)?;
    let mut progress = Progress::bytes(common, total);
    let mut loader = Loader::new(&session, args);
    let loaded = (|| {
        while let Some((key, value)) = records.next().map_err(name)? {
            loader.put(&tree, &key, &value)?;
            progress.at(position.get(), loader.entries);
        }
        loader.finish()
    })();
    drop(progress);
    let (entries, batches) = (loader.committed, loader.batches);
    loaded.map_err(|failure: Failure| {
        failure.context(format!("stopped after {entries} entries were loaded"))
    })?;
    session.close()?;
    let mut out = Output::new(common);
    let result = json!({ "tree": args.tree.tree, "entries": entries, "batches": batches });
    out.line(&result, |_| format!("loaded {entries} entries into {}", args.tree.tree))?;
    out.finish()
}

fn open_or_create(session: &Session<'_>, args: &Load) -> Result<Tree, Failure> {
    let name = &args.tree.tree;
    match session.db.open_tree(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(session.db.create_tree(name, tree_options(&args.options))?)
        }
        // Options that are the same as before change nothing: a load that failed can be run again.
        Ok(tree) if args.options.is_given() && tree.options() != tree_options(&args.options) => {
            Err(Failure::usage(format!(
                "tree {name} exists with other options, and they are fixed"
            )))
        }
        other => Ok(other?),
    }
}

/// Fills batches and commits them.
struct Loader<'a> {
    session: &'a Session<'a>,
    durability: Durability,
    batch: Batch,
    entries_max: usize,
    /// Entries put, committed or not.
    entries: u64,
    committed: u64,
    batches: u64,
}

impl<'a> Loader<'a> {
    fn new(session: &'a Session<'a>, args: &Load) -> Self {
        let durability = match args.sync {
            SyncArg::End => Durability::NoSync,
            SyncArg::Batch => Durability::Sync,
        };
        let entries_max = usize::try_from(args.batch).unwrap_or(usize::MAX);
        let batch = Batch::new();
        Self { session, durability, batch, entries_max, entries: 0, committed: 0, batches: 0 }
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.batch.put(tree, key, value);
        self.entries += 1;
        let full = self.batch.len() >= self.entries_max
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
