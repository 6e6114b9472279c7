//! The list of a database's files, for status pages.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use frondb::{Db, Error, FileInfo, FileKind};

use crate::call::create;
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error};
use crate::handle;
use crate::list::{self, List, frondb_list};

/// A file with its path as a C string.
type Named = (CString, FileInfo);

/// The kind of a file.
pub type frondb_file_kind = u32;
/// Data of all trees.
pub const FRONDB_FILE_DATA: frondb_file_kind = 0;
/// A segment of the log, in use or kept for reuse.
pub const FRONDB_FILE_LOG: frondb_file_kind = 1;
/// The manifest, which lists all trees and runs, or one of its superblocks.
pub const FRONDB_FILE_MANIFEST: frondb_file_kind = 2;
/// A small file: a lock file, the mark of the durable end of the log, the owner of the log
/// directory, or the list of the backups.
pub const FRONDB_FILE_MARK: frondb_file_kind = 3;

/// A file of a database.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_file_info {
    /// The path: the directory as it was opened, and the name of the file. Valid until the list
    /// is freed.
    path: *const c_char,
    /// The kind of the file.
    kind: frondb_file_kind,
    /// The length, bytes.
    bytes: u64,
    /// Bytes allocated on the device; less than the length if the file has holes.
    allocated_bytes: u64,
}

/// Lists the files of the database, ordered by kind and path. frondb_list_get_file() reads the
/// items.
///
/// Threads: any.
///
/// Errors: FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_files(
    db: *mut frondb_db,
    files: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    create(files, || {
        let files = handle::shared::<Db>(db)?.files()?;
        let named = files.into_iter().map(|file| (c_string(&file.path), file));
        Ok(List::of(named.collect::<Vec<Named>>()))
    })
}

/// Reads item `at`, from 0, of a list of files.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are not files.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_get_file(
    list: *mut frondb_list,
    at: usize,
    info: Option<&mut MaybeUninit<frondb_file_info>>,
) -> *mut frondb_error {
    list::read(list, at, info, |(path, file): &Named| {
        let kind = match file.kind {
            FileKind::Data => FRONDB_FILE_DATA,
            FileKind::Log => FRONDB_FILE_LOG,
            FileKind::Manifest => FRONDB_FILE_MANIFEST,
            FileKind::Mark => FRONDB_FILE_MARK,
            other => return Err(Error::internal(format!("a new kind of file: {other:?}"))),
        };
        let (bytes, allocated_bytes) = (file.bytes, file.allocated_bytes);
        Ok(frondb_file_info { path: path.as_ptr(), kind, bytes, allocated_bytes })
    })
}
