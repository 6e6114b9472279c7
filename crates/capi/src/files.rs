//! The files that a database owns, to be looked at: for status pages.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;

use frondb::{Db, Error, FileKind};

use crate::call::{call, call_or, free, number};
use crate::db::frondb_db;
use crate::error::{c_string, frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{out, out_handle};

/// A list of files, as of one moment. Free it with frondb_files_free().
pub struct frondb_files {
    _private: [u8; 0],
}

object!(frondb_files, Files, Files);

/// The list.
pub struct Files(Vec<(CString, frondb::FileInfo)>);

/// What a file is for.
pub type frondb_file_kind = u32;
/// Data of all trees.
pub const FRONDB_FILE_DATA: frondb_file_kind = 0;
/// A segment of the log, in use or kept for later.
pub const FRONDB_FILE_LOG: frondb_file_kind = 1;
/// What the data files have and where.
pub const FRONDB_FILE_MANIFEST: frondb_file_kind = 2;
/// A lock or the mark of an owner: a few bytes.
pub const FRONDB_FILE_MARK: frondb_file_kind = 3;

/// A file of a database.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_file_info {
    /// Its path, below the directory that frondb_db_open() was given, or in the log's directory. Good
    /// until the list is freed.
    path: *const c_char,
    /// What it is for.
    kind: frondb_file_kind,
    /// Its length, bytes.
    bytes: u64,
    /// Bytes that it takes on the device: less where it has holes.
    allocated_bytes: u64,
}

/// The files that the database owns, by kind and path.
///
/// Threads: any.
///
/// Errors: FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_files(
    db: *mut frondb_db,
    files: Option<&mut MaybeUninit<*mut frondb_files>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(files)?;
        let files = handle::shared::<Db>(db)?.files()?;
        let named = files.into_iter().map(|file| (c_string(&file.path), file));
        place.write(handle::insert(Files(named.collect()))?);
        Ok(())
    })
}

/// How many there are; 0 for what is no list.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_files_count(files: *mut frondb_files) -> usize {
    call_or(0, || Ok(handle::shared::<Files>(files)?.0.len()))
}

/// One of the list.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if there are not so many.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_files_get(
    files: *mut frondb_files,
    at: usize,
    info: Option<&mut MaybeUninit<frondb_file_info>>,
) -> *mut frondb_error {
    call(|| {
        let (place, files) = (out(info)?, handle::shared::<Files>(files)?);
        let message = || format!("there is no file {at} of {}", number(files.0.len()));
        let (path, file) = files.0.get(at).ok_or_else(|| Error::invalid(message()))?;
        let kind = match file.kind {
            FileKind::Data => FRONDB_FILE_DATA,
            FileKind::Log => FRONDB_FILE_LOG,
            FileKind::Manifest => FRONDB_FILE_MANIFEST,
            FileKind::Mark => FRONDB_FILE_MARK,
            other => return Err(Error::internal(format!("a new kind of file: {other:?}"))),
        };
        let (bytes, allocated_bytes) = (file.bytes, file.allocated_bytes);
        place.write(frondb_file_info { path: path.as_ptr(), kind, bytes, allocated_bytes });
        Ok(())
    })
}

/// Frees a list. NULL is ignored.
///
/// Threads: any; the last call with this list.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_files_free(files: *mut frondb_files) -> frondb_kind {
    free::<Files>(files)
}
