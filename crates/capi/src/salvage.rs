//! Salvage: what can be read of a damaged database, into a new one.

use std::fmt::Write;
use std::mem::MaybeUninit;

use std::ffi::{CString, c_void};

use frondb::{DamagedRange, Db, Options, SalvageReport};

use crate::call::{call, number};
use crate::error::{c_string, frondb_error};
use crate::figures::{self, frondb_figures};
use crate::handle;
use crate::list::{self, frondb_list};
use crate::options::{OptionsObject, frondb_options};
use crate::slice::{Text, cleared};
use crate::verify::frondb_progress;

/// Saves what can be read of the database in the directory `from`, which is not changed, into a new database in the
/// directory `to`, which must be empty or missing.
///
/// Every row that is saved under the name of its tree is what was committed last. A key range in which a block
/// cannot be read is left out whole. Where the manifest or the log had to be cut, no row is certain; then trees are
/// saved only if `uncertain` is true, as NAME.uncertain. Where nothing is saved nothing is made.
///
/// Until all is saved `to` has nothing but a directory `unfinished-salvage`, and opens as no database. A call that fails
/// removes it; a process that is killed leaves it.
///
/// `options` may be NULL for the defaults; they are those of both databases, with the log directory of `from`.
/// `counts` has `trees` and `rows` that were saved, `repaired` (damage of manifest and log that was put right), `cut`
/// (places where they were cut) and `lost` (strings of `losses`). `losses` has a sentence for each cut, for each key range
/// of a tree that is lost, with its bounds in hexadecimal digits and the place of the damage, and for each
/// prepared transaction. If it is empty, everything was saved. Each of them may be NULL if it is not wanted, and so
/// may `progress`. Damage is no error of this function but in the results.
///
/// Threads: any.
///
/// Errors: FRONDB_EXISTS if `to` has files; FRONDB_INVALID if it lies in `from` or in the directory of the log, or one of
/// those in it; FRONDB_NOT_FOUND if there is no database in `from`, or no log directory; FRONDB_BUSY if it is open;
/// FRONDB_CORRUPTION if nothing can be read of it; FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_salvage(
    from: Text,
    to: Text,
    options: *mut frondb_options,
    uncertain: bool,
    progress: frondb_progress,
    user_data: *mut c_void,
    counts: Option<&mut MaybeUninit<*mut frondb_figures>>,
    losses: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| {
        let (counts, losses) = (cleared(counts), cleared(losses));
        let options = match handle::optional::<OptionsObject>(options)? {
            Some(options) => options.0.clone(),
            None => Options::new(),
        };
        let mut shown = (String::new(), CString::default());
        let mut tell = |tree: &str, done, to_do| {
            let Some(progress) = progress else { return true };
            if shown.0 != tree {
                shown = (tree.to_owned(), c_string(tree));
            }
            progress(user_data, shown.1.as_ptr(), done, to_do) == 0
        };
        let report = Db::salvage(from.path()?, to.path()?, &options, uncertain, &mut tell)?;
        let sentences = sentences(&report);
        if counts.is_some() {
            figures::give(counts, figures_of(&report, sentences.len()), None)?;
        }
        if losses.is_some() {
            list::give(losses, sentences)?;
        }
        Ok(())
    })
}

fn figures_of(report: &SalvageReport, lost: usize) -> Vec<(&'static str, u64)> {
    let saved = report.trees.iter().filter(|tree| tree.saved_as.is_some()).count();
    vec![
        ("trees", number(saved)),
        ("rows", report.trees.iter().map(|tree| tree.rows).sum()),
        ("repaired", number(report.repaired.len())),
        ("cut", number(report.cut.len())),
        ("lost", number(lost)),
    ]
}

/// One for each loss.
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
