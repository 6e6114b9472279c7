//! `get`, `put`, `del`: single keys, and ranges to delete.

use std::io::Read;
use std::path::Path;

use frondb::Batch;
use serde_json::json;

use super::session::Session;
use crate::args::{Common, Del, Get, Put};
use crate::encoding::shortened;
use crate::failure::Failure;
use crate::output::Output;

/// Prints the value of a key.
pub(crate) fn get(common: &Common, args: &Get) -> Result<(), Failure> {
    let session = Session::open(common, &args.tree.dir)?;
    let key = session.key(&args.key)?;
    let value = session.tree(&args.tree.tree)?.get(&key)?;
    session.close()?;
    let Some(value) = value else {
        return Err(Failure::not_found(format!("key {} does not exist", shortened(&args.key))));
    };
    let mut out = Output::new(common);
    if args.raw {
        out.raw(&value)?;
    } else {
        let text = common.values.encode(&value);
        out.line(&json!({ "key": args.key, "value": text }), |_| text.clone())?;
    }
    out.finish()
}

/// Sets the value of a key, durably.
pub(crate) fn put(common: &Common, args: &Put) -> Result<(), Failure> {
    let value = match (&args.file, &args.value) {
        (Some(file), _) => read_value(file)?,
        (None, value) => common.values.decode(value.as_deref().unwrap_or_default())?,
    };
    let session = Session::open(common, &args.tree.dir)?;
    let key = session.key(&args.key)?;
    session.tree(&args.tree.tree)?.put(&key, &value)?;
    session.close()?;
    let mut out = Output::new(common);
    out.result(&json!({ "key": args.key, "value_bytes": value.len() }))?;
    out.finish()
}

/// Reads the bytes of a file, or of standard input for `-`. Reads at most one byte more than the
/// largest value has, so that an endless stream ends in the engine's error about the length.
fn read_value(file: &Path) -> Result<Vec<u8>, Failure> {
    let limit = frondb::limits::VALUE_BYTES_MAX as u64 + 1;
    let mut value = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut value)?;
    } else {
        let name = |error| Failure::from(error).about(file).context(file.display());
        std::fs::File::open(file)
            .and_then(|file| file.take(limit).read_to_end(&mut value))
            .map_err(name)?;
    }
    Ok(value)
}

/// Deletes keys or a range, durably: all of them or none.
pub(crate) fn del(common: &Common, args: &Del) -> Result<(), Failure> {
    let range = &args.range;
    let by_range = range.from.is_some() || range.to.is_some() || range.prefix.is_some();
    if args.key.is_empty() && !by_range {
        return Err(Failure::usage("name keys or a range; --prefix '' means all keys"));
    }
    let session = Session::open(common, &args.tree.dir)?;
    let tree = session.tree(&args.tree.tree)?;
    let mut batch = Batch::new();
    for key in &args.key {
        batch.delete(&tree, &session.key(key)?);
    }
    if by_range {
        let bounds = session.bounds(range)?;
        batch.delete_range(&tree, &bounds.lo, bounds.hi.as_deref());
    }
    session.commit(&batch)?;
    session.close()?;
    let mut out = Output::new(common);
    out.result(&json!({ "keys": args.key.len(), "range": by_range }))?;
    out.finish()
}
