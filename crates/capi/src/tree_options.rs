//! Options of a tree: an object with setters.

use std::mem::MaybeUninit;

use frondb::{Result, TreeOptions};

use crate::call::{call, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::Text;

/// Options with which a tree is created; they are stored with the tree. frondb_db_create_tree()
/// checks the values. May be used for several trees.
pub struct frondb_tree_options {
    _private: [u8; 0],
}

object!(frondb_tree_options, TreeOptionsObject, TreeOptions);

/// The options set so far.
pub struct TreeOptionsObject(pub(crate) TreeOptions);

/// Returns the options of a handle for a new tree; the defaults for NULL.
pub(crate) fn new_tree_options(options: *mut frondb_tree_options) -> Result<TreeOptions> {
    Ok(match handle::optional::<TreeOptionsObject>(options)? {
        Some(options) => options.0.clone(),
        None => TreeOptions::new(),
    })
}

pub(crate) fn make_tree_options(
    place: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
    options: impl FnOnce() -> Result<TreeOptions>,
) -> *mut frondb_error {
    create(place, || Ok(TreeOptionsObject(options()?)))
}

fn set(
    options: *mut frondb_tree_options,
    change: impl FnOnce(TreeOptions) -> Result<TreeOptions>,
) -> *mut frondb_error {
    call(|| {
        let mut options = handle::exclusive::<TreeOptionsObject>(options)?;
        options.0 = change(options.0.clone())?;
        Ok(())
    })
}

/// Makes options of a primary or unique index: point reads by full key, values stored with the
/// keys. Free the options with frondb_tree_options_free().
///
/// Threads: any. One thread at a time may use the options; a second one gets FRONDB_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make_tree_options(options, || Ok(TreeOptions::new()))
}

/// Makes options of a non-unique secondary index, which is scanned by prefix, without point reads
/// of full keys; so its consolidated data has no filters.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_new_secondary(
    options: Option<&mut MaybeUninit<*mut frondb_tree_options>>,
) -> *mut frondb_error {
    make_tree_options(options, || Ok(TreeOptions::secondary()))
}

/// Frees options; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_free(options: *mut frondb_tree_options) -> frondb_kind {
    free::<TreeOptionsObject>(options)
}

/// Sets an option by its name; docs/operating/options.md lists the names and the codecs. `value` is
/// a text: a number, for a size also with a suffix, such as K or KiB; for the filter "none",
/// "full", "runs" or "prefix:N"; for a codec for example "zstd:3" or "aggressive". "0" or "default"
/// means the default.
///
/// "codec" sets the codec of bases, which hold consolidated data. It also turns the compression of
/// runs off (for "none") or on, and with a dictionary raises the smallest leaf to 64 MiB.
/// "block_bytes" sets the size of base blocks, where "0" means the size that suits the codec; so
/// set "block_bytes" after the codec. For the smallest files, set "codec" to "aggressive" and then
/// "block_bytes" to "0": rows are first written with a quick codec, and packed in the background
/// with a dictionary that is trained from the tree's data.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a name that does not exist, or a value that is not in the range of
/// the option, which the message names.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set(
    options: *mut frondb_tree_options,
    name: Text,
    value: Text,
) -> *mut frondb_error {
    set(options, |options| options.set(name.str("name of the option")?, value.str("value")?))
}

/// Sets the tree's update function by the name and the version with which
/// frondb_options_add_update_fn() has registered it.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_options_set_update_fn(
    options: *mut frondb_tree_options,
    name: Text,
    version: u32,
) -> *mut frondb_error {
    set(options, |options| Ok(options.update_fn(name.str("name of the update function")?, version)))
}
