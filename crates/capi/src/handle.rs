//! Tables of live objects. A handle that C holds is a number disguised as a pointer. The library
//! looks up the number and never dereferences it, so a stale or wrong handle is an error and not
//! undefined behaviour.
//!
//! ```text
//!   63    56 55          24 23        0        slots of a type, in chunks that never move
//!  +--------+--------------+-----------+      +--------------------------------------+
//!  | type   | generation   | slot      | ---> | lock | generation | memory, object   |
//!  +--------+--------------+-----------+      +--------------------------------------+
//! ```
//! - The type is never 0, so no handle is NULL. On x86-64 the bits of the type make an address that
//!   the processor rejects, so a program that dereferences a handle faults at once. AArch64 ignores
//!   the type; there the address is rarely one that the program has mapped.
//! - A slot's generation increases when its object is removed. Handles of older generations are
//!   stale. A handle value repeats after 2^32 objects in one slot.
//! - A call holds the slot's lock, shared or exclusive, while it uses the object in the slot. It
//!   never waits for the lock: if another thread holds the lock in a conflicting mode, the call
//!   fails with `Busy`. So an object is not freed while another thread works with it, and two
//!   threads never use one cursor at the same time.
//!
//! A lookup costs two atomic operations on a cache line that no other object shares (11 ns).

use std::ops::{Deref, DerefMut};

use frondb::{Error, ErrorKind, Result};
use frondb_core::sync::{Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bits of a handle that hold the slot number: at most 16 Mi objects of one type at a time.
const SLOT_BITS: u32 = 24;
const SLOTS_MAX: u32 = 1 << SLOT_BITS;
const GENERATION_BITS: u32 = 32;
const TYPE_SHIFT: u32 = SLOT_BITS + GENERATION_BITS;
/// A bit that is set in the type byte of every handle, while the bit above it is clear. So bits 63
/// and 62 of a handle differ; in the addresses that x86-64 accepts (canonical ones) they are equal.
const TYPE_MARK: u64 = 0x40;

/// A slot with a number below this keeps the allocation of a freed object for its next object. That
/// saves two calls of the allocator for a cursor that reads one range. Short-lived objects mostly
/// use these slots, because the slot that was freed last is used next.
const KEEPING_SLOTS: u32 = 1 << CHUNK_BITS;

/// Base-2 logarithm of the number of slots in the first chunk. Each further chunk doubles the
/// number of slots of the table.
const CHUNK_BITS: u32 = 6;
const CHUNKS: usize = (SLOT_BITS - CHUNK_BITS + 1) as usize;

const _: () = assert!(usize::BITS == 64, "a handle is 64 bits in the guise of a pointer");

/// A type of objects for which C can have handles.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    /// The opaque type in C.
    type Handle;
    /// The type's number and name.
    const TYPE: Type;
    /// Returns the table of all objects of this type.
    fn table() -> &'static Table<Self>;
}

/// Makes a type an [`Object`] with a table of its own. (The opaque C type is declared at each use
/// of the macro, because cbindgen does not expand macros.)
macro_rules! object {
    ($handle:ident, $object:ty, $kind:ident) => {
        impl crate::handle::Object for $object {
            type Handle = $handle;
            const TYPE: crate::handle::Type = crate::handle::Type::$kind;
            fn table() -> &'static crate::handle::Table<Self> {
                static TABLE: crate::handle::Table<$object> = crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Error = 1,
    Options,
    TreeOptions,
    TransactionOptions,
    Db,
    Tree,
    Batch,
    Buffer,
    Cursor,
    Snapshot,
    Transaction,
    Committing,
    Stats,
    List,
    Tuple,
    Bulk,
    BulkWriter,
    BulkStatement,
    Backup,
}

impl Type {
    const ALL: [(Self, &'static str); 19] = [
        (Self::Error, "frondb_error"),
        (Self::Options, "frondb_options"),
        (Self::TreeOptions, "frondb_tree_options"),
        (Self::TransactionOptions, "frondb_txn_options"),
        (Self::Db, "frondb_db"),
        (Self::Tree, "frondb_tree"),
        (Self::Batch, "frondb_batch"),
        (Self::Buffer, "frondb_buffer"),
        (Self::Cursor, "frondb_cursor"),
        (Self::Snapshot, "frondb_snapshot"),
        (Self::Transaction, "frondb_txn"),
        (Self::Committing, "frondb_committing"),
        (Self::Stats, "frondb_stats"),
        (Self::List, "frondb_list"),
        (Self::Tuple, "frondb_tuple"),
        (Self::Bulk, "frondb_bulk"),
        (Self::BulkWriter, "frondb_bulk_writer"),
        (Self::BulkStatement, "frondb_bulk_statement"),
        (Self::Backup, "frondb_backup"),
    ];

    fn bits(self) -> u64 {
        TYPE_MARK | self as u64
    }

    fn name(self) -> &'static str {
        Self::name_of(self.bits()).unwrap_or("?")
    }

    fn name_of(bits: u64) -> Option<&'static str> {
        Self::ALL.iter().find(|(kind, _)| kind.bits() == bits).map(|(_, name)| *name)
    }
}

/// All objects of one type.
pub(crate) struct Table<T> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Free {
    slots: Vec<u32>,
    /// Number of slots that have been used at least once.
    used: u32,
}

/// The tables that have had an object, for [`frondb_live_handles`]. A table adds itself when it
/// gets its first object, so this module needs no list of the object types.
static TABLES: Mutex<Vec<&'static dyn CountLive>> = Mutex::new(Vec::new());

trait CountLive: Sync {
    /// Returns the number of objects that have a handle.
    fn live(&self) -> u64;
}

impl<T: Send + Sync> CountLive for Table<T> {
    fn live(&self) -> u64 {
        let free = self.free.lock();
        u64::from(free.used) - free.slots.len() as u64
    }
}

/// A slot. It has cache lines of its own, because other threads use the neighbouring slots.
#[repr(align(128))]
struct Slot<T>(RwLock<Entry<T>>);

struct Entry<T> {
    generation: u32,
    /// Memory for an object. A slot may keep this memory without an object (`None` in the box).
    memory: Option<Box<Option<T>>>,
}

impl<T> Entry<T> {
    /// Returns the object of an entry that `check` has accepted.
    #[inline]
    fn lent(&self) -> &T {
        match self.memory.as_deref() {
            Some(Some(object)) => object,
            _ => unreachable!("an entry is checked before it is lent"),
        }
    }

    /// Returns the object of an entry that `check` has accepted, for changes.
    #[inline]
    fn lent_mut(&mut self) -> &mut T {
        match self.memory.as_deref_mut() {
            Some(Some(object)) => object,
            _ => unreachable!("an entry is checked before it is lent"),
        }
    }

    #[inline]
    fn has_object(&self) -> bool {
        matches!(self.memory.as_deref(), Some(Some(_)))
    }

    fn put(&mut self, object: T) {
        match self.memory.as_deref_mut() {
            Some(place) => *place = Some(object),
            None => self.memory = Some(Box::new(Some(object))),
        }
    }

    /// Takes the object out of the entry. Keeps the memory of the object if `keeps` is set.
    fn take(&mut self, keeps: bool) -> Option<T> {
        let object = self.memory.as_deref_mut()?.take();
        if !keeps {
            self.memory = None;
        }
        object
    }
}

impl<T: Object> Entry<T> {
    /// Fails with `Invalid` if the entry has no object, or if `generation`, from the handle, is not
    /// the generation of the entry.
    #[inline]
    fn check(&self, generation: u32) -> Result<()> {
        if self.generation != generation || !self.has_object() {
            return Err(stale::<T>());
        }
        Ok(())
    }
}

/// Returns the chunk of a slot and the index of the slot in the chunk: chunk 0 has the first 64
/// slots, chunk n the next 64 << (n - 1).
fn place(slot: u32) -> (usize, usize) {
    let chunk = (u32::BITS - (slot >> CHUNK_BITS).leading_zeros()) as usize;
    let first = if chunk == 0 { 0 } else { 1 << (CHUNK_BITS as usize + chunk - 1) };
    (chunk, slot as usize - first)
}

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { slots: Vec::new(), used: 0 }),
        }
    }

    /// Returns the slot with this number; `None` if no chunk has been allocated for it.
    fn slot(&self, slot: u32) -> Option<&Slot<T>> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// Takes a free slot, or the next unused one. No valid handle refers to it.
    fn take_free(&self) -> Result<(u32, &Slot<T>)> {
        let mut free = self.free.lock();
        let slot = match free.slots.pop() {
            Some(slot) => slot,
            None if free.used == SLOTS_MAX => {
                let message =
                    format!("too many {} handles: the limit is {SLOTS_MAX}", T::TYPE.name());
                return Err(Error::invalid(message));
            }
            None => {
                if free.used == 0 {
                    TABLES.lock().push(T::table());
                }
                free.used += 1;
                free.used - 1
            }
        };
        drop(free);
        let (chunk, at) = place(slot);
        let len = 1_usize << (CHUNK_BITS as usize + chunk.saturating_sub(1));
        let empty = |_| Slot(RwLock::new(Entry { generation: 0, memory: None }));
        let slots = self.chunks.get(chunk).map(|c| c.get_or_init(|| (0..len).map(empty).collect()));
        let found = slots.and_then(|slots| slots.get(at));
        Ok((slot, found.ok_or_else(|| Error::internal("a slot without a chunk"))?))
    }
}

/// Puts an object into its table and returns its handle, which C owns.
pub(crate) fn insert<T: Object>(object: T) -> Result<*mut T::Handle> {
    let (slot, found) = T::table().take_free()?;
    // No valid handle refers to the slot. Only a call with a stale handle may hold the lock of the
    // slot, for an instant.
    let mut entry = found.0.write();
    entry.put(object);
    let bits =
        T::TYPE.bits() << TYPE_SHIFT | u64::from(entry.generation) << SLOT_BITS | u64::from(slot);
    Ok(std::ptr::without_provenance_mut(bits as usize))
}

/// Returns the generation, the slot number and the slot of a handle; `Invalid` if the handle cannot
/// be one of this type.
fn parse<T: Object>(handle: *mut T::Handle) -> Result<(u32, u32, &'static Slot<T>)> {
    let bits = handle.addr() as u64;
    if bits >> TYPE_SHIFT != T::TYPE.bits() {
        return Err(not_one::<T>(bits));
    }
    let generation = (bits >> SLOT_BITS) as u32;
    let slot = bits as u32 & (SLOTS_MAX - 1);
    let found = T::table().slot(slot).ok_or_else(|| stale::<T>())?;
    Ok((generation, slot, found))
}

#[cold]
fn not_one<T: Object>(bits: u64) -> Error {
    let name = T::TYPE.name();
    Error::invalid(match (bits, Type::name_of(bits >> TYPE_SHIFT)) {
        (0, _) => format!("the {name} is NULL"),
        (_, Some(other)) => format!("the handle is a {other}, not a {name}"),
        (_, None) => format!("the pointer is not a {name}"),
    })
}

#[cold]
fn stale<T: Object>() -> Error {
    Error::invalid(format!("the {} was freed", T::TYPE.name()))
}

#[cold]
pub(crate) fn busy<T: Object>() -> Error {
    let message = format!("another thread is using the {}", T::TYPE.name());
    Error::new(ErrorKind::Busy, message)
}

/// An object that other threads may use at the same time.
pub(crate) struct Shared<T: Object>(RwLockReadGuard<'static, Entry<T>>);

impl<T: Object> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.lent()
    }
}

/// Returns the object of a handle, shared with other threads.
///
/// # Errors
/// `Invalid` for a pointer that is not a handle of this type, or is a stale one; `Busy` if a thread
/// uses the object exclusively.
#[inline]
pub(crate) fn shared<T: Object>(handle: *mut T::Handle) -> Result<Shared<T>> {
    let (generation, _, slot) = parse::<T>(handle)?;
    let entry = slot.0.try_read().ok_or_else(busy::<T>)?;
    entry.check(generation)?;
    Ok(Shared(entry))
}

/// Returns the object as [`shared`] does; `None` for NULL.
pub(crate) fn optional<T: Object>(handle: *mut T::Handle) -> Result<Option<Shared<T>>> {
    if handle.is_null() { Ok(None) } else { shared::<T>(handle).map(Some) }
}

/// An object that no other thread uses.
pub(crate) struct Exclusive<T: Object>(RwLockWriteGuard<'static, Entry<T>>);

impl<T: Object> Deref for Exclusive<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.lent()
    }
}

impl<T: Object> DerefMut for Exclusive<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.lent_mut()
    }
}

/// Returns the object of a handle, for this thread alone.
///
/// # Errors
/// `Invalid` for a pointer that is not a handle of this type, or is a stale one; `Busy` if another
/// thread uses the object.
#[inline]
pub(crate) fn exclusive<T: Object>(handle: *mut T::Handle) -> Result<Exclusive<T>> {
    let (generation, _, slot) = parse::<T>(handle)?;
    let entry = slot.0.try_write().ok_or_else(busy::<T>)?;
    entry.check(generation)?;
    Ok(Exclusive(entry))
}

/// Takes an object out of its table; its handle becomes stale.
///
/// # Errors
/// As [`exclusive`].
pub(crate) fn remove<T: Object>(handle: *mut T::Handle) -> Result<T> {
    remove_if::<T>(handle, |_| Ok(()))
}

/// Removes an object as [`remove`] does, but only if `allows` returns no error for it. Holds the
/// object exclusively while `allows` runs.
///
/// # Errors
/// As [`exclusive`], and the error of `allows`. After an error the handle is still valid.
pub(crate) fn remove_if<T: Object>(
    handle: *mut T::Handle,
    allows: impl FnOnce(&T) -> Result<()>,
) -> Result<T> {
    let (_, slot, _) = parse::<T>(handle)?;
    let lent = exclusive::<T>(handle)?;
    allows(&lent)?;
    let mut entry = lent.0;
    let object = entry.take(slot < KEEPING_SLOTS).ok_or_else(|| stale::<T>())?;
    entry.generation = entry.generation.wrapping_add(1);
    drop(entry);
    T::table().free.lock().slots.push(slot);
    // The caller drops the object after this function has released the lock of the slot.
    Ok(object)
}

/// Returns the number of handles of all types that have been made and not freed. For tests: a
/// program that has freed all its handles gets 0.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_live_handles() -> u64 {
    // Copy the list first. A table adds itself to the list while it holds its own lock, so taking
    // table locks under the lock of the list could deadlock.
    let tables = TABLES.lock().clone();
    tables.into_iter().map(CountLive::live).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::frondb_batch;
    use crate::buffer::{Buffer, frondb_buffer};

    #[test]
    fn slots_lie_one_after_the_other() {
        let mut next = (0, 0);
        for slot in 0..SLOTS_MAX {
            let at = place(slot);
            assert!(at == next || at == (next.0 + 1, 0), "slot {slot} is at {at:?}");
            let len = 1 << (CHUNK_BITS as usize + at.0.saturating_sub(1));
            assert!(at.1 < len, "slot {slot} is at {at:?} of {len}");
            next = (at.0, at.1 + 1);
        }
        assert_eq!(next.0, CHUNKS - 1);
    }

    fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn dead_handles_and_handles_of_other_types_are_invalid() {
        let invalid = Some(ErrorKind::Invalid);
        let handle = insert(Buffer::default()).unwrap();
        assert!(shared::<Buffer>(handle).is_ok());
        for wrong in [0, 1, 0x7fff_ffff_f000, handle.addr() ^ 1 << 55, handle.addr() | 0xff_ffff] {
            let wrong: *mut frondb_buffer = std::ptr::without_provenance_mut(wrong);
            assert_eq!(kind(shared::<Buffer>(wrong)), invalid, "{wrong:?}");
            assert_eq!(kind(exclusive::<Buffer>(wrong)), invalid, "{wrong:?}");
            assert_eq!(kind(remove::<Buffer>(wrong)), invalid, "{wrong:?}");
        }
        let other: *mut frondb_batch = handle.cast();
        let error = shared::<frondb::Batch>(other).err().unwrap();
        assert!(error.message().contains("is a frondb_buffer, not a frondb_batch"), "{error}");

        drop(remove::<Buffer>(handle).unwrap());
        assert_eq!(kind(shared::<Buffer>(handle)), invalid);
        assert_eq!(kind(remove::<Buffer>(handle)), invalid);
        let again = insert(Buffer::default()).unwrap();
        assert_ne!(again, handle, "a slot is used again under another generation");
        assert_eq!(kind(shared::<Buffer>(handle)), invalid);
        drop(remove::<Buffer>(again).unwrap());
    }

    #[test]
    fn an_object_in_use_is_busy() {
        let busy = Some(ErrorKind::Busy);
        let handle = insert(Buffer::default()).unwrap();
        let one = shared::<Buffer>(handle).unwrap();
        let two = shared::<Buffer>(handle).unwrap();
        assert_eq!(kind(exclusive::<Buffer>(handle)), busy);
        assert_eq!(kind(remove::<Buffer>(handle)), busy);
        drop((one, two));
        let alone = exclusive::<Buffer>(handle).unwrap();
        assert_eq!(kind(shared::<Buffer>(handle)), busy);
        drop(alone);
        drop(remove::<Buffer>(handle).unwrap());
    }

    /// Several threads make, use and free objects, and use each other's handles: each handle is
    /// freed exactly once, and no call with a handle reaches the object of another handle.
    #[test]
    fn threads_free_each_handle_once() {
        const ROUNDS: u64 = 20_000;
        let handles = Mutex::new(Vec::<(usize, Vec<u8>)>::new());
        let freed = frondb_core::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (handles, freed) = (&handles, &freed);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let bytes = (thread * ROUNDS + round).to_le_bytes().to_vec();
                        let handle = insert(Buffer::of(bytes.clone())).unwrap();
                        handles.lock().push((handle.addr(), bytes));
                        let at = handles.lock().len() * (round as usize % 7) / 7;
                        let (address, bytes) = handles.lock().get(at).cloned().unwrap_or_default();
                        let other: *mut frondb_buffer = std::ptr::without_provenance_mut(address);
                        if let Ok(buffer) = shared::<Buffer>(other) {
                            assert_eq!(buffer.bytes(), bytes);
                        }
                        if remove::<Buffer>(other).is_ok() {
                            freed.fetch_add(1, frondb_core::sync::atomic::Ordering::Relaxed);
                        }
                        let mut list = handles.lock();
                        if list.len() > 100 {
                            list.drain(..50);
                        }
                    }
                });
            }
        });
        let left = Buffer::table().live();
        let freed = freed.into_inner();
        assert!(freed > ROUNDS / 10, "{freed} were freed");
        // Other tests of this program make buffers too, a few at a time.
        assert!((4 * ROUNDS - freed).abs_diff(left) < 64, "{freed} freed, {left} left");
    }
}
