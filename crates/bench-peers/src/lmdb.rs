//! LMDB as an implementation of the benchmark's traits: a B-tree in a memory-mapped file.
//!
//! LMDB has no option for its memory: it uses the page cache, which the cgroup limits. Pages of the
//! map count as resident memory while they are mapped. Readahead is off, as the manual advises for
//! data larger than memory.

mod ffi;

use std::ffi::{CStr, CString, c_int, c_uint};
use std::path::Path;
use std::ptr;

use frondb_bench::engine::{
    Batch, Change, Codec, Digest, Durability, Engine, EngineKind, EngineOptions, Reader,
};
use frondb_bench::{Error, Result};

use ffi::*;

/// The entry of LMDB in the registry.
pub(crate) const LMDB: EngineKind = EngineKind {
    name: "lmdb",
    describe: |_| {
        "lmdb 0.9.24: page cache, no readahead, NOSYNC unless commits are synced".to_owned()
    },
    codecs: &[Codec::Standard, Codec::None],
    open,
};

/// Address space for the map; the file grows as it is written.
const MAP_BYTES: usize = 1 << 40;

struct Lmdb {
    env: *mut MDB_env,
    trees: Vec<MDB_dbi>,
    synced: bool,
}

// SAFETY: an LMDB environment may be used by several threads at the same time; write transactions
// exclude each other inside it, and each transaction is used by the thread that began it.
unsafe impl Sync for Lmdb {}

fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
    let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(Error::engine)?;
    let synced = options.durability == Durability::Sync;
    let sync = if synced { 0 } else { MDB_NOSYNC };
    let mut env = ptr::null_mut();
    // SAFETY: the environment is set up before it is opened, as lmdb.h requires; from here on the
    // drop of `lmdb` closes it, whether it was opened or not. Names and path outlive the calls.
    unsafe {
        check(mdb_env_create(&raw mut env))?;
        let mut lmdb = Lmdb { env, trees: Vec::new(), synced };
        check(mdb_env_set_mapsize(env, MAP_BYTES))?;
        check(mdb_env_set_maxdbs(env, options.trees.len() as MDB_dbi))?;
        check(mdb_env_open(env, path.as_ptr(), MDB_NOTLS | MDB_NORDAHEAD | sync, 0o644))?;
        let txn = Txn::begin(env, 0)?;
        for tree in &options.trees {
            let name = CString::new(tree.name).map_err(Error::engine)?;
            let mut dbi = 0;
            check(mdb_dbi_open(txn.0, name.as_ptr(), MDB_CREATE, &raw mut dbi))?;
            lmdb.trees.push(dbi);
        }
        txn.commit()?;
        Ok(Box::new(lmdb))
    }
}

impl Engine for Lmdb {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        if (durability == Durability::Sync) != self.synced {
            return Err(Error::engine(
                "this adapter sets the durability when it opens the database",
            ));
        }
        let txn = Txn::begin(self.env, 0)?;
        for change in batch.changes() {
            match change {
                Change::Put { tree, key, value } => {
                    let (mut key, mut value) = (val(key), val(value));
                    // SAFETY: the transaction is live; LMDB copies key and value.
                    check(unsafe {
                        mdb_put(txn.0, self.trees[tree], &raw mut key, &raw mut value, 0)
                    })?;
                }
                Change::Delete { tree, key } => {
                    let mut key = val(key);
                    // SAFETY: as above; without duplicates LMDB does not read the data.
                    let code =
                        unsafe { mdb_del(txn.0, self.trees[tree], &raw mut key, ptr::null_mut()) };
                    found(code)?;
                }
            }
        }
        txn.commit()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let txn = Txn::begin(self.env, MDB_RDONLY)?;
        // SAFETY: a live read transaction, parked until the first read renews it.
        unsafe { mdb_txn_reset(txn.0) };
        Ok(Box::new(LmdbReader { engine: self, txn }))
    }

    fn is_settled(&self) -> Result<bool> {
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        // SAFETY: the environment is open.
        check(unsafe { mdb_env_sync(self.env, 1) })
    }

    fn stats(&self) -> String {
        String::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: readers borrow the engine, so no transaction is left; closed once.
        unsafe { mdb_env_close(self.env) }
    }
}

/// A transaction, aborted on drop unless it was committed.
struct Txn(*mut MDB_txn);

impl Txn {
    fn begin(env: *mut MDB_env, flags: c_uint) -> Result<Self> {
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open for as long as the engine is.
        check(unsafe { mdb_txn_begin(env, ptr::null_mut(), flags, &raw mut txn) })?;
        Ok(Self(txn))
    }

    fn commit(self) -> Result<()> {
        let txn = self.0;
        std::mem::forget(self);
        // SAFETY: the transaction is live until this call, which frees it whatever the result.
        check(unsafe { mdb_txn_commit(txn) })
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        // SAFETY: begun and neither committed nor aborted.
        unsafe { mdb_txn_abort(self.0) }
    }
}

/// A read transaction that is parked (reset) between reads. Renewing it is LMDB's cheap way to read
/// the latest state.
struct LmdbReader<'a> {
    engine: &'a Lmdb,
    txn: Txn,
}

impl LmdbReader<'_> {
    /// Renews the transaction for one read and parks it again.
    fn read<T>(&mut self, read: impl FnOnce(*mut MDB_txn) -> Result<T>) -> Result<T> {
        // SAFETY: the transaction is parked, as it is between reads.
        check(unsafe { mdb_txn_renew(self.txn.0) })?;
        let result = read(self.txn.0);
        // SAFETY: the transaction is live; the value that `read` returns borrows
        // nothing from it.
        unsafe { mdb_txn_reset(self.txn.0) };
        result
    }

    fn edge(&mut self, tree: usize, op: c_uint) -> Result<Option<Vec<u8>>> {
        let dbi = self.engine.trees[tree];
        self.read(|txn| {
            let cursor = Cursor::open(txn, dbi)?;
            Ok(cursor.get(&[], op)?.map(|(key, _)| key.to_vec()))
        })
    }
}

impl Reader for LmdbReader<'_> {
    fn get(&mut self, tree: usize, key: &[u8], digest: &mut Digest) -> Result<bool> {
        let dbi = self.engine.trees[tree];
        self.read(|txn| {
            let (mut wanted, mut value) = (val(key), val(&[]));
            // SAFETY: a live transaction; the value lies in the map until the transaction is
            // parked, and is used before that.
            unsafe {
                let there = found(mdb_get(txn, dbi, &raw mut wanted, &raw mut value))?;
                if there {
                    digest.add(key, bytes(&value));
                }
                Ok(there)
            }
        })
    }

    fn scan(&mut self, tree: usize, from: &[u8], limit: u64, digest: &mut Digest) -> Result<u64> {
        let dbi = self.engine.trees[tree];
        self.read(|txn| {
            let cursor = Cursor::open(txn, dbi)?;
            // LMDB refuses to seek to an empty key.
            let mut op = if from.is_empty() { MDB_FIRST } else { MDB_SET_RANGE };
            let mut items = 0;
            while items < limit {
                let Some((key, value)) = cursor.get(from, op)? else { break };
                digest.add(key, value);
                items += 1;
                op = MDB_NEXT;
            }
            Ok(items)
        })
    }

    fn first_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        self.edge(tree, MDB_FIRST)
    }

    fn last_key(&mut self, tree: usize) -> Result<Option<Vec<u8>>> {
        self.edge(tree, MDB_LAST)
    }
}

/// A cursor of a read transaction, closed before the transaction is parked.
struct Cursor(*mut MDB_cursor);

impl Cursor {
    fn open(txn: *mut MDB_txn, dbi: MDB_dbi) -> Result<Self> {
        let mut cursor = ptr::null_mut();
        // SAFETY: a live transaction, and a tree that was opened with the environment.
        check(unsafe { mdb_cursor_open(txn, dbi, &raw mut cursor) })?;
        Ok(Self(cursor))
    }

    /// Moves the cursor. The returned bytes are in the map, and valid until the transaction is
    /// parked.
    fn get(&self, from: &[u8], op: c_uint) -> Result<Option<(&[u8], &[u8])>> {
        let (mut key, mut value) = (val(from), val(&[]));
        // SAFETY: the cursor and its transaction are live; LMDB reads `from` only during the call.
        unsafe {
            let there = found(mdb_cursor_get(self.0, &raw mut key, &raw mut value, op))?;
            Ok(there.then(|| (bytes(&key), bytes(&value))))
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, while its transaction is live.
        unsafe { mdb_cursor_close(self.0) }
    }
}

fn val(bytes: &[u8]) -> MDB_val {
    MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

/// Returns the bytes of a value that LMDB has filled in.
///
/// # Safety
/// The bytes stay valid and unchanged for `'a`.
unsafe fn bytes<'a>(val: &MDB_val) -> &'a [u8] {
    if val.mv_size == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(val.mv_data.cast(), val.mv_size) }
}

/// Returns whether the key exists, by the result of a call.
fn found(code: c_int) -> Result<bool> {
    if code == MDB_NOTFOUND {
        return Ok(false);
    }
    check(code).map(|()| true)
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: LMDB returns a static text for any number.
    let text = unsafe { CStr::from_ptr(mdb_strerror(code)) };
    Err(Error::engine(text.to_string_lossy()))
}
