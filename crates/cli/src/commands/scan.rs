//! `scan`: prints keys and values in order.

use frondb::Cursor;
use serde_json::json;

use super::session::Session;
use crate::args::{Common, Scan};
use crate::failure::Failure;
use crate::output::Output;

/// Prints the entries of a range, or their number.
pub(crate) fn scan(common: &Common, args: &Scan) -> Result<(), Failure> {
    let session = Session::open(common, &args.tree.dir)?;
    let bounds = session.bounds(&args.range)?;
    let mut cursor = session.tree(&args.tree.tree)?.cursor_with(bounds.cursor())?;
    let mut out = Output::new(common);
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut count = 0;
    while count < limit && step(&mut cursor, args.reverse)? {
        count += 1;
        if !args.count {
            print(&mut out, common, args, &cursor)?;
        }
    }
    drop(cursor);
    session.close()?;
    if args.count {
        out.line(&json!({ "count": count }), |_| count.to_string())?;
    }
    out.finish()
}

fn step(cursor: &mut Cursor, reverse: bool) -> Result<bool, Failure> {
    Ok(if reverse { cursor.prev()? } else { cursor.next()? })
}

fn print(out: &mut Output, common: &Common, args: &Scan, cursor: &Cursor) -> Result<(), Failure> {
    let key = common.keys.encode(cursor.key());
    if args.keys_only {
        return out.line(&json!({ "key": key }), |_| key.clone());
    }
    let value = common.values.encode(cursor.value()?);
    out.line(&json!({ "key": key, "value": value }), |_| format!("{key}\t{value}"))
}
