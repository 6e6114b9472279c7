//! `prepared`: lists the prepared transactions, which wait for their coordinator, and commits or
//! rolls back one of them.

use frondb::Durability;
use serde_json::json;

use super::session::Session;
use crate::args::{Common, Prepared};
use crate::failure::Failure;
use crate::output::Output;

/// Lists the prepared transactions, or commits or rolls back one of them. Names are in the encoding
/// of keys.
pub(crate) fn prepared(common: &Common, args: &Prepared) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    let mut out = Output::new(common);
    let (name, commits) = match (&args.commit, &args.rollback) {
        (Some(name), _) => (name, true),
        (None, Some(name)) => (name, false),
        (None, None) => {
            for xid in session.db.prepared() {
                let name = common.keys.encode(&xid);
                out.line(&json!({ "transaction": name }), |_| name.clone())?;
            }
            session.close()?;
            return out.finish();
        }
    };
    let xid = common.keys.decode(name)?;
    if commits {
        session.db.commit_prepared(&xid, Durability::Sync)?;
    } else {
        session.db.rollback_prepared(&xid)?;
    }
    session.close()?;
    out.result(&json!({ "transaction": name, "committed": commits }))?;
    out.finish()
}
