//! The part of `lmdb.h` (0.9.24) that the adapter needs, declared by hand.
//!
//! Every function that returns an `int` returns 0 or an error number; [`mdb_strerror`] returns the
//! text of an error number. Bytes that the `get` functions return are in the map, and valid until
//! the transaction ends or, in a write transaction, until the next write.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! opaque {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub(super) struct $name { _opaque: [u8; 0] }
    )* };
}

opaque!(MDB_env, MDB_txn, MDB_cursor);

pub(super) type MDB_dbi = c_uint;

/// A byte string: its length and its address.
#[repr(C)]
pub(super) struct MDB_val {
    pub(super) mv_size: usize,
    pub(super) mv_data: *mut c_void,
}

pub(super) const MDB_NOSYNC: c_uint = 0x1_0000;
pub(super) const MDB_RDONLY: c_uint = 0x2_0000;
pub(super) const MDB_NOTLS: c_uint = 0x20_0000;
pub(super) const MDB_NORDAHEAD: c_uint = 0x80_0000;
/// For `mdb_dbi_open`.
pub(super) const MDB_CREATE: c_uint = 0x4_0000;
pub(super) const MDB_NOTFOUND: c_int = -30_798;

/// Members of `MDB_cursor_op`, counted from `MDB_FIRST = 0`.
pub(super) const MDB_FIRST: c_uint = 0;
pub(super) const MDB_LAST: c_uint = 6;
pub(super) const MDB_NEXT: c_uint = 8;
pub(super) const MDB_SET_RANGE: c_uint = 17;

#[link(name = "lmdb")]
unsafe extern "C" {
    pub(super) fn mdb_strerror(err: c_int) -> *mut c_char;
    pub(super) fn mdb_env_create(env: *mut *mut MDB_env) -> c_int;
    pub(super) fn mdb_env_open(
        env: *mut MDB_env,
        path: *const c_char,
        flags: c_uint,
        mode: u32,
    ) -> c_int;
    pub(super) fn mdb_env_close(env: *mut MDB_env);
    pub(super) fn mdb_env_sync(env: *mut MDB_env, force: c_int) -> c_int;
    pub(super) fn mdb_env_set_mapsize(env: *mut MDB_env, size: usize) -> c_int;
    pub(super) fn mdb_env_set_maxdbs(env: *mut MDB_env, dbs: MDB_dbi) -> c_int;
    pub(super) fn mdb_txn_begin(
        env: *mut MDB_env,
        parent: *mut MDB_txn,
        flags: c_uint,
        txn: *mut *mut MDB_txn,
    ) -> c_int;
    pub(super) fn mdb_txn_commit(txn: *mut MDB_txn) -> c_int;
    pub(super) fn mdb_txn_abort(txn: *mut MDB_txn);
    pub(super) fn mdb_txn_reset(txn: *mut MDB_txn);
    pub(super) fn mdb_txn_renew(txn: *mut MDB_txn) -> c_int;
    pub(super) fn mdb_dbi_open(
        txn: *mut MDB_txn,
        name: *const c_char,
        flags: c_uint,
        dbi: *mut MDB_dbi,
    ) -> c_int;
    pub(super) fn mdb_get(
        txn: *mut MDB_txn,
        dbi: MDB_dbi,
        key: *mut MDB_val,
        data: *mut MDB_val,
    ) -> c_int;
    pub(super) fn mdb_put(
        txn: *mut MDB_txn,
        dbi: MDB_dbi,
        key: *mut MDB_val,
        data: *mut MDB_val,
        flags: c_uint,
    ) -> c_int;
    pub(super) fn mdb_del(
        txn: *mut MDB_txn,
        dbi: MDB_dbi,
        key: *mut MDB_val,
        data: *mut MDB_val,
    ) -> c_int;
    pub(super) fn mdb_cursor_open(
        txn: *mut MDB_txn,
        dbi: MDB_dbi,
        cursor: *mut *mut MDB_cursor,
    ) -> c_int;
    pub(super) fn mdb_cursor_close(cursor: *mut MDB_cursor);
    pub(super) fn mdb_cursor_get(
        cursor: *mut MDB_cursor,
        key: *mut MDB_val,
        data: *mut MDB_val,
        op: c_uint,
    ) -> c_int;
}
