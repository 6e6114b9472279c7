//! Salvage: saves the readable data of a damaged database into a new one.

use std::fmt::Write;
use std::mem::MaybeUninit;

use std::ffi::{CString, c_void};

use frondb::{DamagedRange, Db, Options, SalvageReport};

use crate::call::{call, number};
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::list::{self, frondb_list};
use crate::options::{OptionsObject, frondb_options};
use crate::slice::{Text, cleared};
use crate::stats::{self, frondb_stats};
use crate::verify::frondb_progress;

/// Saves the readable data of the database in the directory `from` into a new database in the
/// directory `to`, which must be empty or missing. `from` is not changed.
///
/// A row that is saved under its tree's own name is certain: it is the version that was committed
/// last. Key ranges with unreadable blocks are omitted entirely. If the manifest or the log had to
/// be cut because of damage, no row is certain; trees are then saved only if `uncertain` is true,
/// under the name NAME.uncertain. If nothing is saved, nothing is created.
///
/// Until the salvage is complete, `to` contains only a directory `unfinished-salvage` and is not a
/// database. A failed call removes that directory; a killed process leaves it.
///
/// `options` may be NULL for the defaults. They apply to both databases, except the log directory,
/// which is the log directory of `from`. `counts` has the `trees` and `rows` saved, `repaired`
/// (repairs of manifest and log), `cut` (places where they were cut) and `lost` (the number of
/// `losses`). `losses` describes in words each cut, each lost key range of a tree, with its bounds
/// in hexadecimal digits and the place of the damage, and each prepared transaction. If `losses` is
/// empty, everything was saved. Damage is not an error of this function. `progress` receives for
/// each tree its new name, with bytes while the tree is checked, and then with rows while they are
/// saved. `counts`, `losses` and `progress` may be NULL.
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS if `to` contains files; FRONDB_INVALID if `to` lies in `from` or in the
/// log directory, or contains one of them; FRONDB_NOT_FOUND if `from` has no database, or there is
/// no log directory; FRONDB_BUSY if the database is open; FRONDB_CORRUPTION if nothing of the
/// database can be read; FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_salvage(
    from: Text,
    to: Text,
    options: *mut frondb_options,
    uncertain: bool,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_stats>>,
    losses: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| {
        let (counts, losses) = (cleared(counts), cleared(losses));
        let options = match handle::optional::<OptionsObject>(options)? {
            Some(options) => options.0.clone(),
            None => Options::new(),
        };
        let mut shown = (String::new(), CString::default());
        let mut report = |tree: &str, done, to_do| {
            let Some(progress) = progress else { return true };
            if shown.0 != tree {
                shown = (tree.to_owned(), c_string(tree));
            }
            progress(user_data, shown.1.as_ptr(), done, to_do) == 0
        };
        let report = Db::salvage(from.path()?, to.path()?, &options, uncertain, &mut report)?;
        let sentences = sentences(&report);
        if counts.is_some() {
            stats::give(counts, counts_of(&report, sentences.len()), None)?;
        }
        if losses.is_some() {
            list::give(losses, sentences)?;
        }
        Ok(())
    })
}

fn counts_of(report: &SalvageReport, lost: usize) -> Vec<(&'static str, u64)> {
    let saved = report.trees.iter().filter(|tree| tree.saved_as.is_some()).count();
    vec![
        ("trees", number(saved)),
        ("rows", report.trees.iter().map(|tree| tree.rows).sum()),
        ("repaired", number(report.repaired.len())),
        ("cut", number(report.cut.len())),
        ("lost", number(lost)),
    ]
}

/// Returns one sentence for each loss.
fn sentences(report: &SalvageReport) -> Vec<String> {
    let mut sentences: Vec<String> =
        report.cut.iter().map(|error| format!("no row is certain: {error}")).collect();
    for tree in &report.trees {
        let lost = tree.lost.iter().map(|range| of_range(&tree.name, range));
        sentences.extend(lost);
    }
    let prepared = report.prepared.iter().map(|name| format!("prepared transaction {}", hex(name)));
    sentences.extend(prepared);
    sentences
}

fn of_range(tree: &str, range: &DamagedRange) -> String {
    let hi =
        range.hi.as_ref().map_or_else(|| "the end".to_owned(), |hi| format!("before {}", hex(hi)));
    format!("tree {tree}: keys from {} to {hi}: {}", hex(&range.lo), range.error)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("0x"), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
