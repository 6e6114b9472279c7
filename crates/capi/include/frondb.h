/*
 * FronDB for C and C++. Generated from crates/capi/src by `cargo xtask header`: do not edit.
 * docs/operating/c-api.md explains how to build with it and has an example.
 *
 * Errors. A function that can fail returns an error, or NULL on success. The caller owns the error
 * and frees it with frondb_error_free(). After an error no result is written, except that handles
 * are set to NULL and flags to false.
 *
 * Handles. A pointer to an opaque type is a handle: a number that is looked up and never
 * dereferenced. The caller owns it and frees it once with the function of its type. A pointer that is
 * NULL, was freed or is of another type causes an error of the kind FRONDB_INVALID and no harm.
 * Handles may be freed in any order. After frondb_db_close(), calls with the handles of the database
 * that read or write data fail with FRONDB_CLOSED; calls that only report still work.
 *
 * Threads. Every function says which threads may call it. If that is "one at a time" for an object,
 * a second thread that calls at the same time gets an error of the kind FRONDB_BUSY.
 *
 * Memory. Slices and strings that are passed to a function must stay unchanged until it returns.
 * Memory that a function returns belongs to its object and is valid as long as the comment says. No
 * function throws. None may be called from a signal handler or in a forked child.
 */

#ifndef FRONDB_H
#define FRONDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The version of this header; frondb_version() is that of the library. */
#define FRONDB_VERSION "0.2.0"
#define FRONDB_VERSION_MAJOR 0
#define FRONDB_VERSION_MINOR 2
#define FRONDB_VERSION_PATCH 0


/**
 * The number "caching" of a measurement: direct I/O, and the system counted the reads at the
 * device.
 */
#define FRONDB_CACHING_BYPASSED 0

/**
 * Direct I/O according to the file system, but the system does not count reads of this device.
 */
#define FRONDB_CACHING_UNVERIFIED 1

/**
 * The file system has no direct I/O, or serves a part of it from memory, and the file is at least
 * twice as large as the memory of the machine: most reads came from the device.
 */
#define FRONDB_CACHING_OUTGROWN 2

/**
 * The times may be times of memory instead of the device.
 */
#define FRONDB_CACHING_CACHED 3

/**
 * A backup that has begun. From frondb_backup_fix() until the backup is copied or freed, the
 * database does not reuse the space that it frees, and keeps log files that it no longer needs. So
 * copy the backup soon.
 */
typedef struct frondb_backup frondb_backup;

/**
 * A list of writes to any number of trees of one database, which frondb_db_write() commits
 * atomically. Within a tree the writes take effect in the order in which they were added: the last
 * put or delete of a key wins, and updates after it apply to its result. A batch may be committed
 * several times, and cleared and reused.
 */
typedef struct frondb_batch frondb_batch;

/**
 * Holds the values that a read returns. A buffer may be reused: its contents are valid until the
 * next call that fills it, or until it is freed.
 */
typedef struct frondb_buffer frondb_buffer;

/**
 * A bulk load, which puts much data into new or existing trees with less work than batches.
 * Entries may be added in any order and by several threads. The load sorts them in part of the
 * memory budget and on disk, and ingests them into all trees with one commit. The trees do not
 * change before that commit, nor if the load fails, is cancelled or freed, or the process crashes.
 */
typedef struct frondb_bulk frondb_bulk;

/**
 * Many writes of a transaction to trees that are empty, with less work than single writes: whole
 * trees are locked instead of keys, and the entries are sorted in part of the memory budget and on
 * disk. After frondb_bulk_statement_finish() the entries are ordinary writes of the transaction:
 * only the transaction sees them, a savepoint that is older than the statement undoes them, and
 * they are committed, prepared or rolled back with the transaction. A frondb_bulk does the same
 * with a commit of its own.
 */
typedef struct frondb_bulk_statement frondb_bulk_statement;

/**
 * Adds entries to a bulk load.
 */
typedef struct frondb_bulk_writer frondb_bulk_writer;

/**
 * A commit that has happened and has not waited for the disk yet. Snapshots taken from now on see
 * the commit.
 */
typedef struct frondb_committing frondb_committing;

/**
 * A position in a tree. A cursor without locks shows a fixed state and never blocks writers; a
 * locking cursor (frondb_txn_cursor()) shows the newest data. A new cursor is not positioned:
 * frondb_cursor_next() moves it to the first entry, frondb_cursor_prev() to the last. After the
 * cursor has passed either end, or after a seek that found nothing, the cursor is at no entry, and
 * both functions find nothing until the next seek.
 *
 * A move that fails leaves the cursor at no entry, and later moves return the same error until a
 * seek, so that no entry is skipped silently.
 */
typedef struct frondb_cursor frondb_cursor;

/**
 * An open database.
 */
typedef struct frondb_db frondb_db;

/**
 * An error. Every function that can fail returns a pointer to one, or NULL on success. The caller
 * owns it and frees it with frondb_error_free().
 */
typedef struct frondb_error frondb_error;

/**
 * An immutable list. The comment of the function that makes the list says what the items are. Free
 * it with frondb_list_free().
 */
typedef struct frondb_list frondb_list;

/**
 * Options for opening a database. frondb_options_new() makes options with the defaults, which need
 * no tuning; frondb_db_open() checks the values. May be used for several opens.
 */
typedef struct frondb_options frondb_options;

/**
 * Receives the result of an update function. Valid only during the call that received the output,
 * and in its thread.
 */
typedef struct frondb_output frondb_output;

/**
 * A fixed state of a whole database for reads. Data that a live snapshot can see stays on disk,
 * even after it is deleted or overwritten.
 */
typedef struct frondb_snapshot frondb_snapshot;

/**
 * Named numbers, collected by one call; docs/operating/status.md lists the statistics. Free the
 * object with frondb_stats_free().
 */
typedef struct frondb_stats frondb_stats;

/**
 * A tree: keys in byte order, each with a value. The handle stays valid when the tree is renamed.
 */
typedef struct frondb_tree frondb_tree;

/**
 * Options with which a tree is created; they are stored with the tree. frondb_db_create_tree()
 * checks the values. May be used for several trees.
 */
typedef struct frondb_tree_options frondb_tree_options;

/**
 * A compound key under construction: parts of several types, ascending or descending, encoded so
 * that the keys sort in the order of their parts. Null sorts before all other values (after them
 * if descending), followed by booleans, integers, floats, doubles, bytes and strings.
 */
typedef struct frondb_tuple frondb_tuple;

/**
 * A transaction: reads and writes over any number of trees. Its writes take effect atomically with
 * the commit; until then only the transaction itself sees them. A transaction locks each key that
 * it writes; it holds the locks until it ends.
 *
 * Any thread may use a transaction; calls take turns. A deadlock victim is rolled back
 * immediately, and every later call except frondb_txn_rollback() and frondb_txn_free() fails.
 * After the transaction's end every call fails with FRONDB_INVALID, except
 * frondb_txn_begin_next(), frondb_txn_free(), frondb_txn_id() and frondb_txn_cancel(); the last
 * two always succeed.
 */
typedef struct frondb_txn frondb_txn;

/**
 * Options with which frondb_db_begin() begins transactions. The same options may be used for any
 * number of transactions.
 */
typedef struct frondb_txn_options frondb_txn_options;

/**
 * What the caller should do about an error. The numbers never change; new ones may be added.
 */
typedef uint32_t frondb_kind;

/**
 * The place of a corruption, or of data that the device could not read.
 */
typedef struct {
  /**
   * File, relative to the database directory. Valid until the error is freed.
   */
  const char *file;
  /**
   * Kind of the block or record at this offset. Valid until the error is freed.
   */
  const char *what;
  /**
   * Byte offset in the file.
   */
  uint64_t offset;
} frondb_place;

/**
 * Bytes: a key, a value, an operand. May contain zero bytes. NULL with length 0 is empty; NULL
 * with another length is an error of the kind FRONDB_INVALID.
 *
 * The bytes of an argument must stay readable and unchanged until the function returns, but no
 * longer. Where a function returns a slice, its comment says how long the bytes stay valid.
 */
typedef struct {
  /**
   * The first byte.
   */
  const uint8_t *data;
  /**
   * The number of bytes.
   */
  size_t len;
} frondb_slice;

/**
 * An update function. With it frondb_tree_update() and similar calls change a value without
 * reading it.
 *
 * Any thread may call the functions, including the engine's background threads and several threads
 * at the same time, whenever messages are merged or read. They must be pure: the same input always
 * gives the same result. They must return normally (no exception, no longjmp), and must not call
 * any function of this interface except frondb_output_append().
 */
typedef struct {
  /**
   * sizeof(frondb_update_fn), so that later versions can add fields.
   */
  size_t size;
  /**
   * The name stored with the tree, UTF-8. Copied by the call.
   */
  const char *name;
  /**
   * The version stored with the tree.
   */
  uint32_t version;
  /**
   * Passed to the functions.
   */
  void *user_data;
  /**
   * Makes the new value from the existing value (NULL if the key is absent) and one operand, and
   * appends it to `output`. Returns 0 on success. After any other result the operand stays
   * pending, and reads of the key fail with FRONDB_INVALID; what was appended to `output` is
   * then the error message. Must not be NULL.
   */
  int32_t (*apply)(void *user_data,
                   frondb_slice key,
                   const frondb_slice *existing,
                   frondb_slice operand,
                   frondb_output *output);
  /**
   * Appends one operand to `output` that has the effect of `older` followed by `newer`. Returns
   * 0 on success, or another number if these two operands cannot be combined. NULL if operands
   * can never be combined.
   */
  int32_t (*combine)(void *user_data,
                     frondb_slice key,
                     frondb_slice older,
                     frondb_slice newer,
                     frondb_output *output);
  /**
   * Called once, by any thread, when the function is no longer used: after the options and every
   * database opened with them are freed. May be NULL.
   */
  void (*free_user_data)(void *user_data);
} frondb_update_fn;

/**
 * What a commit waits for.
 */
typedef uint32_t frondb_durability;

/**
 * What a commit with FRONDB_SYNC waits for before it returns.
 */
typedef uint32_t frondb_sync_mode;

/**
 * The estimated contents of a key range.
 */
typedef struct {
  /**
   * Keys that have a value.
   */
  uint64_t entries;
  /**
   * Bytes on disk, including the bytes that the messages in memory will take after their flush.
   */
  uint64_t disk_bytes;
} frondb_estimate;

/**
 * The entries at the beginning of a key range: the result of frondb_tree_estimate_first().
 */
typedef struct {
  /**
   * If `is_estimate` is false, the entries among the keys that were counted; otherwise an
   * estimate for the whole range.
   */
  uint64_t count;
  /**
   * Whether the range has no keys besides the counted ones.
   */
  bool is_all;
  /**
   * Whether `count` estimates the whole range.
   */
  bool is_estimate;
} frondb_first_entries;

/**
 * The numbers of messages of a key range: the result of frondb_tree_messages().
 */
typedef struct {
  /**
   * Puts, deletes and updates, including obsolete ones.
   */
  uint64_t all;
  /**
   * Consolidated messages among `all`; a key has at most one.
   */
  uint64_t base;
} frondb_message_counts;

/**
 * The size of a batch.
 */
typedef struct {
  /**
   * The number of writes.
   */
  uint64_t writes;
  /**
   * About the number of bytes of the batch in the log.
   */
  uint64_t log_bytes;
  /**
   * About the number of bytes of memory that the batch takes after its commit.
   * frondb_db_batch_bytes_max() returns the limit.
   */
  uint64_t memory_bytes;
} frondb_batch_size;

/**
 * An entry of a tree.
 */
typedef struct {
  /**
   * The key.
   */
  frondb_slice key;
  /**
   * The value.
   */
  frondb_slice value;
} frondb_entry;

/**
 * Entries that a cursor has read in one call. They are valid until the cursor moves or is freed.
 */
typedef struct {
  /**
   * The entries, in the order in which the cursor read them.
   */
  const frondb_entry *entries;
  /**
   * The number of entries; 0 at the end of the range.
   */
  size_t count;
  /**
   * Whether the batch reached the end of the range, so that the next batch would have no entry.
   * False if this is not known, because the batch ended at one of its limits.
   */
  bool is_end;
} frondb_rows;

/**
 * What a transaction sees of other transactions' writes.
 */
typedef uint32_t frondb_isolation;

/**
 * The lock that a read takes.
 */
typedef uint32_t frondb_lock;

/**
 * What a call does if another transaction holds the lock.
 */
typedef uint32_t frondb_wait;

/**
 * Receives the progress of a long call: the name of the tree (valid during the call), the work
 * done and the total work, in bytes unless the comment of the long call names another unit.
 * Returns 0 to continue; any other number stops the work with FRONDB_CANCELLED. The thread that
 * made the long call calls this function, which must return normally (no exception, no longjmp).
 */
typedef int32_t (*frondb_progress)(void *user_data, const char *tree, uint64_t done, uint64_t to_do);

/**
 * The argument of a commit hook.
 */
typedef struct {
  /**
   * Number of the transaction, as returned by frondb_txn_id(); 0 for a batch.
   */
  uint64_t transaction;
  /**
   * The commit's position in the order of all commits, ascending.
   */
  uint64_t order;
  /**
   * The end of the commit's record in the log: the commit is durable once the log is durable up
   * to this position.
   */
  uint64_t log_end;
} frondb_commit_info;

/**
 * A commit hook. `info` is valid during the call.
 */
typedef void (*frondb_commit_hook)(void *user_data, const frondb_commit_info *info);

/**
 * A wait hook. Receives the number of the waiting transaction and the numbers of the transactions
 * for which it waits, ascending. `blockers` is valid during the call.
 */
typedef void (*frondb_wait_hook)(void *user_data,
                                 uint64_t waiter,
                                 const uint64_t *blockers,
                                 size_t blockers_count);

/**
 * The kind of area that a lock covers.
 */
typedef uint32_t frondb_lock_area;

/**
 * A lock that a transaction holds or waits for. Its pointers are valid until the list is freed.
 */
typedef struct {
  /**
   * Number of the transaction, as returned by frondb_txn_id().
   */
  uint64_t transaction;
  /**
   * Number of the tree, as returned by frondb_tree_id().
   */
  uint64_t tree;
  /**
   * The kind of area.
   */
  frondb_lock_area area;
  /**
   * FRONDB_LOCK_SHARED or FRONDB_LOCK_EXCLUSIVE.
   */
  frondb_lock mode;
  /**
   * First key.
   */
  frondb_slice lo;
  /**
   * The first key beyond the area; `data` is NULL if the area is a single key or extends to the
   * end of the tree.
   */
  frondb_slice hi;
  /**
   * Numbers of the transactions for which this one waits, ascending; none for a lock that is
   * held.
   */
  const uint64_t *blockers;
  /**
   * The number of `blockers`.
   */
  size_t blockers_count;
  /**
   * The time waited so far, nanoseconds; 0 for a lock that is held.
   */
  uint64_t waited_nanos;
} frondb_lock_info;

/**
 * The last deadlock.
 */
typedef struct {
  /**
   * Number of the victim: the transaction that was rolled back, or a batch or bulk load.
   */
  uint64_t victim;
  /**
   * The number of transactions in the cycle.
   */
  uint64_t transactions;
  /**
   * Time since the deadlock was found, nanoseconds.
   */
  uint64_t ago_nanos;
} frondb_deadlock_info;

/**
 * A transaction that has not ended. Its pointers are valid until the list is freed.
 */
typedef struct {
  /**
   * The transaction's number, as in frondb_txn_id() and frondb_lock_info.
   */
  uint64_t transaction;
  /**
   * Time since the transaction began, nanoseconds; for a prepared transaction that recovery
   * found, time since the database was opened.
   */
  uint64_t age_nanos;
  /**
   * Messages that the transaction has written and not undone: puts, deletes, updates, and one
   * for each range delete. For a prepared transaction that recovery found, without the messages
   * that later ones had replaced when they were spilled to disk.
   */
  uint64_t messages;
  /**
   * Locks that the transaction holds on rows, gaps and ranges.
   */
  uint64_t locks;
  /**
   * Length of the current lock wait, nanoseconds; 0 if the transaction does not wait now.
   */
  uint64_t waited_nanos;
  /**
   * The transaction's name if it is prepared; otherwise `data` is NULL.
   */
  frondb_slice xid;
  /**
   * The isolation level; FRONDB_ISOLATION_UNKNOWN for a prepared transaction that recovery
   * found.
   */
  frondb_isolation isolation;
  /**
   * Whether the transaction waits for a lock now.
   */
  bool waits;
} frondb_transaction_info;

/**
 * The kind of a file.
 */
typedef uint32_t frondb_file_kind;

/**
 * A file of a database.
 */
typedef struct {
  /**
   * The path: the directory as it was opened, and the name of the file. Valid until the list
   * is freed.
   */
  const char *path;
  /**
   * The kind of the file.
   */
  frondb_file_kind kind;
  /**
   * The length, bytes.
   */
  uint64_t bytes;
  /**
   * Bytes allocated on the device; less than the length if the file has holes.
   */
  uint64_t allocated_bytes;
} frondb_file_info;

/**
 * The cost of the reads of one thread.
 */
typedef struct {
  /**
   * Blocks that were in the cache, decoded or in their encoded form.
   */
  uint64_t cached_blocks;
  /**
   * Blocks that were read from the device and decoded.
   */
  uint64_t blocks;
  /**
   * Reads of the device: of one block, of neighbouring blocks together, of an index or a filter,
   * or of a large value.
   */
  uint64_t reads;
  /**
   * Bytes read by these reads.
   */
  uint64_t read_bytes;
  /**
   * Total time of these reads, nanoseconds.
   */
  uint64_t read_nanos;
  /**
   * Lookups in a run that a filter made unnecessary.
   */
  uint64_t filter_negatives;
  /**
   * Lookups in a run that a filter let through.
   */
  uint64_t filter_positives;
} frondb_read_profile;

/**
 * Options of a measurement. All zeros are the defaults.
 */
typedef struct {
  /**
   * About how long the measurement takes, milliseconds: 100 ms to one day. 0 means 30 s.
   */
  uint64_t budget_millis;
  /**
   * Size of the file that is written and read, bytes, at least 16 MiB. 0 means 4 GiB (without
   * direct I/O twice the memory, if that is more), or less if space or time is short.
   */
  uint64_t file_bytes;
  /**
   * The largest number of threads, 1 to 256. The device is measured with this number, and with
   * each smaller number among 1, 4, 16, 64 and 256. 0 means 16.
   */
  uint32_t threads_max;
  /**
   * Whether random writes are measured, too; they wear the device.
   */
  bool writes;
} frondb_measure_options;

/**
 * The severity of a message.
 */
typedef uint32_t frondb_log_level;

/**
 * Receives a message: a sentence that is valid during the call. Any thread may call the function,
 * including the background threads of the engine, and several threads at the same time. The
 * function must be quick, must not call functions of this interface, and must return normally (no
 * exception, no longjmp).
 */
typedef void (*frondb_log)(void *user_data, frondb_log_level level, const char *message);

/**
 * An event. The structure and its texts are valid during the call of the listener.
 */
typedef struct {
  /**
   * `flush_began`, `flush_ended`, `flush_given_up`, `merge_began`, `merge_ended`,
   * `merge_given_up`, `job_failed`, `stall_began`, `stall_ended`, `disk_full`, `disk_has_space`,
   * `poisoned` or `corruption`. Later versions may add names.
   */
  const char *name;
  /**
   * For flushes and merges: the number of the tree; otherwise 0.
   */
  uint64_t tree;
  /**
   * For flushes and merges that have ended: bytes written; otherwise 0.
   */
  uint64_t bytes;
  /**
   * For flushes, merges and stalls that have ended: their length, nanoseconds; otherwise 0.
   */
  uint64_t nanos;
  /**
   * For stalls, the reason why commits wait: `memtables`, `log`, `merges` or `disk`. For failed
   * jobs, a full disk, a poisoned database and damage, the message of the error. Otherwise an
   * empty string.
   */
  const char *message;
} frondb_event;

/**
 * A listener of events. `event` is valid during the call.
 */
typedef void (*frondb_event_listener)(void *user_data, const frondb_event *event);

/**
 * The type of a part.
 */
typedef uint32_t frondb_part_type;

/**
 * A part of a tuple. Fields that do not apply to `type` are zero.
 */
typedef struct {
  /**
   * The type, which determines the field that has the value.
   */
  frondb_part_type type;
  /**
   * Whether larger values sort first.
   */
  bool descending;
  /**
   * A boolean; for FRONDB_PART_BOOL.
   */
  bool boolean;
  /**
   * An integer; for FRONDB_PART_INT.
   */
  int64_t integer;
  /**
   * An integer; for FRONDB_PART_UINT, and for FRONDB_PART_INT unless it is negative (then 0).
   */
  uint64_t unsigned_integer;
  /**
   * A float or a double.
   */
  double number;
  /**
   * Bytes, a string, or digits; valid until the tuple changes or is freed.
   */
  frondb_slice bytes;
} frondb_part;

/**
 * The operation of a frondb_write.
 */
typedef uint32_t frondb_operation;

/**
 * Flags of a frondb_write, combined with `|`; 0 for none.
 */
typedef uint32_t frondb_write_flags;

/**
 * One write of frondb_txn_write_entries().
 */
typedef struct {
  /**
   * The tree to write to.
   */
  frondb_tree *tree;
  /**
   * The key.
   */
  frondb_slice key;
  /**
   * The value, or the operand of an update function.
   */
  frondb_slice value;
  /**
   * FRONDB_WRITE_PUT, FRONDB_WRITE_INSERT, FRONDB_WRITE_DELETE or FRONDB_WRITE_UPDATE.
   */
  frondb_operation operation;
  /**
   * FRONDB_WRITE_CHECK_OUTDATED and FRONDB_WRITE_SHARE_EXISTING, combined with `|`; 0 for none.
   */
  frondb_write_flags flags;
} frondb_write;

/**
 * No error.
 */
#define FRONDB_OK 0

/**
 * Another transaction changed the row: retry the transaction.
 */
#define FRONDB_CONFLICT 1

/**
 * The transaction was the victim of a deadlock and was rolled back: retry it.
 */
#define FRONDB_DEADLOCK 2

/**
 * The call waited too long for a lock: retry the transaction.
 */
#define FRONDB_LOCK_TIMEOUT 3

/**
 * The resource is in use: retry the call. Also returned if another thread is using an object that
 * only one thread at a time may use.
 */
#define FRONDB_BUSY 4

/**
 * The call is wrong: fix it. Also returned for a handle that is NULL, freed, or of another type.
 */
#define FRONDB_INVALID 5

/**
 * The named thing does not exist.
 */
#define FRONDB_NOT_FOUND 6

/**
 * The named thing exists already.
 */
#define FRONDB_EXISTS 7

/**
 * The disk is full: free space. Reads still work, and writes resume on their own.
 */
#define FRONDB_NO_SPACE 8

/**
 * Data on disk is not what was written; see frondb_error_place().
 */
#define FRONDB_CORRUPTION 9

/**
 * It is unknown what is durable, because a write or an fsync failed, or a thread of the engine
 * panicked: close the database and open it again.
 */
#define FRONDB_POISONED 10

/**
 * The device or the operating system reported an error; see frondb_error_os_code().
 */
#define FRONDB_IO 11

/**
 * The database was closed.
 */
#define FRONDB_CLOSED 12

/**
 * The caller cancelled the operation.
 */
#define FRONDB_CANCELLED 13

/**
 * The data was written by a newer version, or needs a feature that this build does not have: use
 * a newer build.
 */
#define FRONDB_UNSUPPORTED 14

/**
 * A bug of the engine: please report it.
 */
#define FRONDB_INTERNAL 15

/**
 * The locks of all transactions take too much memory: end transactions, or make them smaller.
 */
#define FRONDB_TOO_MANY_LOCKS 16

/**
 * Waits until the commit is on disk. Commits that wait at the same time share one sync (group
 * commit). The default.
 */
#define FRONDB_SYNC_ALWAYS 0

/**
 * Does not wait; the commit reaches the disk at most `millis` milliseconds plus the time of a sync
 * later. `millis` is 1 to 86,400,000 (one day).
 */
#define FRONDB_SYNC_EVERY_MILLIS 1

/**
 * Does not wait; the commit reaches the disk when the log is synced for another reason.
 */
#define FRONDB_SYNC_NEVER 2

/**
 * When the call returns, the commit survives power loss, unless the sync mode (frondb_sync_mode)
 * is weaker than FRONDB_SYNC_ALWAYS.
 */
#define FRONDB_SYNC 0

/**
 * When the call returns, the operating system has the commit: it survives the end of the process,
 * but not power loss.
 */
#define FRONDB_NO_SYNC 1

/**
 * The same as read committed: uncommitted data is never shown.
 */
#define FRONDB_READ_UNCOMMITTED 0

/**
 * Each statement sees what was committed when it began. Locking reads lock rows only.
 */
#define FRONDB_READ_COMMITTED 1

/**
 * All plain reads see the same state as the first one. Locking reads and writes see the newest
 * data, and locking cursors lock the gaps that they pass. The default.
 */
#define FRONDB_REPEATABLE_READ 2

/**
 * All reads lock what they read.
 */
#define FRONDB_SERIALIZABLE 3

/**
 * No lock; a read of a serializable transaction takes a shared lock nevertheless.
 */
#define FRONDB_LOCK_NONE 0

/**
 * Shared lock. Reads the newest value, which no other transaction can write until this transaction
 * ends.
 */
#define FRONDB_LOCK_SHARED 1

/**
 * Exclusive lock. Reads the newest value, which no other transaction can lock or write until this
 * transaction ends.
 */
#define FRONDB_LOCK_EXCLUSIVE 2

/**
 * As FRONDB_LOCK_SHARED, for cursors only: locks no gaps, at any isolation level, so other
 * transactions may insert between the entries that the cursor shows.
 */
#define FRONDB_LOCK_SHARED_ENTRIES 3

/**
 * As FRONDB_LOCK_EXCLUSIVE, for cursors only: locks no gaps.
 */
#define FRONDB_LOCK_EXCLUSIVE_ENTRIES 4

/**
 * Waits, at most for the lock timeout of the transaction.
 */
#define FRONDB_WAIT 0

/**
 * Fails at once with FRONDB_BUSY.
 */
#define FRONDB_NO_WAIT 1

/**
 * Cursors skip rows that are locked, and lock no gaps; a single read fails with FRONDB_BUSY.
 */
#define FRONDB_SKIP_LOCKED 2

/**
 * If another transaction has locked a row, a cursor shows the last committed version of the row
 * and does not lock the row; frondb_cursor_is_locked() distinguishes such rows. At repeatable read
 * and serializable, cursors wait instead. A single read fails with FRONDB_BUSY.
 */
#define FRONDB_SHOW_LOCKED 3

/**
 * Sets the value of the key, as frondb_txn_put().
 */
#define FRONDB_WRITE_PUT 0

/**
 * Sets the value of a key that has none, as frondb_txn_insert(); FRONDB_EXISTS if the key has a
 * value.
 */
#define FRONDB_WRITE_INSERT 1

/**
 * Removes the key, which need not exist, as frondb_txn_delete(). The value is ignored.
 */
#define FRONDB_WRITE_DELETE 2

/**
 * Writes an update of the key with the value as its operand, as frondb_txn_update().
 */
#define FRONDB_WRITE_UPDATE 3

/**
 * Checks whether the key is outdated; see frondb_txn_get_outdated().
 */
#define FRONDB_WRITE_CHECK_OUTDATED 1

/**
 * For FRONDB_WRITE_INSERT: if the key has a value, locks the key in shared mode instead of
 * exclusively. Then other transactions can read the key with a shared lock, and their inserts with
 * this flag fail with FRONDB_EXISTS without a wait. For callers that do not write the key after
 * FRONDB_EXISTS.
 */
#define FRONDB_WRITE_SHARE_EXISTING 2

/**
 * One key: `lo`.
 */
#define FRONDB_AREA_ROW 0

/**
 * Keys between rows, where a locking read found no row.
 */
#define FRONDB_AREA_GAP 1

/**
 * Rows and gaps that a locking scan passed.
 */
#define FRONDB_AREA_SCANNED 2

/**
 * All keys of a range that was locked as a range, or into which many row locks were joined.
 */
#define FRONDB_AREA_RANGE 3

/**
 * The isolation level of a transaction that an earlier process has prepared.
 */
#define FRONDB_ISOLATION_UNKNOWN 4

/**
 * Data of all trees.
 */
#define FRONDB_FILE_DATA 0

/**
 * A segment of the log, in use or kept for reuse.
 */
#define FRONDB_FILE_LOG 1

/**
 * The manifest, which lists all trees and runs, or one of its superblocks.
 */
#define FRONDB_FILE_MANIFEST 2

/**
 * A small file: a lock file, the mark of the durable end of the log, the owner of the log
 * directory, or the list of the backups.
 */
#define FRONDB_FILE_MARK 3

/**
 * Something failed and needs attention.
 */
#define FRONDB_LOG_ERROR 0

/**
 * Something is wrong, but work continues.
 */
#define FRONDB_LOG_WARNING 1

/**
 * Progress, for example of a recovery.
 */
#define FRONDB_LOG_INFO 2

/**
 * No value.
 */
#define FRONDB_PART_NULL 0

/**
 * A boolean, in `boolean`.
 */
#define FRONDB_PART_BOOL 1

/**
 * An integer from INT64_MIN to INT64_MAX, in `integer`.
 */
#define FRONDB_PART_INT 2

/**
 * An integer above INT64_MAX and up to UINT64_MAX, in `unsigned_integer`.
 */
#define FRONDB_PART_UINT 3

/**
 * An integer below INT64_MIN or above UINT64_MAX, which only Rust programs write. `bytes` has its
 * decimal digits, after a minus sign if it is negative.
 */
#define FRONDB_PART_WIDE 4

/**
 * A 32-bit float, in `number`.
 */
#define FRONDB_PART_FLOAT 5

/**
 * A 64-bit float, in `number`.
 */
#define FRONDB_PART_DOUBLE 6

/**
 * Bytes, in `bytes`.
 */
#define FRONDB_PART_BYTES 7

/**
 * A string in UTF-8, in `bytes`.
 */
#define FRONDB_PART_STRING 8

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the running library, for example "1.2.3". FRONDB_VERSION is the version
 * of the header.
 *
 * Threads: any.
 */
const char *frondb_version(void);

/**
 * Returns the kind of an error; FRONDB_OK for NULL, FRONDB_INVALID for a pointer that is not an
 * error.
 *
 * Threads: any.
 */
frondb_kind frondb_error_kind(frondb_error *error);

/**
 * Returns a description of the error. The text is never NULL, and valid until the error is freed.
 *
 * Threads: any.
 */
const char *frondb_error_message(frondb_error *error);

/**
 * Returns the operating system's error number (errno) if the operating system reported the error;
 * otherwise 0.
 *
 * Threads: any.
 */
int32_t frondb_error_os_code(frondb_error *error);

/**
 * Writes the place of a corruption, or of data that the device could not read, to `place`. Returns
 * false and writes nothing if the error has no place, or `place` is NULL.
 *
 * Threads: any.
 */
bool frondb_error_place(frondb_error *error, frondb_place *place);

/**
 * Returns the name of a kind, for example "LockTimeout"; "?" for an unknown number. The text is
 * valid forever.
 *
 * Threads: any.
 */
const char *frondb_kind_name(frondb_kind kind);

/**
 * Frees an error; NULL is ignored. Returns FRONDB_OK, or FRONDB_INVALID for a pointer that is not
 * an error or was freed before.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the error. Texts that
 * were taken from the error are no longer valid afterwards.
 */
frondb_kind frondb_error_free(frondb_error *error);

/**
 * Makes options with the defaults: create the database if there is none, a quarter of the
 * machine's memory, sync at every commit. Free them with frondb_options_free().
 *
 * Threads: any. One thread at a time may use the options; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_options_new(frondb_options **options);

/**
 * Frees options; NULL is ignored. Databases opened with them are not affected.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_options_free(frondb_options *options);

/**
 * Sets an option by its name; docs/operating/options.md lists the options with their ranges and
 * defaults. `value` is a text: `on` or `off`; a number, for a size also with a suffix, such as K
 * or KiB; a time, such as `60s` or `100ms`; an octal number for permission bits; `always`, `never`
 * or a time for `sync`; a path; `default` for the default. For example:
 *
 * frondb_options_set(options, "memory_bytes", "64M");
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if there is no such option, or the value does not have its type. The open
 * checks the range.
 */
frondb_error *frondb_options_set(frondb_options *options, const char *name, const char *value);

/**
 * Sets the directory of the log, for a log on a device of its own. Default: `wal` in the directory
 * of the database. The directory must be the same at every open. Unlike frondb_options_set(), this
 * function also accepts a path that is not UTF-8.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_log_dir(frondb_options *options, const char *path);

/**
 * Registers an update function; several versions of it may be registered. If the function of a
 * tree is not registered, the tree accepts no updates, and keys with pending updates cannot be
 * read. If this call fails, `free_user_data` is not called.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a function without `apply` or name, or with a wrong size.
 */
frondb_error *frondb_options_add_update_fn(frondb_options *options,
                                           const frondb_update_fn *function);

/**
 * Appends bytes to the result of an update function.
 *
 * Threads: the thread that runs the update function with this `output`.
 *
 * Errors: FRONDB_INVALID for an output of another call.
 */
frondb_error *frondb_output_append(frondb_output *output, frondb_slice bytes);

/**
 * Makes options of a primary or unique index: point reads by full key, values stored with the
 * keys. Free the options with frondb_tree_options_free().
 *
 * Threads: any. One thread at a time may use the options; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_tree_options_new(frondb_tree_options **options);

/**
 * Makes options of a non-unique secondary index, which is scanned by prefix, without point reads
 * of full keys; so its consolidated data has no filters.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_options_new_secondary(frondb_tree_options **options);

/**
 * Frees options; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_tree_options_free(frondb_tree_options *options);

/**
 * Sets an option by its name; docs/operating/options.md lists the names and the codecs. `value` is
 * a text: a number, for a size also with a suffix, such as K or KiB; for the filter "none",
 * "full", "runs" or "prefix:N"; for a codec for example "zstd:3" or "aggressive". "0" or "default"
 * means the default.
 *
 * "codec" sets the codec of bases, which hold consolidated data. It also turns the compression of
 * runs off (for "none") or on, and with a dictionary raises the smallest leaf to 64 MiB.
 * "block_bytes" sets the size of base blocks, where "0" means the size that suits the codec; so
 * set "block_bytes" after the codec. For the smallest files, set "codec" to "aggressive" and then
 * "block_bytes" to "0": rows are first written with a quick codec, and packed in the background
 * with a dictionary that is trained from the tree's data.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a name that does not exist, or a value that is not in the range of
 * the option, which the message names.
 */
frondb_error *frondb_tree_options_set(frondb_tree_options *options,
                                      const char *name,
                                      const char *value);

/**
 * Sets the tree's update function by the name and the version with which
 * frondb_options_add_update_fn() has registered it.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tree_options_set_update_fn(frondb_tree_options *options,
                                                const char *name,
                                                uint32_t version);

/**
 * Opens the database in the directory `path`, or creates one there. `options` may be NULL for the
 * defaults. Free the database with frondb_db_free().
 *
 * Threads: any, and any number of threads may use the database.
 *
 * Errors: FRONDB_BUSY if the database is open already; FRONDB_NOT_FOUND if there is no database
 * and the options do not create one; FRONDB_EXISTS if there is one and the options ask for a new
 * one; FRONDB_INVALID for an option out of its range, or if the directory has other files;
 * FRONDB_UNSUPPORTED if a newer version wrote the database; FRONDB_CORRUPTION; FRONDB_IO.
 */
frondb_error *frondb_db_open(const char *path, frondb_options *options, frondb_db **db);

/**
 * Closes a database and unlocks its directory. The handles of the database, its trees, cursors and
 * transactions stay valid, but later calls that read or write data fail with FRONDB_CLOSED. Calls
 * that only report, such as frondb_db_stats(), still work. Waits for calls of other threads that
 * may write, not for reads.
 *
 * Threads: any.
 *
 * Errors: FRONDB_POISONED or FRONDB_IO if something could not be written. The database is closed
 * nevertheless, and durable commits stay durable. A repeated call returns the same result.
 */
frondb_error *frondb_db_close(frondb_db *db);

/**
 * Frees the handle of a database; NULL is ignored. If the database was not closed, it stays open
 * until its trees, transactions (with their cursors and commits), bulk loads and backups are freed
 * too. Cursors of frondb_tree_cursor() do not keep it open: afterwards their moves fail with
 * FRONDB_CLOSED. No commit is lost: the next open replays the log.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
 */
frondb_kind frondb_db_free(frondb_db *db);

/**
 * Opens the tree of this name. If there is none, creates it with these options, durably. The
 * options of an existing tree stay as they are. `options` may be NULL for the defaults. Free the
 * handle with frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for a bad name or option, for an update function that is not registered,
 * or if the options name an update function and the existing tree has another one, or none.
 */
frondb_error *frondb_db_open_or_create_tree(frondb_db *db,
                                            const char *name,
                                            frondb_tree_options *options,
                                            frondb_tree **tree);

/**
 * Creates an empty tree, durably. `options` may be NULL for the defaults. Free the handle with
 * frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS; FRONDB_INVALID for a bad name or option, or an update function that is
 * not registered.
 */
frondb_error *frondb_db_create_tree(frondb_db *db,
                                    const char *name,
                                    frondb_tree_options *options,
                                    frondb_tree **tree);

/**
 * Opens the tree of this name. Free the handle with frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND.
 */
frondb_error *frondb_db_open_tree(frondb_db *db, const char *name, frondb_tree **tree);

/**
 * Lists the names of all trees, sorted.
 *
 * Threads: any.
 */
frondb_error *frondb_db_list_trees(frondb_db *db, frondb_list **names);

/**
 * Renames a tree, durably. Open handles stay valid.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND, FRONDB_EXISTS, FRONDB_INVALID.
 */
frondb_error *frondb_db_rename_tree(frondb_db *db, const char *from, const char *to);

/**
 * Removes a tree and all of its data, durably. Cursors of frondb_tree_cursor() that have moved
 * before stay usable; other reads and writes of the tree fail with FRONDB_NOT_FOUND.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND; FRONDB_BUSY if a prepared transaction has written to the tree: commit
 * or roll back that transaction first.
 */
frondb_error *frondb_db_drop_tree(frondb_db *db, const char *name);

/**
 * Commits a batch atomically. Like a transaction, the call waits for conflicting locks of
 * transactions, up to 10 s for each lock.
 *
 * Threads: any for the database, one at a time for the batch.
 *
 * Errors: FRONDB_LOCK_TIMEOUT, FRONDB_DEADLOCK or FRONDB_TOO_MANY_LOCKS while it locks, and
 * FRONDB_NO_SPACE: nothing has changed. FRONDB_INVALID for an invalid write in the batch or a
 * batch that is too large; FRONDB_NOT_FOUND if a tree was dropped; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_write(frondb_db *db, frondb_batch *batch, frondb_durability waits_for);

/**
 * Returns the size of the largest batch that can be committed, in bytes of memory: the limit of
 * `memory_bytes` of frondb_batch_size.
 *
 * Threads: any.
 */
frondb_error *frondb_db_batch_bytes_max(frondb_db *db, uint64_t *bytes);

/**
 * Begins a transaction. A transaction costs next to nothing until it writes or locks. `options`
 * may be NULL for the defaults. Free the transaction with frondb_txn_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for options that contradict each other
 * (frondb_txn_options_set_snapshot_isolation()); FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_db_begin(frondb_db *db, frondb_txn_options *options, frondb_txn **txn);

/**
 * Takes a snapshot of everything that is committed. Free the snapshot with frondb_snapshot_free().
 *
 * Threads: any, and any number of threads may read at the snapshot.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_snapshot(frondb_db *db, frondb_snapshot **snapshot);

/**
 * Waits until all transactions that have written to one of `count` trees have ended, prepared ones
 * included, up to `timeout_millis` for each tree. Then takes a snapshot, which sees the committed
 * writes of these transactions. Transactions and batches that begin to write to the trees
 * meanwhile wait until the call returns. For an index build that must not miss a row: create the
 * tree of the index, make all writers write to this tree, then read the existing data at this
 * snapshot.
 *
 * Threads: any.
 *
 * Errors: FRONDB_BUSY if a prepared transaction that wrote to a tree has not ended in time: commit
 * or roll back that transaction first; FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK if a deadlock remains
 * at the timeout; FRONDB_INVALID for a tree of another database; FRONDB_NOT_FOUND if a tree was
 * dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_db_snapshot_behind_writers(frondb_db *db,
                                                frondb_tree *const *trees,
                                                size_t count,
                                                uint64_t timeout_millis,
                                                frondb_snapshot **snapshot);

/**
 * Makes a handle to the same database with another default durability. The durability applies to
 * single writes (frondb_tree_put() and similar) to trees that the new handle creates or opens, and
 * to its transactions unless their options say otherwise. The given handle and trees that are open
 * already keep their durability. Free the new handle with frondb_db_free(), before or after the
 * given handle.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for an unknown durability.
 */
frondb_error *frondb_db_with_commit_sync(frondb_db *db,
                                         frondb_durability waits_for,
                                         frondb_db **other);

/**
 * Changes what FRONDB_SYNC waits for, for all handles and threads until the database is closed.
 * `millis` is used for FRONDB_SYNC_EVERY_MILLIS only. Everything that was committed before the
 * call is durable when it returns.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for a bad mode or interval: nothing is changed. Otherwise as
 * frondb_db_sync(); except after FRONDB_CLOSED the mode is changed nevertheless.
 */
frondb_error *frondb_db_set_sync_mode(frondb_db *db, frondb_sync_mode mode, uint64_t millis);

/**
 * Changes the option `checkpoint_period`: about the longest time, in milliseconds, between a
 * commit and the flush of its messages from the memtable; 0 means no limit. If an
 * earlier commit is older than the new period, a checkpoint is due at once.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for more than a year: nothing is changed; FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_checkpoint_millis(frondb_db *db, uint64_t millis);

/**
 * Limits the bytes per second that flushes and merges write; 0 means no limit. Jobs that wait
 * because of the old limit continue at once. Commits, bulk loads and the spilled writes of large
 * transactions are not limited.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_background_bytes_per_second(frondb_db *db, uint64_t bytes);

/**
 * Changes the memory budget to `bytes`; 0 means a quarter of the machine's memory. When the call
 * returns, the cache has shrunk to fit, and flushes of memtables beyond the new write buffer have
 * begun. Merges and bulk loads that are running keep their memory until they end.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for less than the option "memory_bytes" allows, or less than twice a
 * write buffer of a fixed size: nothing is changed; FRONDB_CLOSED, FRONDB_POISONED.
 */
frondb_error *frondb_db_set_memory_bytes(frondb_db *db, uint64_t bytes);

/**
 * Tells the database how many bytes of memory the program itself uses for work with the database,
 * for example a server for its connections; initially 0. The statistic memory_used includes these
 * bytes, and the cache makes room for them, up to an eighth of the budget (a sixteenth of a budget
 * below 64 MiB). May be called often.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_outside_memory_bytes(frondb_db *db, uint64_t bytes);

/**
 * Returns the current sync mode, which is what FRONDB_SYNC waits for, and its interval in
 * milliseconds (0 if the mode has none).
 *
 * Threads: any.
 */
frondb_error *frondb_db_sync_mode(frondb_db *db, frondb_sync_mode *mode, uint64_t *millis);

/**
 * Makes everything committed so far durable.
 *
 * Threads: any.
 *
 * Errors: FRONDB_POISONED if the sync failed; FRONDB_NO_SPACE; FRONDB_CLOSED.
 */
frondb_error *frondb_db_sync(frondb_db *db);

/**
 * Flushes all memtables and waits until they are flushed.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NO_SPACE: nothing is lost, the log still has the data; FRONDB_POISONED;
 * FRONDB_CLOSED.
 */
frondb_error *frondb_db_flush(frondb_db *db);

/**
 * Flushes all memtables and frees the log, so that the next open has nothing to replay from the
 * time before this call.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_flush().
 */
frondb_error *frondb_db_checkpoint(frondb_db *db);

/**
 * Waits until no background work is so overdue that it slows commits, and until the space of
 * deleted and overwritten large values (over 64 KiB) is freed. A leaf is rewritten only if it has
 * enough such values for its size, so a few of them in a much larger leaf stay. Values that an
 * open snapshot or cursor can see stay too.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NO_SPACE while the disk is full; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_wait_settled(frondb_db *db);

/**
 * Returns whether no background work is so overdue that it slows commits; false for a pointer that
 * is not a database.
 *
 * Threads: any.
 */
bool frondb_db_is_settled(frondb_db *db);

/**
 * Runs one background job if one is due; `did` is set to whether a job was run. For databases
 * without background threads, in which background work otherwise happens only inside of writes.
 * `idle` also allows the jobs that normally run only while there are no writes.
 *
 * Threads: any.
 */
frondb_error *frondb_db_run_one(frondb_db *db, bool idle, bool *did);

/**
 * Returns statistics of the whole database; docs/operating/status.md lists their names. The values
 * of each kind of latency follow the statistics: `latency_KIND_count`, `latency_KIND_nanos` (the
 * sum), `latency_KIND_p50_nanos`, `_p99_nanos`, `_p999_nanos` and `_max_nanos`.
 *
 * Threads: any.
 */
frondb_error *frondb_db_stats(frondb_db *db, frondb_stats **stats);

/**
 * Returns how much the database has written to its files, in two periods: since the database was
 * created, or first opened by a version that counts writes (`total_...`), and in the last hour
 * (`last_hour_...`). `since` and `until` are seconds since 1970. Each period has its length in
 * `seconds`; `user_bytes`, which batches and transactions have written; `bytes` and `requests` of
 * all writes; and both for each cause: `log`, `flush`, `merge`, `relocation`, `manifest`,
 * `private_runs`, `large_values`. frondb_stats_text() is a page with the write amplification and,
 * unless `tbw` is 0, the lifetime of a new drive with an endurance of `tbw` terabytes.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `tbw` is negative, infinite or not a number.
 */
frondb_error *frondb_db_wear(frondb_db *db, double tbw, frondb_stats **wear);

/**
 * Returns the wear of the database in a directory as last recorded, in the form of
 * frondb_db_wear(). Does not open the database, which may be open in this or another process: then
 * the record is some minutes old (`until`). `wear` is set to NULL if only versions that do not
 * count writes have written the database.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if there is no database; FRONDB_INVALID, FRONDB_UNSUPPORTED and
 * FRONDB_CORRUPTION if its superblocks cannot be read, FRONDB_INVALID also if `tbw` is negative,
 * infinite or not a number; FRONDB_IO.
 */
frondb_error *frondb_recorded_wear(const char *path, double tbw, frondb_stats **wear);

/**
 * Returns the statistics of frondb_db_stats(); frondb_stats_text() is a page in the text format of
 * Prometheus, version 0.0.4, for a program that serves its own metrics. Counters end in `_total`,
 * times are in seconds; the latencies are one histogram, `frondb_latency_seconds`, with a label
 * `kind`.
 *
 * Threads: any.
 */
frondb_error *frondb_db_prometheus(frondb_db *db, frondb_stats **stats);

/**
 * Returns the results of the recovery when the database was opened: `created` (1 if the open
 * created the database), `records` (log records replayed), `log_bytes` (log bytes read),
 * `messages` (messages replayed into memtables), and `log_tail` and `manifest_tail`, which are 1
 * if a torn tail was cut off. frondb_stats_text() also describes the torn tails in words.
 *
 * Threads: any.
 */
frondb_error *frondb_db_recovery(frondb_db *db, frondb_stats **recovery);

/**
 * Frees the handle of a tree, not the tree; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
 */
frondb_kind frondb_tree_free(frondb_tree *tree);

/**
 * Puts the tree's name into a buffer.
 *
 * Threads: any for the tree, one at a time for the buffer.
 */
frondb_error *frondb_tree_name(frondb_tree *tree, frondb_buffer *buffer);

/**
 * Returns the tree's number, which is never used for another tree. frondb_lock_info identifies
 * trees by this number.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_id(frondb_tree *tree, uint64_t *id);

/**
 * Returns the options of a tree, for example to make another tree with the same options, or to
 * change them with frondb_tree_set_options().
 *
 * Threads: any.
 */
frondb_error *frondb_tree_options_of(frondb_tree *tree, frondb_tree_options **options);

/**
 * Changes the options of a tree that are not fixed, such as the codec and the sizes of blocks and
 * leaves, durably, while other threads read and write. Get the options with
 * frondb_tree_options_of(), change them, and pass them to this function. Data that is written from
 * now on uses the new options. Background work rewrites existing data when there is nothing more
 * urgent to do. frondb_tree_optimize() rewrites all existing data and returns when that is done.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `options` differ in an option that is fixed (the error names those
 * that are not), if an option is out of its range, or if the database was opened read-only;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE, FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_tree_set_options(frondb_tree *tree, frondb_tree_options *options);

/**
 * Puts the value of a key into a buffer; `found` is set to whether the key has a value. Without a
 * `snapshot` (NULL) the call reads the newest value.
 *
 * Threads: any for the tree, one at a time for the buffer.
 *
 * Errors: FRONDB_CORRUPTION; FRONDB_IO; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped;
 * FRONDB_INVALID for a snapshot of another database, or if an update of the key cannot be applied
 * (frondb_update_fn).
 */
frondb_error *frondb_tree_get(frondb_tree *tree,
                              frondb_slice key,
                              frondb_snapshot *snapshot,
                              frondb_buffer *buffer,
                              bool *found);

/**
 * Copies as much of a key's value to `value` as fits into `capacity` bytes; `value_len` is set to
 * the full length. Otherwise as frondb_tree_get().
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_get_into(frondb_tree *tree,
                                   frondb_slice key,
                                   frondb_snapshot *snapshot,
                                   void *value,
                                   size_t capacity,
                                   size_t *value_len,
                                   bool *found);

/**
 * Reads several keys, all at the same moment or at a snapshot. Blocks that are not in memory are
 * read concurrently, so one call takes less time than a call for each key. The values are stored
 * in the buffer, and the array `values` of `count` slices points to them; `data` is NULL for a key
 * without a value. The slices are valid until the buffer is filled again or freed.
 *
 * Threads: any for the tree, one at a time for the buffer.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_multi_get(frondb_tree *tree,
                                    const frondb_slice *keys,
                                    size_t count,
                                    frondb_snapshot *snapshot,
                                    frondb_buffer *buffer,
                                    frondb_slice *values);

/**
 * Sets `found` to whether a key has a value. Large values are not read.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_exists(frondb_tree *tree,
                                 frondb_slice key,
                                 frondb_snapshot *snapshot,
                                 bool *found);

/**
 * Sets the value of one key with the durability of the database handle
 * (frondb_db_with_commit_sync()). For many writes a batch is cheaper.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_put(frondb_tree *tree, frondb_slice key, frondb_slice value);

/**
 * Sets the value of one key and puts its former value into a buffer, with the durability of the
 * database handle; `found` is set to whether the key had a value. No other write of the key
 * happens between the read and the write.
 *
 * Threads: any for the tree, one at a time for the buffer.
 *
 * Errors: as frondb_db_write() and frondb_tree_get().
 */
frondb_error *frondb_tree_replace(frondb_tree *tree,
                                  frondb_slice key,
                                  frondb_slice value,
                                  frondb_buffer *buffer,
                                  bool *found);

/**
 * Removes one key and puts its former value into a buffer, as frondb_tree_replace().
 *
 * Threads: any for the tree, one at a time for the buffer.
 *
 * Errors: as frondb_tree_replace().
 */
frondb_error *frondb_tree_take(frondb_tree *tree,
                               frondb_slice key,
                               frondb_buffer *buffer,
                               bool *found);

/**
 * Removes one key, which need not exist, with the durability of the database handle.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_delete(frondb_tree *tree, frondb_slice key);

/**
 * Writes an update of `key` with `operand` and reads nothing, with the durability of the database
 * handle. Readers and merges apply the tree's update function later.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if the tree has no update function or the function is not registered;
 * otherwise as frondb_db_write().
 */
frondb_error *frondb_tree_update(frondb_tree *tree, frondb_slice key, frondb_slice operand);

/**
 * Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end), with the
 * durability of the database handle.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_delete_range(frondb_tree *tree, frondb_slice lo, const frondb_slice *hi);

/**
 * Estimates the number of entries and the disk space of the keys from `lo` (inclusive) to `hi`
 * (exclusive; NULL: to the end). In a tree that is fully merged the call costs a few searches and
 * reads no data. Otherwise it reads a few blocks at each of up to 42 places of the range, more in
 * a longer range. The result is usually within a factor of two.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_estimate(frondb_tree *tree,
                                   frondb_slice lo,
                                   const frondb_slice *hi,
                                   frondb_estimate *estimate);

/**
 * Counts or estimates the entries among the first `max_keys` keys from `lo` (inclusive) to `hi`
 * (exclusive; NULL: to the end), for an optimizer that asks before each short query. Deleted keys
 * whose tombstones are still in the tree count as keys. The call costs at most as much as a scan
 * of these keys without values.
 *
 * If `max_keys` is at least 8, at least half of the messages of the range are consolidated, and
 * few are deletes, the estimate is the number of consolidated entries: at least half and at most
 * 4/3 of the true number. This estimate costs a fraction of counting. If memtables have many
 * messages in the range, the estimate may be extrapolated from about an eighth of `max_keys` keys,
 * but never from fewer than eight keys. If block indexes show that the range has several times
 * `max_keys` keys, the call counts none (`count` is 0, both flags are false), and reads at most
 * the blocks at the ends of the range.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_estimate_first(frondb_tree *tree,
                                         frondb_slice lo,
                                         const frondb_slice *hi,
                                         uint64_t max_keys,
                                         frondb_first_entries *first);

/**
 * Estimates how many messages the keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end)
 * have. The call adds up counts and assumes that keys are evenly spread within a block. It reads
 * no data, so it is cheaper than frondb_tree_estimate().
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_messages(frondb_tree *tree,
                                   frondb_slice lo,
                                   const frondb_slice *hi,
                                   frondb_message_counts *counts);

/**
 * Returns up to `parts` - 1 ascending keys that split the tree into parts with about equally many
 * messages, for sampling or for parallel work. Returns fewer keys if `parts` is above 1,024, or if
 * the tree has few keys. The call costs a few searches for each part and reads no data.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_split_keys(frondb_tree *tree, size_t parts, frondb_list **keys);

/**
 * Returns statistics of a tree; docs/operating/status.md lists their names.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_tree_stats(frondb_tree *tree, frondb_stats **stats);

/**
 * Puts the smallest key above all keys that begin with `prefix` into a buffer. This key is the
 * `hi` of the range of keys that begin with `prefix`. `found` is set to false if there is no such
 * key: the range then extends to the end, and its `hi` is NULL.
 *
 * Threads: one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID for a prefix of more than 32 KiB.
 */
frondb_error *frondb_prefix_end(frondb_slice prefix, frondb_buffer *buffer, bool *found);

/**
 * Makes an empty batch. Free it with frondb_batch_free().
 *
 * Threads: any. One thread at a time may use the batch; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_batch_new(frondb_batch **batch);

/**
 * Frees a batch; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_batch_free(frondb_batch *batch);

/**
 * Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB; frondb_db_write() rejects
 * longer ones.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_put(frondb_batch *batch,
                               frondb_tree *tree,
                               frondb_slice key,
                               frondb_slice value);

/**
 * Removes a key; it need not exist.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_delete(frondb_batch *batch, frondb_tree *tree, frondb_slice key);

/**
 * Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end of the tree).
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_delete_range(frondb_batch *batch,
                                        frondb_tree *tree,
                                        frondb_slice lo,
                                        const frondb_slice *hi);

/**
 * Adds an update of `key` with `operand` and reads nothing. Readers and merges apply the tree's
 * update function later. Operands have at most 64 KiB.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_update(frondb_batch *batch,
                                  frondb_tree *tree,
                                  frondb_slice key,
                                  frondb_slice operand);

/**
 * Marks the batch as a step of an operation that frees space, for example removing the names of
 * trees before they are dropped. The database then accepts the batch on a full disk, as it accepts
 * batches of deletes. Only for small batches: the disk space reserved for this case is small.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_set_frees_space(frondb_batch *batch);

/**
 * Exempts the batch from write stalls, which delay commits while background work is behind. For
 * small and rare writes for which other threads wait, such as a counter.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_exempt_from_pacing(frondb_batch *batch);

/**
 * Removes all writes, undoes frondb_batch_set_frees_space() and frondb_batch_exempt_from_pacing(),
 * and keeps the allocated memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_clear(frondb_batch *batch);

/**
 * Returns the present size of a batch.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_measure(frondb_batch *batch, frondb_batch_size *size);

/**
 * Makes an empty buffer. Free it with frondb_buffer_free().
 *
 * Threads: any. One thread at a time may use the buffer. While another thread uses it, a call that
 * fills or frees it gets FRONDB_BUSY. While another thread fills it, frondb_buffer_value() returns
 * an empty slice.
 */
frondb_error *frondb_buffer_new(frondb_buffer **buffer);

/**
 * Returns the value that the last read put into the buffer; an empty slice if the read found no
 * value, after a read of several keys, or for a pointer that is not a buffer. The bytes are valid
 * until the buffer is filled again or freed.
 *
 * Threads: one at a time.
 */
frondb_slice frondb_buffer_value(frondb_buffer *buffer);

/**
 * Frees a buffer and its contents; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_buffer_free(frondb_buffer *buffer);

/**
 * Opens a cursor over the keys of a tree from `lo` (inclusive; empty: from the beginning) to `hi`
 * (exclusive; NULL: to the end), at a snapshot, or at the present state if `snapshot` is NULL.
 * This call reads no data. Free the cursor with frondb_cursor_free().
 *
 * Threads: any for the tree. One thread at a time may use the cursor; a second one gets
 * FRONDB_BUSY.
 *
 * Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_INVALID for a snapshot of another
 * database; FRONDB_CLOSED.
 */
frondb_error *frondb_tree_cursor(frondb_tree *tree,
                                 frondb_slice lo,
                                 const frondb_slice *hi,
                                 frondb_snapshot *snapshot,
                                 frondb_cursor **cursor);

/**
 * Frees a cursor; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_cursor_free(frondb_cursor *cursor);

/**
 * Moves to the first entry whose key is at least `key`; `found` is set to whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_CORRUPTION for a damaged block on the way; FRONDB_IO; FRONDB_CLOSED;
 * FRONDB_INVALID for an entry whose update cannot be applied; FRONDB_NOT_FOUND if the tree was
 * dropped before the first move. For a cursor of a transaction also the errors of
 * frondb_txn_get().
 */
frondb_error *frondb_cursor_seek(frondb_cursor *cursor, frondb_slice key, bool *found);

/**
 * Moves to the last entry whose key is at most `key`; `found` is set to whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_seek_for_prev(frondb_cursor *cursor, frondb_slice key, bool *found);

/**
 * Moves to the first entry; `found` is set to whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_first(frondb_cursor *cursor, bool *found);

/**
 * Moves to the last entry; `found` is set to whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_last(frondb_cursor *cursor, bool *found);

/**
 * Moves to the next entry; `found` is set to whether there is one. A cursor that has passed the
 * last entry does not move any further.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_next(frondb_cursor *cursor, bool *found);

/**
 * Moves to the previous entry; `found` is set to whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_prev(frondb_cursor *cursor, bool *found);

/**
 * Reads the next entries in one call, as repeated calls of frondb_cursor_next() would, except that
 * the first batch after a seek begins with the entry that the seek found. A batch ends after
 * `rows_max` entries, before its keys and values together exceed `bytes_max`, or at the end of the
 * range. It has at least one entry, unless no entry is left: then the count is 0. Afterwards the
 * cursor is at the last entry of the batch, or at no entry if the batch reached the end of the
 * range.
 *
 * The call copies keys and values, but saves many calls; about 100 rows are a good size. A locking
 * cursor of a transaction locks every entry that it reads. If reading fails after some entries,
 * the call returns these entries, and the next step or batch returns the error, unless a seek
 * comes first.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek() and frondb_cursor_value(); FRONDB_INVALID if `rows_max` is 0.
 */
frondb_error *frondb_cursor_next_batch(frondb_cursor *cursor,
                                       size_t rows_max,
                                       size_t bytes_max,
                                       frondb_rows *rows);

/**
 * Reads the previous entries in one call, in descending order; otherwise as
 * frondb_cursor_next_batch().
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_next_batch().
 */
frondb_error *frondb_cursor_prev_batch(frondb_cursor *cursor,
                                       size_t rows_max,
                                       size_t bytes_max,
                                       frondb_rows *rows);

/**
 * Returns whether the cursor is at an entry; false for a pointer that is not a cursor.
 *
 * Threads: one at a time.
 */
bool frondb_cursor_is_valid(frondb_cursor *cursor);

/**
 * Returns the key of the current entry; an empty slice if there is no current entry. The key is
 * not copied: it is valid until the cursor moves or is freed.
 *
 * A batch that `bytes_max` ended has read one entry more than it returned. The first call of this
 * function after such a batch moves the cursor back to the last entry of the batch, and may read
 * from disk for that.
 *
 * Threads: one at a time.
 *
 * Errors: after a batch that `bytes_max` ended, as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_key(frondb_cursor *cursor, frondb_slice *key);

/**
 * Returns the value of the current entry; an empty slice if there is no current entry. The value
 * is not copied: it is valid until the cursor moves or is freed. This call reads a large value
 * from disk.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_CORRUPTION or FRONDB_IO for a large value that cannot be read; FRONDB_CLOSED;
 * FRONDB_INVALID once the cursor's transaction was prepared. After a batch as frondb_cursor_key().
 */
frondb_error *frondb_cursor_value(frondb_cursor *cursor, frondb_slice *value);

/**
 * Returns key and value of the current entry with one call; both are empty slices if there is no
 * current entry. Otherwise as frondb_cursor_key() and frondb_cursor_value().
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_value().
 */
frondb_error *frondb_cursor_entry(frondb_cursor *cursor, frondb_entry *entry);

/**
 * Returns whether a locking cursor of a transaction has locked the current entry. With
 * FRONDB_SHOW_LOCKED, false means that another transaction holds the lock, and the cursor shows
 * the entry as it was last committed. After a batch the current entry is the last of the batch.
 * Also returns false after frondb_cursor_unlock(), without a current entry, for a cursor without
 * locks, and for a pointer that is not a cursor.
 *
 * Threads: one at a time.
 */
bool frondb_cursor_is_locked(frondb_cursor *cursor);

/**
 * Releases the lock of the current entry, for a caller that rejects the row that it has read. Does
 * nothing unless the isolation level is read committed or below and this cursor took the lock.
 * After a batch the current entry is the last of the batch; if `bytes_max` ended the batch, the
 * call does nothing.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or if the cursor belongs to no transaction;
 * FRONDB_CLOSED.
 */
frondb_error *frondb_cursor_unlock(frondb_cursor *cursor);

/**
 * Frees a snapshot; NULL is ignored. Cursors that read at the snapshot stay usable.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_snapshot_free(frondb_snapshot *snapshot);

/**
 * Makes options with the defaults: repeatable read, lock waits of up to 10 s, and the durability
 * of the database handle. Free them with frondb_txn_options_free().
 *
 * Threads: any. One thread at a time may set options; any number of threads may begin transactions
 * with them.
 */
frondb_error *frondb_txn_options_new(frondb_txn_options **options);

/**
 * Frees options; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_txn_options_free(frondb_txn_options *options);

/**
 * Sets what transactions see of other transactions' writes. Default FRONDB_REPEATABLE_READ.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for an unknown level.
 */
frondb_error *frondb_txn_options_set_isolation(frondb_txn_options *options,
                                               frondb_isolation isolation);

/**
 * Sets whether a write or a locking read of a row fails with FRONDB_CONFLICT if another
 * transaction has inserted, changed or deleted the row since the snapshot of this transaction. A
 * locking cursor then also fails if it passes such a row. Default false. Only for repeatable read:
 * if set at another level, frondb_db_begin() fails with FRONDB_INVALID.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_txn_options_set_snapshot_isolation(frondb_txn_options *options, bool on);

/**
 * Sets how long a call waits for each lock before it fails with FRONDB_LOCK_TIMEOUT, milliseconds.
 * Default 10,000.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_txn_options_set_lock_timeout_millis(frondb_txn_options *options,
                                                         uint64_t millis);

/**
 * Sets what the commit waits for. Default: the durability of the handle that begins the
 * transaction (frondb_db_with_commit_sync()), which is FRONDB_SYNC unless set otherwise.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for an unknown durability.
 */
frondb_error *frondb_txn_options_set_durability(frondb_txn_options *options,
                                                frondb_durability waits_for);

/**
 * Begins the next transaction with the handle and the options of a transaction that has ended,
 * committed or rolled back. Settings that calls have changed in the ended transaction have the
 * values of the options again. For programs with many short transactions: the call costs about
 * half of frondb_db_begin(). Cursors of the ended transaction stay ended; its savepoints are gone.
 *
 * Threads: any; FRONDB_BUSY while another thread is in a call with the transaction.
 *
 * Errors: FRONDB_INVALID if the transaction has not ended; FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_begin_next(frondb_txn *txn);

/**
 * Frees a transaction, and rolls it back unless it has ended or is prepared; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with the
 * transaction or with one of its cursors (frondb_txn_cancel() ends its wait).
 */
frondb_kind frondb_txn_free(frondb_txn *txn);

/**
 * Returns the transaction's number; numbers ascend in the order in which transactions begin.
 * frondb_lock_info identifies transactions by this number.
 *
 * Threads: any.
 */
frondb_error *frondb_txn_id(frondb_txn *txn, uint64_t *id);

/**
 * Begins a statement. At read committed, all plain reads until the next
 * frondb_txn_begin_statement() or frondb_txn_end_statement() see one state. Outside of a statement
 * each read and each cursor is a statement of its own. The call drops a pending
 * frondb_txn_cancel(), which was meant for the previous statement.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_begin_statement(frondb_txn *txn);

/**
 * Ends a statement. At read committed this releases the state that the statement's reads have
 * seen; plain reads before the next statement see the newest commits.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_end_statement(frondb_txn *txn);

/**
 * Changes the time that later calls wait for each lock, milliseconds.
 * frondb_txn_options_set_lock_timeout_millis() sets the initial value.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended or is prepared; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_lock_timeout_millis(frondb_txn *txn, uint64_t millis);

/**
 * Changes what the prepare and the commit wait for. Also allowed on a prepared transaction, for
 * frondb_txn_commit(). frondb_txn_options_set_durability() sets the initial value.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for an unknown durability;
 * FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_durability(frondb_txn *txn, frondb_durability waits_for);

/**
 * Takes the snapshot of a repeatable-read transaction now. Without this call the first plain read
 * takes it.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_take_snapshot(frondb_txn *txn);

/**
 * Cancels the transaction's wait: a wait for a lock, or the wait of a commit or prepare for
 * background work to make room. The call that waits fails with FRONDB_CANCELLED, and a cancelled
 * commit or prepare has not happened. If the transaction is not waiting, its next wait fails,
 * unless frondb_txn_begin_statement() or frondb_txn_forget_cancel() comes first. This call never
 * waits.
 *
 * Threads: any; meant for another thread than the waiting one.
 */
frondb_error *frondb_txn_cancel(frondb_txn *txn);

/**
 * Drops a pending frondb_txn_cancel(), as frondb_txn_begin_statement() does. For a commit that is
 * a statement of its own: call this function before the commit.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_forget_cancel(frondb_txn *txn);

/**
 * Puts the value of a key into a buffer; `found` is set to whether the key has a value. The
 * transaction's own writes are included. A locking read returns the newest value, also if
 * it is newer than the snapshot (under snapshot isolation, the call then fails with
 * FRONDB_CONFLICT), and locks the key even if it has no value.
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, for a tree of another database, for a
 * `lock` that only cursors take, or if an update of the key cannot be applied; FRONDB_NOT_FOUND if
 * the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED. With a lock:
 * FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK: the transaction was rolled back, retry it; FRONDB_BUSY if
 * the key is locked and `wait_for` is not FRONDB_WAIT; FRONDB_CANCELLED; FRONDB_TOO_MANY_LOCKS;
 * FRONDB_CONFLICT under snapshot isolation.
 */
frondb_error *frondb_txn_get(frondb_txn *txn,
                             frondb_tree *tree,
                             frondb_slice key,
                             frondb_lock lock,
                             frondb_wait wait_for,
                             frondb_buffer *buffer,
                             bool *found);

/**
 * Copies as much of a key's value to `value` as fits into `capacity` bytes; `value_len` is set to
 * the full length. Otherwise as frondb_txn_get().
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_get().
 */
frondb_error *frondb_txn_get_into(frondb_txn *txn,
                                  frondb_tree *tree,
                                  frondb_slice key,
                                  frondb_lock lock,
                                  frondb_wait wait_for,
                                  void *value,
                                  size_t capacity,
                                  size_t *value_len,
                                  bool *found);

/**
 * Reads several keys, all at the same moment, without locks (at serializable with shared locks);
 * otherwise as frondb_tree_multi_get().
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: as frondb_txn_get().
 */
frondb_error *frondb_txn_multi_get(frondb_txn *txn,
                                   frondb_tree *tree,
                                   const frondb_slice *keys,
                                   size_t count,
                                   frondb_buffer *buffer,
                                   frondb_slice *values);

/**
 * Sets `found` to whether a key has a value. Reads and locks as frondb_txn_get() with
 * FRONDB_LOCK_NONE.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_get().
 */
frondb_error *frondb_txn_exists(frondb_txn *txn, frondb_tree *tree, frondb_slice key, bool *found);

/**
 * Estimates how many messages the transaction has written to the keys from `lo` (inclusive) to
 * `hi` (exclusive; NULL: to the end): puts, deletes and updates, including messages that later
 * ones or a rollback to a savepoint have made obsolete. frondb_tree_messages() and
 * frondb_tree_estimate() do not count these messages before the commit.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_own_messages(frondb_txn *txn,
                                      frondb_tree *tree,
                                      frondb_slice lo,
                                      const frondb_slice *hi,
                                      uint64_t *count);

/**
 * Opens a cursor over the keys of a tree from `lo` (inclusive) to `hi` (exclusive; NULL: to the
 * end). The cursor includes the transaction's own writes up to the cursor's last seek. A locking
 * cursor shows the newest data: it locks each entry before it shows the entry, and at repeatable
 * read and serializable also the gap before the entry. Under snapshot isolation, a move of a
 * locking cursor fails with FRONDB_CONFLICT if it passes a row that was inserted, changed or
 * deleted since the snapshot; a cursor that locks entries only does not notice deleted rows. After
 * the transaction's end every move fails. Free the cursor with frondb_cursor_free(), before or
 * after the end of the transaction.
 *
 * Threads: any for the transaction, calls take turns. One thread at a time may use the cursor.
 *
 * Errors: as frondb_txn_get().
 */
frondb_error *frondb_txn_cursor(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice lo,
                                const frondb_slice *hi,
                                frondb_lock lock,
                                frondb_wait wait_for,
                                frondb_cursor **cursor);

/**
 * Locks all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end), existing or not,
 * until the transaction ends. An empty `lo` with a NULL `hi` locks the whole tree.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_get(), with FRONDB_CONFLICT for any key of the range; FRONDB_INVALID
 * unless `lock` is FRONDB_LOCK_SHARED or FRONDB_LOCK_EXCLUSIVE.
 */
frondb_error *frondb_txn_lock_range(frondb_txn *txn,
                                    frondb_tree *tree,
                                    frondb_slice lo,
                                    const frondb_slice *hi,
                                    frondb_lock lock,
                                    frondb_wait wait_for);

/**
 * Releases the lock that the last locking frondb_txn_get() took on the key, for a caller that
 * rejects the row that it has read. Does nothing if the isolation level is above read committed,
 * if the transaction already had a lock on the key before that read, or if it has locked or
 * written anything since.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_unlock(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Releases the transaction's lock on a key before the transaction ends, at any isolation level.
 * For keys whose lock protects something other than their value, such as the right to use a
 * counter: after the call other transactions can change the value. Does nothing for a key that is
 * locked as part of a range (also one to which the engine has joined many row locks), or whose
 * lock was shared first and then exclusive.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has written to the tree, if it has ended, or for a
 * tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_release_key(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Finds out whether another transaction has committed a change to a key since the snapshot of this
 * transaction's plain reads. If so, `is_outdated` is set to true, `found` is set to whether the
 * key had a value at the snapshot, and `buffer` gets that value. Otherwise plain reads of the key
 * see the newest commit. `is_outdated` is also false if there is no snapshot, if
 * frondb_txn_overlay_put() or frondb_txn_overlay_delete() has set what plain reads see of the key,
 * and under snapshot isolation. The transaction's own writes do not count.
 *
 * Call this function before a write of a locked key if other trees, such as indexes, are derived
 * from the key's value. The caller writes the difference between the newest value and the new one
 * to the derived trees. Plain reads of this transaction also need the difference between the value
 * at the snapshot and the newest value: the caller adds it to the derived trees with
 * frondb_txn_overlay_put() and frondb_txn_overlay_delete(). The call costs next to nothing while
 * no transaction has committed to the tree since the snapshot.
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_get_outdated(frondb_txn *txn,
                                      frondb_tree *tree,
                                      frondb_slice key,
                                      frondb_buffer *buffer,
                                      bool *is_outdated,
                                      bool *found);

/**
 * Makes later plain reads see this value of a key instead of the value at their snapshot, unless
 * the transaction writes the key itself. The call does not lock the key, the value is never
 * committed, and locking reads do not see it. The value lasts as long as the snapshot; a rollback
 * to a savepoint undoes the call.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if plain reads have no snapshot yet, at serializable, if the transaction
 * has ended, for a key or value that is too long, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE if a large transaction cannot spill
 * to disk; FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_overlay_put(frondb_txn *txn,
                                     frondb_tree *tree,
                                     frondb_slice key,
                                     frondb_slice value);

/**
 * Makes later plain reads see no value of a key; see frondb_txn_overlay_put().
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_overlay_put().
 */
frondb_error *frondb_txn_overlay_delete(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, for a key or value that is too long, or for
 * a tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_LOCK_TIMEOUT;
 * FRONDB_TOO_MANY_LOCKS; FRONDB_DEADLOCK: the transaction was rolled back, retry it;
 * FRONDB_CONFLICT under snapshot isolation; FRONDB_CANCELLED; FRONDB_NO_SPACE if a large
 * transaction cannot spill to disk; FRONDB_IO, FRONDB_CLOSED. Except after FRONDB_DEADLOCK, the
 * transaction's writes are as before the call.
 */
frondb_error *frondb_txn_put(frondb_txn *txn,
                             frondb_tree *tree,
                             frondb_slice key,
                             frondb_slice value);

/**
 * Sets the value of a key that has none.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_EXISTS if the key has a value; the key stays locked. FRONDB_CORRUPTION. Otherwise
 * as frondb_txn_put().
 */
frondb_error *frondb_txn_insert(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice key,
                                frondb_slice value);

/**
 * Sets the value of a key and puts its former value into a buffer; `found` is set to whether the
 * key had a value.
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: as frondb_txn_put() and frondb_txn_get().
 */
frondb_error *frondb_txn_replace(frondb_txn *txn,
                                 frondb_tree *tree,
                                 frondb_slice key,
                                 frondb_slice value,
                                 frondb_buffer *buffer,
                                 bool *found);

/**
 * Removes a key and puts its former value into a buffer, as frondb_txn_replace().
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: as frondb_txn_replace().
 */
frondb_error *frondb_txn_take(frondb_txn *txn,
                              frondb_tree *tree,
                              frondb_slice key,
                              frondb_buffer *buffer,
                              bool *found);

/**
 * Removes the first entry of the newest data (not of the snapshot), or the last one if `last` is
 * set. Locks the entry, and puts its key and its value into buffers; `found` is set to whether
 * there was an entry to remove. With FRONDB_SKIP_LOCKED the call takes the first or last entry
 * that no other transaction has locked, so that several workers take different entries of a queue.
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffers.
 *
 * Errors: as frondb_txn_replace().
 */
frondb_error *frondb_txn_pop(frondb_txn *txn,
                             frondb_tree *tree,
                             bool last,
                             frondb_wait wait_for,
                             frondb_buffer *key,
                             frondb_buffer *value,
                             bool *found);

/**
 * Removes a key; it need not exist.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_put().
 */
frondb_error *frondb_txn_delete(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end). Locks the whole
 * range.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_put().
 */
frondb_error *frondb_txn_delete_range(frondb_txn *txn,
                                      frondb_tree *tree,
                                      frondb_slice lo,
                                      const frondb_slice *hi);

/**
 * Writes an update of `key` with `operand` and reads nothing. Readers and merges apply the tree's
 * update function later.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_put(); FRONDB_INVALID also if the tree has no update function or the
 * function is not registered.
 */
frondb_error *frondb_txn_update(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice key,
                                frondb_slice operand);

/**
 * Sets a savepoint and returns its number, which is never 0 and is unique in the process.
 * Savepoints nest. They need no freeing; the end of the transaction removes them.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_savepoint(frondb_txn *txn, uint64_t *savepoint);

/**
 * Undoes all writes since the savepoint was set. The savepoint stays set, and later ones are
 * removed. Locks are kept.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or belongs to another transaction;
 * FRONDB_INVALID if the transaction has ended; FRONDB_NO_SPACE or FRONDB_IO if spilled writes of a
 * large transaction cannot be rewritten: the call may be repeated; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_roll_back_to(frondb_txn *txn, uint64_t savepoint);

/**
 * Removes a savepoint and later ones, and keeps the writes.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or belongs to another transaction;
 * FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_release_savepoint(frondb_txn *txn, uint64_t savepoint);

/**
 * Removes only this savepoint: later ones stay set, and the writes are kept.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_release_savepoint().
 */
frondb_error *frondb_txn_forget_savepoint(frondb_txn *txn, uint64_t savepoint);

/**
 * Commits a transaction: all its writes take effect atomically. Returns when the commit is as
 * durable as the options of the transaction require. Before the wait for the disk, other
 * transactions see the writes and can take the locks.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NO_SPACE, FRONDB_CANCELLED (see frondb_txn_cancel()), or FRONDB_NOT_FOUND if a
 * tree was dropped: nothing has changed, and the transaction stays active, so the caller can
 * repeat the call or roll the transaction back. FRONDB_POISONED, FRONDB_IO, FRONDB_CLOSED;
 * FRONDB_INVALID if the transaction has ended.
 */
frondb_error *frondb_txn_commit(frondb_txn *txn);

/**
 * Does the first half of frondb_txn_commit(): everything except the wait for the disk.
 * frondb_committing_wait() is the second half. A caller that calls this function for several
 * transactions, one after the other, decides the order of their commits, and one sync serves all
 * of them.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_commit().
 */
frondb_error *frondb_txn_commit_in_order(frondb_txn *txn, frondb_committing **committing);

/**
 * Waits until a commit is as durable as the options of its transaction require: the second half of
 * the commit. Frees `committing`, even if the call fails.
 *
 * Threads: any, not only the thread of the first half.
 *
 * Errors: FRONDB_POISONED if the sync failed: the commit may be lost; close the database and open
 * it again. FRONDB_CLOSED.
 */
frondb_error *frondb_committing_wait(frondb_committing *committing);

/**
 * Frees the second half of a commit without waiting; NULL is ignored. The first half has happened:
 * the commit becomes durable with a later commit or with frondb_db_sync().
 *
 * Threads: any.
 */
frondb_kind frondb_committing_free(frondb_committing *committing);

/**
 * Rolls a transaction back: undoes all its writes and releases all its locks.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction was committed or rolled back before; for a prepared
 * transaction also the errors of frondb_db_rollback_prepared().
 */
frondb_error *frondb_txn_rollback(frondb_txn *txn);

/**
 * Applies `count` writes in order until one fails. Meant for the entries that one row has in
 * several trees. Each write locks its key and behaves like the function of its operation, for
 * example frondb_txn_put(). A write sees the earlier writes of the same call.
 *
 * With `all_or_none` a failed write also undoes the writes before it, for a caller that continues
 * the transaction, for example after FRONDB_EXISTS; this costs a savepoint, 70 to 100 ns. Without
 * `all_or_none` the earlier writes remain, for a caller that then rolls back the transaction. The
 * locks that the call took stay until the transaction ends, even after an error, except the locks
 * of keys, among the first 64 writes, whose insert with FRONDB_WRITE_SHARE_EXISTING was undone.
 *
 * After an error `failed_at` is the index of the write that failed, or `count` if no single write
 * caused the error.
 *
 * `any_outdated` is set to true if a write with FRONDB_WRITE_CHECK_OUTDATED has an outdated key:
 * another transaction has committed a change to the key since the snapshot of the plain reads of
 * this transaction. frondb_txn_get_outdated() then returns for each key whether it is outdated,
 * and its value at the snapshot. `failed_at` and `any_outdated` may be NULL.
 *
 * Threads: any. Calls of other threads with the same transaction may run between two writes; if a
 * write fails and `all_or_none` is set, what those calls wrote in the meantime is undone too.
 *
 * Errors: as the functions for the single operations; after FRONDB_DEADLOCK the transaction was
 * rolled back. FRONDB_INVALID also for an unknown operation or flag. If the call cannot undo the
 * writes, it returns the error of frondb_txn_roll_back_to(), and some writes remain: roll the
 * transaction back.
 */
frondb_error *frondb_txn_write_entries(frondb_txn *txn,
                                       const frondb_write *writes,
                                       size_t count,
                                       bool all_or_none,
                                       size_t *failed_at,
                                       bool *any_outdated);

/**
 * Begins a bulk statement that writes to `count` trees, and locks these trees as a whole until the
 * transaction ends. Free the statement with frondb_bulk_statement_free(), finished or not. While
 * the statement is in progress, the transaction must not write to these trees in another way.
 *
 * `statement` is set to NULL, and the caller must use single writes, if a tree has an entry in the
 * newest committed state or in the transaction's snapshot; if the transaction has written to a
 * tree, also with frondb_txn_overlay_put() or frondb_txn_overlay_delete(); if another transaction
 * has locks on a tree; or, under snapshot isolation, if a tree was changed since the snapshot. The
 * call does not wait for locks. If the reason is a lock or a commit of another transaction, the
 * call may leave locks on whole trees.
 *
 * Threads: any; calls with the transaction take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if a tree was dropped; FRONDB_TOO_MANY_LOCKS, FRONDB_CORRUPTION, FRONDB_IO,
 * FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_begin_bulk(frondb_txn *txn,
                                    frondb_tree *const *trees,
                                    size_t count,
                                    frondb_bulk_statement **statement);

/**
 * Adds `count` entries. Each write has the operation FRONDB_WRITE_PUT or FRONDB_WRITE_INSERT,
 * which have the same effect here; flags are ignored. If a key is given twice, the last value
 * wins, and frondb_bulk_statement_finish() reports the duplicate.
 *
 * Threads: one at a time for the statement, any for the trees.
 *
 * Errors: FRONDB_INVALID for a key or value that is too long, another operation, a tree with which
 * the statement was not begun, or after frondb_bulk_statement_finish(); FRONDB_NOT_FOUND if a tree
 * was dropped; FRONDB_NO_SPACE, FRONDB_IO, FRONDB_CLOSED. After one of the last three the
 * statement can only be freed; after another error it has the entries before the wrong one.
 */
frondb_error *frondb_bulk_statement_write(frondb_bulk_statement *statement,
                                          const frondb_write *writes,
                                          size_t count);

/**
 * Sorts the entries and makes them writes of the transaction. May be called only once; free the
 * statement afterwards. `progress`, unless NULL, receives the number of entries merged and to
 * merge (with an empty tree name), and can stop the work. `report`, which may be NULL, is as in
 * frondb_bulk_finish().
 *
 * Threads: one at a time for the statement; calls with its transaction take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended or has written to one of the trees in
 * another way in the meantime, or if the statement was finished before; FRONDB_NOT_FOUND if a tree
 * was dropped; FRONDB_CANCELLED if `progress` stopped the work; FRONDB_NO_SPACE, FRONDB_IO,
 * FRONDB_CLOSED. After an error the writes of the transaction are as before the statement.
 */
frondb_error *frondb_bulk_statement_finish(frondb_bulk_statement *statement,
                                           frondb_progress progress,
                                           void *user_data,
                                           frondb_stats **report);

/**
 * Puts a key that was given twice into a buffer, and the number of its tree (see frondb_tree_id())
 * into `tree`; `found` is set to whether there is such a key. Call this function after
 * frondb_bulk_statement_finish(). Of several such keys it returns the smallest one in the earliest
 * created tree that has one.
 *
 * Threads: one at a time for the statement and the buffer.
 *
 * Errors: FRONDB_INVALID for a bad handle or a NULL pointer for a result.
 */
frondb_error *frondb_bulk_statement_duplicate(frondb_bulk_statement *statement,
                                              uint64_t *tree,
                                              frondb_buffer *key,
                                              bool *found);

/**
 * Frees a statement, and drops its entries if it was not finished; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_bulk_statement_free(frondb_bulk_statement *statement);

/**
 * Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase commit.
 * From then on the transaction can be committed or rolled back by this handle or by name
 * (frondb_db_commit_prepared()), even after a restart. A prepared transaction keeps its locks
 * (after a restart only the locks of its writes) and accepts no more reads or writes. It stays
 * prepared when the handle is freed. When this call returns, the prepare is as durable as the
 * transaction's options require. To sync several prepares at once, prepare with FRONDB_NO_SYNC and
 * call frondb_db_sync() after the last one.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_EXISTS if another prepared transaction has this name; FRONDB_INVALID for a bad
 * name, or if the transaction has ended; otherwise as frondb_txn_commit().
 */
frondb_error *frondb_txn_prepare(frondb_txn *txn, frondb_slice xid);

/**
 * Lists the names of all prepared transactions, sorted, including those that were prepared before
 * the last restart.
 *
 * Threads: any.
 */
frondb_error *frondb_db_prepared(frondb_db *db, frondb_list **xids);

/**
 * Commits a prepared transaction by name.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if no prepared transaction has this name; FRONDB_NO_SPACE: the
 * transaction is still prepared, try again; FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_db_commit_prepared(frondb_db *db,
                                        frondb_slice xid,
                                        frondb_durability waits_for);

/**
 * Rolls back a prepared transaction by name, durably.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_commit_prepared().
 */
frondb_error *frondb_db_rollback_prepared(frondb_db *db, frondb_slice xid);

/**
 * Sets a hook that is called for every later commit, in commit order, for example to write a log
 * of the application. NULL removes the hook. The committing thread calls the hook before the
 * commit is durable, and the hook blocks all other commits: it must be quick, must not call
 * functions of this interface, and must return normally (no exception, no longjmp).
 * `free_user_data`, unless NULL, is called once when the hook is no longer used: after another
 * hook was set, or the database was freed. If this function fails, `free_user_data` is not called.
 *
 * Threads: any.
 */
frondb_error *frondb_db_set_commit_hook(frondb_db *db,
                                        frondb_commit_hook hook,
                                        void *user_data,
                                        void (*free_user_data)(void *user_data));

/**
 * Lists the locks that transactions hold now, in no order, at most `max` of them (0 means no
 * limit). frondb_list_get_lock() reads the items. Transactions take and release locks while the
 * list is made, so the list is not a consistent snapshot. For diagnosis: the call copies every
 * key, and a large transaction holds hundreds of thousands of locks.
 *
 * Threads: any.
 */
frondb_error *frondb_db_locks(frondb_db *db, size_t max, frondb_list **locks);

/**
 * Lists all current waits for locks, each with the transactions for which the waiting transaction
 * waits. frondb_list_get_lock() reads the items.
 *
 * Threads: any.
 */
frondb_error *frondb_db_lock_waits(frondb_db *db, frondb_list **waits);

/**
 * Sets a hook that is called when a wait for a lock begins, and again when more transactions block
 * the waiting one. For programs that decide the order of commits themselves, such as a replica
 * that commits in the order of another server. NULL removes the hook. The waiting thread calls the
 * hook before it sleeps. The hook may call frondb_txn_cancel() for any transaction, must not call
 * other functions with the waiting transaction, and must return normally (no exception, no
 * longjmp). `free_user_data`, unless NULL, is called once when the hook is no longer used. If this
 * function fails, `free_user_data` is not called.
 *
 * Threads: any.
 */
frondb_error *frondb_db_set_wait_hook(frondb_db *db,
                                      frondb_wait_hook hook,
                                      void *user_data,
                                      void (*free_user_data)(void *user_data));

/**
 * Reads item `at`, from 0, of a list of locks or of waits for locks.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are neither locks nor
 * waits.
 */
frondb_error *frondb_list_get_lock(frondb_list *list, size_t at, frondb_lock_info *info);

/**
 * Returns the last deadlock since the database was opened. `found` is set to whether there was
 * one; if not, `waits` is set to NULL and `info` is not written.
 *
 * `waits` has the wait of each transaction of the cycle, in the order of the cycle: each
 * transaction waits for the next one, the last for the first. frondb_list_get_lock() reads the
 * waits. At most 16 waits are listed, and keys are cut to 1,024 bytes. Free the list with
 * frondb_list_free().
 *
 * Threads: any.
 */
frondb_error *frondb_db_last_deadlock(frondb_db *db,
                                      frondb_deadlock_info *info,
                                      frondb_list **waits,
                                      bool *found);

/**
 * Lists all transactions that have not ended, active and prepared, ordered by number.
 * frondb_list_get_transaction() reads the items. Transactions continue while the list is made, so
 * the list is not a consistent snapshot. The cost of the call grows with the number of
 * transactions.
 *
 * Threads: any.
 */
frondb_error *frondb_db_transactions(frondb_db *db, frondb_list **transactions);

/**
 * Reads item `at`, from 0, of a list of transactions.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are not transactions.
 */
frondb_error *frondb_list_get_transaction(frondb_list *list,
                                          size_t at,
                                          frondb_transaction_info *info);

/**
 * Lists the files of the database, ordered by kind and path. frondb_list_get_file() reads the
 * items.
 *
 * Threads: any.
 *
 * Errors: FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_db_files(frondb_db *db, frondb_list **files);

/**
 * Reads item `at`, from 0, of a list of files.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are not files.
 */
frondb_error *frondb_list_get_file(frondb_list *list, size_t at, frondb_file_info *info);

/**
 * Returns how many numbers there are; 0 for a pointer that is not a frondb_stats.
 *
 * Threads: any.
 */
size_t frondb_stats_count(frondb_stats *stats);

/**
 * Reads number `at`, from 0, and its name. `name` and `value` may be NULL. The name is valid until
 * `stats` is freed.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last number.
 */
frondb_error *frondb_stats_get(frondb_stats *stats, size_t at, const char **name, uint64_t *value);

/**
 * Finds the number with this name.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if no number has this name.
 */
frondb_error *frondb_stats_find(frondb_stats *stats, const char *name, uint64_t *value);

/**
 * Returns all numbers as readable text, or another text if the function that made `stats`
 * documents one. The text is never NULL, and valid until `stats` is freed.
 *
 * Threads: any.
 */
const char *frondb_stats_text(frondb_stats *stats);

/**
 * Frees the numbers; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the object. Texts
 * that were taken from the object are no longer valid afterwards.
 */
frondb_kind frondb_stats_free(frondb_stats *stats);

/**
 * Starts counting the cost of reads on this thread, of all databases together. Each call needs a
 * call of frondb_profile_end() on the same thread; pairs may be nested. Without a call of this
 * function, reads are neither counted nor slowed.
 *
 * Threads: any; each thread counts its own reads.
 */
void frondb_profile_begin(void);

/**
 * Stops counting. `profile`, which may be NULL, receives the cost of the reads since the matching
 * frondb_profile_begin() on this thread; zeros if there was no such call.
 *
 * Threads: any; each thread counts its own reads.
 */
void frondb_profile_end(frondb_read_profile *profile);

/**
 * Returns the number of items; 0 for a pointer that is not a list.
 *
 * Threads: any.
 */
size_t frondb_list_count(frondb_list *list);

/**
 * Reads item `at`, from 0, of a list of byte strings. The bytes of `item` are valid until the list
 * is freed. A zero byte follows them; the length of `item` does not include that byte.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last string, or if the items are not byte strings.
 */
frondb_error *frondb_list_get(frondb_list *list, size_t at, frondb_slice *item);

/**
 * Frees a list; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the list. Bytes that
 * were taken from the list are no longer valid afterwards.
 */
frondb_kind frondb_list_free(frondb_list *list);

/**
 * Reads every block and every large value of every tree and checks checksums, order, counts and
 * structure. Damage is not an error of this function: the verification continues. `counts` has the
 * numbers of `runs`, `entries` (messages of runs), `values` (large values) and `bytes` that were
 * read, and of `faults`; `faults` describes in words the first fault of the nodes of each tree,
 * the first of each run, and all of large values. `counts`, `faults` and `progress` may be NULL.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CANCELLED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_verify(frondb_db *db,
                               frondb_progress progress,
                               void *user_data,
                               frondb_stats **counts,
                               frondb_list **faults);

/**
 * Verifies one tree, as frondb_db_verify().
 *
 * Threads: any.
 *
 * Errors: FRONDB_CANCELLED; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped.
 */
frondb_error *frondb_tree_verify(frondb_tree *tree,
                                 frondb_progress progress,
                                 void *user_data,
                                 frondb_stats **counts,
                                 frondb_list **faults);

/**
 * Consolidates a tree while other threads read and write it: what was committed before the call
 * becomes one sorted run in each leaf, without deleted and overwritten rows, and then free space
 * is returned to the file system. The background threads do the work. Commits never wait for it.
 * More urgent work comes first, but this work and amortised merges together get at least a quarter
 * of the steps of background jobs. The work needs the disk space of a few leaves. Leaves that are
 * already consolidated are skipped. Rows that an open snapshot or cursor can see are kept.
 *
 * `fraction` is the part of the tree's data to consolidate, beginning at the smallest key: above
 * 0, and at most 1, which is the whole tree. `leaves_per_second` limits the leaves that are
 * rewritten; 0 means no limit. `progress` receives the number of leaves that the call has
 * finished, and of all leaves, at least about ten times a second while background threads work.
 * `counts` has `leaves`, `rewritten`, `held` (leaves that keep deleted or overwritten rows or
 * updates, because an open snapshot needs them, or because an update could not be applied: the
 * update function fails or is missing, or the old or the new value is too large), `failed` (leaves
 * that could not be consolidated because of damage, or because other background work prevented
 * every attempt), `disk_bytes_before` and `disk_bytes_after` (of the tree, without large values).
 * If leaves failed, frondb_stats_text() of `counts` does not list the numbers, but has a line for
 * each of the first 16 failed leaves: the keys and the reason, with file and offset of damage.
 * `progress` and `counts` may be NULL.
 *
 * Threads: any; several calls may run at the same time.
 *
 * Errors: FRONDB_INVALID if `fraction` is out of range, or if the database was opened read-only;
 * FRONDB_CANCELLED; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE while the disk stays
 * full; FRONDB_POISONED; FRONDB_CLOSED. After an error the leaves that the call has consolidated
 * stay so.
 */
frondb_error *frondb_tree_optimize(frondb_tree *tree,
                                   double fraction,
                                   uint64_t leaves_per_second,
                                   frondb_progress progress,
                                   void *user_data,
                                   frondb_stats **counts);

/**
 * Measures the device of an existing directory, which need not be a database. The measurement
 * writes a file without a name, whose space is freed when the call returns or the process is
 * killed. `options` and `progress` may be NULL. `progress` receives an empty tree name, the
 * milliseconds that have passed, and the milliseconds that the measurement takes in all.
 *
 * The names in `stats`, where OP is `read` or `write`, T a number of threads and B a size of
 * requests in bytes; a number that is unknown, or whose operation was not measured, is absent:
 *
 * - `caching`: FRONDB_CACHING_BYPASSED or another of these numbers; `file_bytes`,
 *   `sequential_write_bytes_per_second`; `sync_nanos_p50` and `_p99`, the time of a 4 KiB write
 *   with a sync, for which a durable commit waits; `processor_wait_permille`, the share of the
 *   time that threads waited for a processor: if it is large, the measured times are too long.
 * - `OP_T_B_nanos_between`, the mean time between the ends of two consecutive requests of any
 *   threads, and `OP_T_B_nanos_p50` and `_p99`, the time that a thread waits for its request.
 * - The model T = S + B/W of a request of B bytes: `OP_T_startup_nanos` (S) and
 *   `OP_T_bytes_per_second` (W); `OP_half_power_bytes` (S * W); `OP_parallelism`, the number of
 *   requests that the device serves at once; `OP_requests_per_second_max` and
 *   `OP_bytes_per_second_max`, the limits of a rented device such as a cloud volume;
 *   `OP_model_is_good`, 0 or 1.
 * - `block_bytes` and `slice_bytes`, the sizes that suit the device if data compresses to a half.
 *   No option depends on the speed of a device, and the defaults are good on all devices.
 *
 * Threads: any; the call starts threads of its own and joins them before it returns.
 *
 * Errors: FRONDB_NOT_FOUND if the directory does not exist; FRONDB_INVALID if it is a file, or for
 * options out of range; FRONDB_NO_SPACE if less than twice the size of the file is free;
 * FRONDB_CANCELLED; FRONDB_IO.
 */
frondb_error *frondb_device_measure(const char *dir,
                                    const frondb_measure_options *options,
                                    frondb_progress progress,
                                    void *user_data,
                                    frondb_stats **stats);

/**
 * Copies the database, while other threads read and write it, into the directory `to`, which must
 * be empty or missing and lie outside of the database and its log. The backup has everything that
 * was committed before the call, and nothing that is committed after the first call of `progress`.
 * Writers wait for some milliseconds while the moment of the backup is fixed. frondb_restore()
 * makes a database from the backup.
 *
 * `since` is NULL, or the directory of a complete backup of the same database: the new backup then
 * has only the data that is neither in that backup nor in the backups before it.
 * `bytes_per_second` limits how fast the database is read; 0 means no limit. `progress` receives
 * the bytes read and the bytes to read, as far as they are known, with an empty tree name.
 * `counts` has `bytes` (the size of the backup), `database_bytes`, `log_bytes`, `log_end` and
 * `incremental` (1 or 0). `progress` and `counts` may be NULL.
 *
 * The database does not reuse freed space until the backup has read it. If less than 128 MiB of
 * the disk is left, the backup is given up, so that writers can continue. A backup that fails
 * after it has begun to write leaves a file `BACKUP.unfinished` and cannot be restored.
 *
 * Threads: any; one backup at a time.
 *
 * Errors: FRONDB_EXISTS if `to` has files; FRONDB_INVALID if `to` overlaps the database, its log
 * or `since`, if this database has not made the backup in `since`, or if the database was opened
 * read-only; FRONDB_NOT_FOUND, FRONDB_CORRUPTION and FRONDB_UNSUPPORTED for the backup in `since`;
 * FRONDB_CORRUPTION also for damaged data of the database; FRONDB_BUSY if another backup is being
 * made; FRONDB_CANCELLED; FRONDB_NO_SPACE for the backup or the database; FRONDB_POISONED;
 * FRONDB_CLOSED; FRONDB_IO.
 */
frondb_error *frondb_db_backup(frondb_db *db,
                               const char *to,
                               const char *since,
                               uint64_t bytes_per_second,
                               frondb_progress progress,
                               void *user_data,
                               frondb_stats **counts);

/**
 * Begins a backup into `to`. frondb_backup_fix() later fixes the moment of the backup: a program
 * that must hold back its writers does so only for that call, some milliseconds, and can add its
 * own files of the same moment with frondb_backup_attach(). frondb_backup_copy() then makes the
 * backup. This call reads the list of files of the backup in `since`, and creates the directory
 * `to`. Free the backup with frondb_backup_free(), copied or not.
 *
 * Threads: any. Only one backup at a time can have a fixed moment, until that backup is copied or
 * freed.
 *
 * Errors: as frondb_db_backup(), except FRONDB_BUSY.
 */
frondb_error *frondb_db_begin_backup(frondb_db *db,
                                     const char *to,
                                     const char *since,
                                     uint64_t bytes_per_second,
                                     frondb_backup **backup);

/**
 * Fixes the moment of a backup: the backup will have everything that was committed before this
 * call, and nothing that is committed after this call. Writers wait for some milliseconds. A
 * repeated call fixes a new moment; attached files stay.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if the copy has begun; FRONDB_BUSY if another backup has a fixed moment;
 * FRONDB_NO_SPACE; FRONDB_POISONED; FRONDB_CLOSED; FRONDB_IO. After an error the backup has no
 * moment.
 */
frondb_error *frondb_backup_fix(frondb_backup *backup);

/**
 * Adds a file to the backup that is not part of the database but belongs to the same moment, for
 * example a position in another log. `name` is a relative path; the file will be in the directory
 * `attached` of the backup. frondb_verify_backup() checks it like all other files;
 * frondb_restore() does not copy it.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if `name` is not a relative path without `.` and `..`, has more than 1024
 * bytes or a part with more than 255, was given before, or cannot exist beside a name that was
 * given before (`a` beside `a/b`), or if the copy has begun.
 */
frondb_error *frondb_backup_attach(frondb_backup *backup, const char *name, frondb_slice bytes);

/**
 * Copies the state of the database at the moment of the backup; if frondb_backup_fix() was not
 * called, fixes the moment first. `progress` and `counts` are as in frondb_db_backup(). A backup
 * can be copied only once, even if the copy fails.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_EXISTS if the directory is no longer empty; FRONDB_INVALID if the backup was
 * copied before; FRONDB_BUSY if this call must fix the moment and another backup has one;
 * FRONDB_CANCELLED; FRONDB_NO_SPACE for the backup or the database; FRONDB_CORRUPTION;
 * FRONDB_POISONED; FRONDB_CLOSED; FRONDB_IO.
 */
frondb_error *frondb_backup_copy(frondb_backup *backup,
                                 frondb_progress progress,
                                 void *user_data,
                                 frondb_stats **counts);

/**
 * Frees a backup; a backup that was not copied is abandoned. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it,
 * except in frondb_backup_copy(), which continues.
 */
frondb_kind frondb_backup_free(frondb_backup *backup);

/**
 * Makes a database in the directory `to`, which must be empty or missing, from `count` backups: a
 * full one, and the incremental ones after it in the order in which they were made. The call
 * compares every byte with its checksum. It uses only the permission bits of `options`, which may
 * be NULL. `progress`, which may be NULL, receives the bytes written and the total, with an empty
 * tree name.
 *
 * Until the restore is complete, `to` contains only a directory `unfinished-restore` and is not a
 * database. A failed call removes that directory; a killed process leaves it.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if a directory has no complete backup; FRONDB_INVALID if no backup is
 * given, if a backup does not continue the one before it, or if a backup and `to` overlap;
 * FRONDB_EXISTS if `to` has files; FRONDB_CORRUPTION if a backup is damaged; FRONDB_UNSUPPORTED;
 * FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
 */
frondb_error *frondb_restore(const char *const *backups,
                             size_t count,
                             const char *to,
                             frondb_options *options,
                             frondb_progress progress,
                             void *user_data);

/**
 * Reads the backup in the directory `backup`, and compares every byte with its checksum. `faults`
 * describes in words what is missing or does not match; damage is not an error of this function.
 * An incremental backup shares data with earlier backups; this call does not read that data, so
 * verify the earlier backups too. `counts` has `bytes`, `database_bytes`, `log_end`, `incremental`
 * (1 or 0) and `faults`. `progress` receives the bytes read and the total, with an empty tree
 * name. `progress`, `counts` and `faults` may be NULL.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if there is no complete backup; FRONDB_CORRUPTION if its list of files
 * is damaged; FRONDB_UNSUPPORTED; FRONDB_CANCELLED; FRONDB_IO.
 */
frondb_error *frondb_verify_backup(const char *backup,
                                   frondb_progress progress,
                                   void *user_data,
                                   frondb_stats **counts,
                                   frondb_list **faults);

/**
 * Saves the readable data of the database in the directory `from` into a new database in the
 * directory `to`, which must be empty or missing. `from` is not changed.
 *
 * A row that is saved under its tree's own name is certain: it is the version that was committed
 * last. Key ranges with unreadable blocks are omitted entirely. If the manifest or the log had to
 * be cut because of damage, no row is certain; trees are then saved only if `uncertain` is true,
 * under the name NAME.uncertain. If nothing is saved, nothing is created.
 *
 * Until the salvage is complete, `to` contains only a directory `unfinished-salvage` and is not a
 * database. A failed call removes that directory; a killed process leaves it.
 *
 * `options` may be NULL for the defaults. They apply to both databases, except the log directory,
 * which is the log directory of `from`. `counts` has the `trees` and `rows` saved, `repaired`
 * (repairs of manifest and log), `cut` (places where they were cut) and `lost` (the number of
 * `losses`). `losses` describes in words each cut, each lost key range of a tree, with its bounds
 * in hexadecimal digits and the place of the damage, and each prepared transaction. If `losses` is
 * empty, everything was saved. Damage is not an error of this function. `progress` receives for
 * each tree its new name, with bytes while the tree is checked, and then with rows while they are
 * saved. `counts`, `losses` and `progress` may be NULL.
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS if `to` contains files; FRONDB_INVALID if `to` lies in `from` or in the
 * log directory, or contains one of them; FRONDB_NOT_FOUND if `from` has no database, or there is
 * no log directory; FRONDB_BUSY if the database is open; FRONDB_CORRUPTION if nothing of the
 * database can be read; FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
 */
frondb_error *frondb_salvage(const char *from,
                             const char *to,
                             frondb_options *options,
                             bool uncertain,
                             frondb_progress progress,
                             void *user_data,
                             frondb_stats **counts,
                             frondb_list **losses);

/**
 * Begins a bulk load. `memory_bytes` is the memory that all writers together use for sorting; 0
 * means a quarter of the database's memory budget, divided among the bulk loads in progress. With
 * `refuse_duplicates` a key that is given twice makes frondb_bulk_finish() fail with
 * FRONDB_EXISTS; otherwise the last entry that a writer added wins, or, if several writers added
 * the key, the last entry of any one of them. `waits_for` is what the commit waits for. Finish the
 * load with frondb_bulk_finish(), and free it with frondb_bulk_free(), finished or not.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for an unknown durability; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_bulk_load(frondb_db *db,
                                  uint64_t memory_bytes,
                                  bool refuse_duplicates,
                                  frondb_durability waits_for,
                                  frondb_bulk **bulk);

/**
 * Frees a load, and abandons it if it was not finished; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it.
 */
frondb_kind frondb_bulk_free(frondb_bulk *bulk);

/**
 * Makes frondb_bulk_writer_put(), frondb_bulk_writer_finish() and frondb_bulk_finish() of this
 * load fail with FRONDB_CANCELLED soon, including calls in progress. No effect once
 * frondb_bulk_finish() has committed.
 *
 * Threads: any.
 */
frondb_error *frondb_bulk_cancel(frondb_bulk *bulk);

/**
 * Adds a new tree to the load. The commit of the load creates the tree together with the entries
 * loaded into it, if any. A load that fails, is freed or is killed leaves no tree. Until the
 * commit only writers of this load accept the handle; every other read or write with it fails with
 * FRONDB_NOT_FOUND. `options` may be NULL for the defaults. Free the handle with
 * frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS if another tree has the name; if another tree gets the name later,
 * frondb_bulk_finish() fails with this error. FRONDB_INVALID for a bad name or option, an update
 * function that is not registered, or a finished load; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_bulk_new_tree(frondb_bulk *bulk,
                                   const char *name,
                                   frondb_tree_options *options,
                                   frondb_tree **tree);

/**
 * Makes a new writer. All writers of a load share its memory. Finish the writer with
 * frondb_bulk_writer_finish().
 *
 * Threads: any for the load. One thread at a time may use the writer; a second one gets
 * FRONDB_BUSY.
 */
frondb_error *frondb_bulk_writer_new(frondb_bulk *bulk, frondb_bulk_writer **writer);

/**
 * Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
 *
 * Threads: one at a time for the writer, any for the tree.
 *
 * Errors: FRONDB_INVALID for a key or value that is too long, or a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CANCELLED; FRONDB_NO_SPACE, FRONDB_IO,
 * FRONDB_CLOSED. After the last three the load can only be freed.
 */
frondb_error *frondb_bulk_writer_put(frondb_bulk_writer *writer,
                                     frondb_tree *tree,
                                     frondb_slice key,
                                     frondb_slice value);

/**
 * Gives the writer's entries to the load. Frees the writer, also if the call fails with
 * FRONDB_CANCELLED.
 *
 * Threads: any; FRONDB_BUSY, and nothing is done, while another thread uses the writer.
 *
 * Errors: FRONDB_CANCELLED.
 */
frondb_error *frondb_bulk_writer_finish(frondb_bulk_writer *writer);

/**
 * Frees a writer without giving its entries to the load; then the load cannot be finished. NULL is
 * ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_bulk_writer_free(frondb_bulk_writer *writer);

/**
 * Merges the entries of all writers and commits them. Call it once, when all writers are finished;
 * free the load afterwards. `progress`, unless NULL, receives the number of entries merged and to
 * merge (each counted once for each pass; with an empty tree name), and can stop the work.
 * `report`, which may be NULL, has `entries` (loaded), `duplicates` (dropped), `raw_bytes` (key
 * and value bytes loaded, without large values) and `sorted_runs` (written to disk because the
 * memory for sorting was full).
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if a writer is not finished or the load was finished before;
 * FRONDB_CANCELLED, also if a writer was freed; FRONDB_EXISTS if a key was given twice and
 * duplicates are refused, or the name of a new tree is taken; FRONDB_NOT_FOUND if a tree was
 * dropped; FRONDB_LOCK_TIMEOUT or FRONDB_DEADLOCK if transactions kept the trees locked for a
 * minute; FRONDB_NO_SPACE, FRONDB_IO, FRONDB_POISONED, FRONDB_CLOSED. After an error nothing is
 * loaded, but after FRONDB_POISONED the reopened database may have the load.
 */
frondb_error *frondb_bulk_finish(frondb_bulk *bulk,
                                 frondb_progress progress,
                                 void *user_data,
                                 frondb_stats **report);

/**
 * Puts a key that was given twice into a buffer, and the number of its tree (see frondb_tree_id())
 * into `tree`; `found` is set to whether there is such a key. After a successful finish it is the
 * smallest such key in the earliest created tree that has one; after FRONDB_EXISTS it may be any
 * such key.
 *
 * Threads: any for the load, one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID for a bad handle or a NULL pointer for a result.
 */
frondb_error *frondb_bulk_duplicate(frondb_bulk *bulk,
                                    uint64_t *tree,
                                    frondb_buffer *key,
                                    bool *found);

/**
 * Sets a listener for the messages that all databases of the process report on their own:
 * recoveries and their progress, damage found in the background, a full disk. NULL, the initial
 * state, removes the listener. `free_user_data`, unless NULL, is called once when `log` is no
 * longer used, after another call of this function. If this function fails, `free_user_data` is
 * not called.
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS if another library in the process has subscribed to `tracing` events.
 */
frondb_error *frondb_set_log(frondb_log log,
                             void *user_data,
                             void (*free_user_data)(void *user_data));

/**
 * Sets a listener of the events of the database: flushes, merges, failed jobs, stalls of commits
 * (delays of at least 10 ms, and waits until there is room), a full disk, a poisoned database and
 * damage. NULL removes the listener.
 *
 * The thread in which an event happens calls the listener, sometimes while it holds locks of the
 * database. The listener must be quick, must not call the database, must not take a lock that the
 * application holds while it calls the database, and must return normally (no exception, no
 * longjmp). When this function returns, another thread may still be in a call of the old listener.
 * `free_user_data`, unless NULL, is called once, by any thread, when no thread can be in a call of
 * the listener any more; the same rules apply to it. If this function fails, `free_user_data` is
 * not called.
 *
 * Threads: any.
 */
frondb_error *frondb_db_set_event_listener(frondb_db *db,
                                           frondb_event_listener listener,
                                           void *user_data,
                                           void (*free_user_data)(void *user_data));

/**
 * Makes a tuple without parts. Free it with frondb_tuple_free().
 *
 * Threads: any. One thread at a time may use the tuple; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_tuple_new(frondb_tuple **tuple);

/**
 * Frees a tuple; NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_tuple_free(frondb_tuple *tuple);

/**
 * Removes all parts and keeps the allocated memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_clear(frondb_tuple *tuple);

/**
 * Adds null.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_null(frondb_tuple *tuple, bool descending);

/**
 * Adds a boolean.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_bool(frondb_tuple *tuple, bool value, bool descending);

/**
 * Adds an integer. It is encoded like an unsigned integer of the same value.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_int(frondb_tuple *tuple, int64_t value, bool descending);

/**
 * Adds an unsigned integer.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_uint(frondb_tuple *tuple, uint64_t value, bool descending);

/**
 * Adds a 32-bit float, sorted in IEEE 754's total order.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_float(frondb_tuple *tuple, float value, bool descending);

/**
 * Adds a 64-bit float, sorted in IEEE 754's total order.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_double(frondb_tuple *tuple, double value, bool descending);

/**
 * Adds bytes.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_bytes(frondb_tuple *tuple, frondb_slice value, bool descending);

/**
 * Adds a string in UTF-8. Strings sort by code point.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if the string is not UTF-8.
 */
frondb_error *frondb_tuple_add_string(frondb_tuple *tuple, frondb_slice value, bool descending);

/**
 * Returns the key that the parts so far make; empty for a pointer that is not a tuple. The bytes
 * are valid until the tuple changes or is freed.
 *
 * Threads: one at a time.
 */
frondb_slice frondb_tuple_key(frondb_tuple *tuple);

/**
 * Decodes a key, and replaces the parts of the tuple by the parts of the key. frondb_tuple_get()
 * reads the parts.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a key that is not an encoded tuple; the tuple then has no parts.
 */
frondb_error *frondb_tuple_decode(frondb_tuple *tuple, frondb_slice key);

/**
 * Returns the number of parts; 0 for a pointer that is not a tuple.
 *
 * Threads: one at a time.
 */
size_t frondb_tuple_count(frondb_tuple *tuple);

/**
 * Reads part `at`, from 0, of the tuple.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if `at` is beyond the last part.
 */
frondb_error *frondb_tuple_get(frondb_tuple *tuple, size_t at, frondb_part *part);

/**
 * Returns the number of handles of all types that have been made and not freed. For tests: a
 * program that has freed all its handles gets 0.
 *
 * Threads: any.
 */
uint64_t frondb_live_handles(void);

/* The bytes at an address. */
static inline frondb_slice frondb_bytes(const void *data, size_t len) {
  frondb_slice slice;
  slice.data = (const uint8_t *)data;
  slice.len = len;
  return slice;
}

/* The characters of a string, without its final zero byte. */
static inline frondb_slice frondb_text(const char *text) {
  return frondb_bytes(text, strlen(text));
}

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FRONDB_H */
