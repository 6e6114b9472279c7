//! `dump`: a tree, or a range of it, to a file.
//!
//! The cursor shows one fixed state, so a dump is of one moment. A file gets its name only when it
//! is complete and synced; before, it is `NAME.partial`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use frondb::Tree;
use serde_json::json;

use super::session::{Bounds, Session};
use crate::args::{Common, Dump};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::records::{Format, TextOptions, writer};

/// Writes a dump.
pub(crate) fn dump(common: &Common, args: &Dump) -> Result<(), Failure> {
    let session = Session::open(common, &args.tree.dir)?;
    let tree = session.tree(&args.tree.tree)?;
    let bounds = session.bounds(&args.range)?;
    let entries = if args.file == Path::new("-") {
        write_entries(common, args, &tree, &bounds, std::io::stdout().lock())?
    } else {
        write_file(common, args, &tree, &bounds)
            .map_err(|failure| failure.context(args.file.display()))?
    };
    session.close()?;
    if args.file == Path::new("-") {
        return Ok(());
    }
    let mut out = Output::new(common);
    let result = json!({ "file": args.file, "entries": entries });
    out.line(&result, |_| format!("dumped {entries} entries to {}", args.file.display()))?;
    out.finish()
}

fn write_file(common: &Common, args: &Dump, tree: &Tree, bounds: &Bounds) -> Result<u64, Failure> {
    let partial = args.file.with_file_name({
        let mut name = OsString::from(args.file.file_name().unwrap_or_default());
        name.push(".partial");
        name
    });
    let file = File::create(&partial)?;
    let entries = write_entries(common, args, tree, bounds, &file)?;
    file.sync_all()?;
    std::fs::rename(&partial, &args.file)?;
    Ok(entries)
}

fn write_entries(
    common: &Common,
    args: &Dump,
    tree: &Tree,
    bounds: &Bounds,
    out: impl Write,
) -> Result<u64, Failure> {
    let format = Format::of(args.form.format, Some(&args.file));
    let text = TextOptions {
        delimiter: format.delimiter(),
        header: !args.form.no_header,
        key_column: "1".into(),
        value_column: None,
        keys: common.keys,
        values: common.values,
    };
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let mut records = writer(format, &text, &mut out)?;
    let total = tree.estimate(&bounds.lo, bounds.hi.as_deref())?.entries;
    let mut progress = Progress::entries(common, total);
    let mut cursor = tree.cursor_with(bounds.cursor())?;
    let mut entries = 0;
    while cursor.next()? {
        // The value may be read from disk, which moves nothing else: the key is copied before.
        let key = cursor.key().to_vec();
        records.write(&key, cursor.value()?)?;
        entries += 1;
        progress.at(entries, entries);
    }
    records.finish()?;
    drop(records);
    out.flush()?;
    Ok(entries)
}
