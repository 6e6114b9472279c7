/*
 * FronDB for C and C++. Written from crates/capi/src by `cargo xtask header`: do not edit it.
 * docs/operating/c-api.md tells how to build with it and shows a program.
 *
 * Errors. A function that can fail returns an error, or NULL if it succeeded. The error belongs to
 * the caller, who frees it with frondb_error_free(). Results are then not written, but that a place
 * for a handle is NULL and a flag is false.
 *
 * Handles. A pointer to one of the opaque types is a handle: a number that is looked up and never
 * followed. It belongs to the caller, who frees it once with the function of its type. One that is
 * NULL, was freed or is of another type makes an error of the kind FRONDB_INVALID and does no harm.
 * Nothing has to be freed in an order; frondb_db_close() ends them all.
 *
 * Threads. Every function says which threads may call it. Where that is "one at a time" for an
 * object and a second thread calls, that thread gets an error of the kind FRONDB_BUSY.
 *
 * Memory. Slices and strings that are given to a function must stay as they are until it returns.
 * What a function gives to look at belongs to its object and is good as long as its comment says.
 * No function throws, and none may be called from a signal handler or in a forked child.
 */

#ifndef FRONDB_H
#define FRONDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The version of this header; frondb_version() is that of the library. */
#define FRONDB_VERSION "0.1.0"
#define FRONDB_VERSION_MAJOR 0
#define FRONDB_VERSION_MINOR 1
#define FRONDB_VERSION_PATCH 0


/**
 * Writes to any number of trees of one database, committed together or not at all by
 * frondb_db_write(). Order counts within a tree: the later write of a key wins. May be
 * committed several times, and cleared and used again.
 */
typedef struct frondb_batch frondb_batch;

/**
 * Where reads put values; may be used again and again. What it holds stays good until it is
 * filled again or freed.
 */
typedef struct frondb_buffer frondb_buffer;

/**
 * A bulk load: much data into new or existing trees, for less work than batches take. Entries come
 * in any order and from several threads; they are sorted within a part of the memory and on disk,
 * and attached to all trees with one commit. Until then, and after an error, a cancel, a free or a
 * crash, the trees are as they were.
 */
typedef struct frondb_bulk frondb_bulk;

/**
 * Adds entries to a bulk load.
 */
typedef struct frondb_bulk_writer frondb_bulk_writer;

/**
 * A commit that has happened: all later reads see it. What is left is the wait for the disk.
 */
typedef struct frondb_committing frondb_committing;

/**
 * A position in a tree at a fixed state. Not positioned at first: frondb_cursor_next() then
 * goes to the first entry and frondb_cursor_prev() to the last. Once it has passed either end,
 * or a seek found nothing, it is at no entry, and both find nothing until it seeks again. Never
 * blocks a writer.
 *
 * A move that fails leaves it at no entry, and the next moves fail with the same error until a
 * seek: nothing is ever skipped.
 */
typedef struct frondb_cursor frondb_cursor;

/**
 * An open database.
 */
typedef struct frondb_db frondb_db;

/**
 * What went wrong. Every function that can fail returns a pointer to one, or NULL if it
 * succeeded. It belongs to the caller, who frees it with frondb_error_free().
 */
typedef struct frondb_error frondb_error;

/**
 * Names with numbers, as of one moment; see docs/operating/status.md. Free it with
 * frondb_figures_free().
 */
typedef struct frondb_figures frondb_figures;

/**
 * A list of files, as of one moment. Free it with frondb_files_free().
 */
typedef struct frondb_files frondb_files;

/**
 * A list of byte strings that never changes. Free it with frondb_list_free().
 */
typedef struct frondb_list frondb_list;

/**
 * A list of locks, or of waits for locks, as of one moment. Free it with frondb_locks_free().
 */
typedef struct frondb_locks frondb_locks;

/**
 * How a database is opened. Made by frondb_options_new() with the defaults, which need no
 * tuning; values are checked by frondb_db_open(). May be used for several opens.
 */
typedef struct frondb_options frondb_options;

/**
 * Where an update function puts its result; good only during the call of the function that it is
 * given to, and only in that thread.
 */
typedef struct frondb_output frondb_output;

/**
 * A fixed state of a whole database to read at. While it lives, space of what it still sees is
 * not given back.
 */
typedef struct frondb_snapshot frondb_snapshot;

/**
 * A list of transactions. Free it with frondb_transactions_free().
 */
typedef struct frondb_transactions frondb_transactions;

/**
 * A tree: keys in byte order, each with a value. Stays good when the tree is renamed.
 */
typedef struct frondb_tree frondb_tree;

/**
 * How a tree is made; kept with the tree. Values are checked by frondb_db_create_tree(). May be
 * used for several trees.
 */
typedef struct frondb_tree_options frondb_tree_options;

/**
 * A compound key in the making: parts of several types, ascending or descending, encoded so
 * that the keys sort as the parts do. Null sorts before all else (after it, descending), then
 * booleans, integers, floats, doubles, bytes, strings.
 */
typedef struct frondb_tuple frondb_tuple;

/**
 * Reads and writes over any number of trees that take effect together or not at all. What it
 * writes is its own until it commits: it sees it, others do not. Each key it writes is locked
 * until it ends.
 *
 * Any thread may use it; calls take turns. The victim of a deadlock is rolled back at once:
 * every later call but frondb_txn_rollback() and frondb_txn_free() fails. After its end every
 * call but frondb_txn_free() fails with FRONDB_INVALID.
 */
typedef struct frondb_txn frondb_txn;

/**
 * What a transaction is begun with. May be used for any number of them.
 */
typedef struct frondb_txn_options frondb_txn_options;

/**
 * What the caller must do about an error. The numbers never change; new ones may be added.
 */
typedef uint32_t frondb_kind;

/**
 * Where a corruption is.
 */
typedef struct {
  /**
   * File, relative to the database directory. Good until the error is freed.
   */
  const char *file;
  /**
   * What kind of block or record is there. Good until the error is freed.
   */
  const char *what;
  /**
   * Byte offset in the file.
   */
  uint64_t offset;
} frondb_place;

/**
 * What a commit with FRONDB_SYNC waits for.
 */
typedef uint32_t frondb_sync_mode;

/**
 * Bytes: a key, a value, an operand. May hold zero bytes. NULL with a length of 0 is empty; NULL
 * with another length is an error of the kind FRONDB_INVALID.
 *
 * As an argument it must stay readable and unchanged until the function returns, no longer. Where
 * a function gives one, its documentation says how long it stays good.
 */
typedef struct {
  /**
   * The first byte.
   */
  const uint8_t *data;
  /**
   * How many bytes.
   */
  size_t len;
} frondb_slice;

/**
 * An update function: what frondb_tree_update() and its like apply to a value, without reading it.
 *
 * The functions are called by any thread, by several at once, also by those of the engine in the
 * background, whenever messages are merged or read. They must be pure: the same result for the same
 * bytes, always. They must return, must not throw or jump out, and must not call functions of this
 * interface other than frondb_output_append().
 */
typedef struct {
  /**
   * sizeof(frondb_update_fn), by which a later version tells what it was given.
   */
  size_t size;
  /**
   * Name kept with the tree; UTF-8. Copied.
   */
  const char *name;
  /**
   * Version kept with the tree.
   */
  uint32_t version;
  /**
   * Given to the functions as it is.
   */
  void *user_data;
  /**
   * Puts the new value, made of the existing one (NULL: the key is absent) and one operand, into
   * `output`. Returns 0; any other number leaves the operand as it is and makes reading the key
   * FRONDB_INVALID, with what is in `output` as the message. Must not be NULL.
   */
  int32_t (*apply)(void *user_data,
                   frondb_slice key,
                   const frondb_slice *existing,
                   frondb_slice operand,
                   frondb_output *output);
  /**
   * Puts one operand that does what `older` and then `newer` do into `output`. Returns 0, or
   * another number if they cannot be combined. NULL if none can.
   */
  int32_t (*combine)(void *user_data,
                     frondb_slice key,
                     frondb_slice older,
                     frondb_slice newer,
                     frondb_output *output);
  /**
   * Called once, by any thread, when nothing uses the function any more: after the options and
   * every database opened with them are freed. NULL if nothing is to be done.
   */
  void (*free_user_data)(void *user_data);
} frondb_update_fn;

/**
 * How blocks are compressed.
 */
typedef uint32_t frondb_codec;

/**
 * Which filters a tree has.
 */
typedef uint32_t frondb_filter;

/**
 * What a commit waits for.
 */
typedef uint32_t frondb_durability;

/**
 * What a key range is estimated to hold.
 */
typedef struct {
  /**
   * Keys that have a value.
   */
  uint64_t entries;
  /**
   * Bytes on disk, and what is still in memory will take there.
   */
  uint64_t disk_bytes;
} frondb_estimate;

/**
 * Entries at the beginning of a key range.
 */
typedef struct {
  /**
   * How many there are among the keys that were looked at, or what `is_estimate` says.
   */
  uint64_t count;
  /**
   * Whether those are all keys of the range.
   */
  bool is_all;
  /**
   * Whether `count` is about how many entries the range has: there are many messages, and only
   * the first keys were looked at.
   */
  bool is_estimate;
} frondb_first_entries;

/**
 * How many messages a key range has.
 */
typedef struct {
  /**
   * Puts, deletes and updates, those too that newer ones make obsolete.
   */
  uint64_t all;
  /**
   * Those of them that are consolidated: each is the only one of its key that is.
   */
  uint64_t base;
} frondb_message_counts;

/**
 * How large a batch is.
 */
typedef struct {
  /**
   * How many writes it holds.
   */
  uint64_t writes;
  /**
   * Bytes it takes in the log, about.
   */
  uint64_t log_bytes;
  /**
   * Bytes it takes in memory once it is committed, about; at most frondb_db_batch_bytes_max() can
   * be committed.
   */
  uint64_t memory_bytes;
} frondb_batch_size;

/**
 * An entry of a tree.
 */
typedef struct {
  /**
   * Its key.
   */
  frondb_slice key;
  /**
   * Its value.
   */
  frondb_slice value;
} frondb_entry;

/**
 * Entries that a cursor has read at once. Good until the cursor moves or is freed.
 */
typedef struct {
  /**
   * The entries, in the order in which the cursor met them.
   */
  const frondb_entry *entries;
  /**
   * How many; 0 at the end.
   */
  size_t count;
} frondb_rows;

/**
 * What a transaction sees of others.
 */
typedef uint32_t frondb_isolation;

/**
 * How a read locks.
 */
typedef uint32_t frondb_lock;

/**
 * What to do where a lock is held by another transaction.
 */
typedef uint32_t frondb_wait;

/**
 * What a commit hook is told.
 */
typedef struct {
  /**
   * Number of the transaction, as frondb_txn_id() has it; 0 for a plain batch.
   */
  uint64_t transaction;
  /**
   * The commit's place in the order of all commits: ascending.
   */
  uint64_t order;
  /**
   * Where its record ends in the log: durable when the log is durable up to there.
   */
  uint64_t log_end;
} frondb_commit_info;

/**
 * Told of a commit. `info` is good during the call.
 */
typedef void (*frondb_commit_hook)(void *user_data, const frondb_commit_info *info);

/**
 * Told of a wait for a lock: the number of the transaction that waits, and those of the ones it waits
 * for, ascending. `blockers` is good during the call.
 */
typedef void (*frondb_wait_hook)(void *user_data,
                                 uint64_t waiter,
                                 const uint64_t *blockers,
                                 size_t blockers_count);

/**
 * What a lock is on.
 */
typedef uint32_t frondb_lock_area;

/**
 * A lock that a transaction holds or waits for. What it points to is good until the list is freed.
 */
typedef struct {
  /**
   * Number of the transaction, as frondb_txn_id() has it.
   */
  uint64_t transaction;
  /**
   * Number of the tree, as frondb_tree_id() has it.
   */
  uint64_t tree;
  /**
   * What is locked.
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
   * First key behind; data is NULL if the area goes to the end, and for one key.
   */
  frondb_slice hi;
  /**
   * Numbers of the transactions that are waited for, ascending; none for a lock that is held.
   */
  const uint64_t *blockers;
  /**
   * How many those are.
   */
  size_t blockers_count;
  /**
   * For how long was waited, nanoseconds; 0 for a lock that is held.
   */
  uint64_t waited_nanos;
} frondb_lock_info;

/**
 * A deadlock as it was found.
 */
typedef struct {
  /**
   * Number of the transaction that was chosen as the victim.
   */
  uint64_t victim;
  /**
   * How many transactions the circle had.
   */
  uint64_t transactions;
  /**
   * How long ago it was, nanoseconds.
   */
  uint64_t ago_nanos;
} frondb_deadlock_info;

/**
 * A transaction that has not ended. What it points to is good until the list is freed.
 */
typedef struct {
  /**
   * Its number, as frondb_txn_id() and frondb_lock_info have it.
   */
  uint64_t transaction;
  /**
   * How long ago it began, nanoseconds; of one that was found prepared when the database was opened:
   * how long ago that was.
   */
  uint64_t age_nanos;
  /**
   * Messages it has written and not undone: puts, deletes, updates, and one for each range delete. Of
   * one that was found prepared what was left of them, one for each key and range.
   */
  uint64_t messages;
  /**
   * Locks it holds: rows, gaps and ranges.
   */
  uint64_t locks;
  /**
   * For how long it has waited for a lock, nanoseconds, if it waits.
   */
  uint64_t waited_nanos;
  /**
   * Its name if it is prepared; else data is NULL.
   */
  frondb_slice xid;
  /**
   * What it sees of others; FRONDB_ISOLATION_UNKNOWN for one that was found prepared when the database
   * was opened.
   */
  frondb_isolation isolation;
  /**
   * It waits for a lock.
   */
  bool waits;
} frondb_transaction_info;

/**
 * What a file is for.
 */
typedef uint32_t frondb_file_kind;

/**
 * A file of a database.
 */
typedef struct {
  /**
   * Its path, below the directory that frondb_db_open() was given, or in the log's directory. Good
   * until the list is freed.
   */
  const char *path;
  /**
   * What it is for.
   */
  frondb_file_kind kind;
  /**
   * Its length, bytes.
   */
  uint64_t bytes;
  /**
   * Bytes that it takes on the device: less where it has holes.
   */
  uint64_t allocated_bytes;
} frondb_file_info;

/**
 * Told of the progress of a verification: the tree's name (good during the call) and its bytes done
 * and to do. Returns 0 to go on; any other number stops the work with FRONDB_CANCELLED. Called by
 * the thread that verifies; must not throw or jump out.
 */
typedef int32_t (*frondb_progress)(void *user_data, const char *tree, uint64_t done, uint64_t to_do);

/**
 * How much a message matters.
 */
typedef uint32_t frondb_log_level;

/**
 * Told of a message, a sentence that is good during the call. Called by any thread, by several at
 * once, also by those of the engine in the background; it must be quick, must not call functions of
 * this interface, and must not throw or jump out.
 */
typedef void (*frondb_log)(void *user_data, frondb_log_level level, const char *message);

/**
 * What a frondb_write does to its key.
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
   * What to do.
   */
  frondb_operation operation;
  /**
   * How to do it.
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
 * Chosen as the victim of a deadlock and rolled back: retry the transaction.
 */
#define FRONDB_DEADLOCK 2

/**
 * Waited too long for a lock: retry the transaction.
 */
#define FRONDB_LOCK_TIMEOUT 3

/**
 * In use just now: retry the call. Also where a second thread uses what is for one at a time.
 */
#define FRONDB_BUSY 4

/**
 * The call is wrong: fix it. Also for a handle that is NULL, freed, or of another type.
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
 * The disk is full: free space. Reading goes on, and writing resumes by itself.
 */
#define FRONDB_NO_SPACE 8

/**
 * A byte on disk is not what was written; see frondb_error_place().
 */
#define FRONDB_CORRUPTION 9

/**
 * A failed fsync left the state of the disk unknown: close and open again.
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
 * Written by a newer version, or a feature this build does not have.
 */
#define FRONDB_UNSUPPORTED 14

/**
 * A bug of the engine: please report it.
 */
#define FRONDB_INTERNAL 15

/**
 * Until it is on the disk. Commits that wait at the same time share one sync. The default.
 */
#define FRONDB_SYNC_ALWAYS 0

/**
 * For nothing; it is on the disk at most so many milliseconds later.
 */
#define FRONDB_SYNC_EVERY_MILLIS 1

/**
 * For nothing; it is on the disk when the log is synced for another reason.
 */
#define FRONDB_SYNC_NEVER 2

/**
 * Stored as they are.
 */
#define FRONDB_CODEC_NONE 0

/**
 * LZ4: cheapest. No levels.
 */
#define FRONDB_CODEC_LZ4 1

/**
 * Zstandard, levels 1 to 19.
 */
#define FRONDB_CODEC_ZSTD 2

/**
 * zlib, levels 1 to 9.
 */
#define FRONDB_CODEC_ZLIB 3

/**
 * LZMA, presets 0 to 9: smallest and slowest; wants blocks of 128 KiB.
 */
#define FRONDB_CODEC_LZMA 4

/**
 * None at all.
 */
#define FRONDB_FILTER_NONE 0

/**
 * Whole keys, on all data: for trees looked up by full key. The default.
 */
#define FRONDB_FILTER_FULL 1

/**
 * Whole keys, not on consolidated data: for non-unique indexes.
 */
#define FRONDB_FILTER_RUNS 2

/**
 * The first bytes of keys, not on consolidated data.
 */
#define FRONDB_FILTER_PREFIX 3

/**
 * Until it survives power loss (as far as frondb_options_set_sync() says so).
 */
#define FRONDB_SYNC 0

/**
 * Until the operating system has it: it survives the end of the process, not power loss.
 */
#define FRONDB_NO_SYNC 1

/**
 * As read committed: uncommitted data is never shown.
 */
#define FRONDB_READ_UNCOMMITTED 0

/**
 * Each statement sees what was committed when it began. Locking reads lock rows only.
 */
#define FRONDB_READ_COMMITTED 1

/**
 * All plain reads see the state of the first one; locking reads and writes see the newest, and
 * locking cursors lock the gaps they pass. The default.
 */
#define FRONDB_REPEATABLE_READ 2

/**
 * All reads lock what they read.
 */
#define FRONDB_SERIALIZABLE 3

/**
 * Not at all (at serializable: shared).
 */
#define FRONDB_LOCK_NONE 0

/**
 * Shared: the newest value; nobody else can write it until the transaction ends.
 */
#define FRONDB_LOCK_SHARED 1

/**
 * Exclusive: the newest value; nobody else can lock or write it until the transaction ends.
 */
#define FRONDB_LOCK_EXCLUSIVE 2

/**
 * Wait, up to the transaction's lock timeout.
 */
#define FRONDB_WAIT 0

/**
 * Fail at once with FRONDB_BUSY.
 */
#define FRONDB_NO_WAIT 1

/**
 * Cursors pass over such rows, and lock no gaps; a single read fails with FRONDB_BUSY.
 */
#define FRONDB_SKIP_LOCKED 2

/**
 * Sets the value of the key, as frondb_txn_put().
 */
#define FRONDB_WRITE_PUT 0

/**
 * Sets the value of a key that has none, as frondb_txn_insert(): FRONDB_EXISTS if it has one.
 */
#define FRONDB_WRITE_INSERT 1

/**
 * Removes the key, whether it exists or not, as frondb_txn_delete(). The value is ignored.
 */
#define FRONDB_WRITE_DELETE 2

/**
 * Applies the tree's update function with the value as its operand, as frondb_txn_update().
 */
#define FRONDB_WRITE_UPDATE 3

/**
 * Checks whether the key is outdated, as frondb_txn_get_outdated() would tell.
 */
#define FRONDB_WRITE_CHECK_OUTDATED 1

/**
 * One key: `lo`.
 */
#define FRONDB_AREA_ROW 0

/**
 * Keys where a locking read found no row.
 */
#define FRONDB_AREA_GAP 1

/**
 * What a locking scan passed, rows and gaps.
 */
#define FRONDB_AREA_SCANNED 2

/**
 * All keys of a range.
 */
#define FRONDB_AREA_RANGE 3

/**
 * Of a transaction that an earlier process has prepared.
 */
#define FRONDB_ISOLATION_UNKNOWN 4

/**
 * Data of all trees.
 */
#define FRONDB_FILE_DATA 0

/**
 * A segment of the log, in use or kept for later.
 */
#define FRONDB_FILE_LOG 1

/**
 * What the data files have and where.
 */
#define FRONDB_FILE_MANIFEST 2

/**
 * A lock or the mark of an owner: a few bytes.
 */
#define FRONDB_FILE_MARK 3

/**
 * Something failed, and somebody should look at it.
 */
#define FRONDB_LOG_ERROR 0

/**
 * Something is not as it should be, and work goes on.
 */
#define FRONDB_LOG_WARNING 1

/**
 * What is being done, for example how far a recovery is.
 */
#define FRONDB_LOG_INFO 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, for example "0.1.0". FRONDB_VERSION is that of the header.
 *
 * Threads: any.
 */
const char *frondb_version(void);

/**
 * What to do about the error; FRONDB_OK for NULL. FRONDB_INVALID for what is no error.
 *
 * Threads: any.
 */
frondb_kind frondb_error_kind(frondb_error *error);

/**
 * What happened, as a sentence: never NULL, good until the error is freed.
 *
 * Threads: any.
 */
const char *frondb_error_message(frondb_error *error);

/**
 * The operating system's error number (errno), if it reported one; else 0.
 *
 * Threads: any.
 */
int32_t frondb_error_os_code(frondb_error *error);

/**
 * Where the corruption is. Returns whether the error has a place; `place` is written only then.
 *
 * Threads: any.
 */
bool frondb_error_place(frondb_error *error, frondb_place *place);

/**
 * The name of a kind, for example "LockTimeout"; "?" for a number that is none. Always good.
 *
 * Threads: any.
 */
const char *frondb_kind_name(frondb_kind kind);

/**
 * Frees an error. NULL is ignored. Returns FRONDB_OK, or FRONDB_INVALID for what is no error or was
 * freed.
 *
 * Threads: any; the last call with this error.
 */
frondb_kind frondb_error_free(frondb_error *error);

/**
 * Makes options with the defaults: make the database if there is none, a quarter of the machine's
 * memory, sync at every commit. Free them with frondb_options_free().
 *
 * Threads: any. The options are for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_options_new(frondb_options **options);

/**
 * Frees options. NULL is ignored. Databases opened with them go on.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_options_free(frondb_options *options);

/**
 * All the memory the engine may use, bytes: cache, memtables, filters, indexes and work buffers. At
 * least 16 MiB; default a quarter of the machine's memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_memory_bytes(frondb_options *options, uint64_t bytes);

/**
 * How much of the memory is filled with writes before the largest tree's are flushed, bytes: 16 KiB
 * to half of the memory; 0, the default, for a quarter, and less below 64 MiB of memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_write_buffer_bytes(frondb_options *options, uint64_t bytes);

/**
 * Whether to make the database if the directory has none. Default true.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_create(frondb_options *options, bool create);

/**
 * Whether to fail if the directory has a database already. Default false.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_create_new(frondb_options *options, bool create_new);

/**
 * Whether to open the database without changing a byte of it. Default false. Several processes may read
 * at once, and none that writes beside them; every call that would write is FRONDB_INVALID.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_read_only(frondb_options *options,
                                           bool read_only);

/**
 * What a commit with FRONDB_SYNC waits for; `millis` is for FRONDB_SYNC_EVERY_MILLIS alone. Default
 * FRONDB_SYNC_ALWAYS.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a mode that does not exist.
 */
frondb_error *frondb_options_set_sync(frondb_options *options,
                                      frondb_sync_mode mode,
                                      uint64_t millis);

/**
 * Where the log is kept, for a device of its own. Default: in the database directory. Must be the
 * same at every open.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_log_dir(frondb_options *options, const char *path);

/**
 * Permission bits of new files, whatever the umask is: 0600 to 0666, with those of the owner. Default 0600,
 * for the owner alone. Files that exist keep theirs, so that who shares a database with a group gives 0640 or
 * 0660 at every open.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_file_mode(frondb_options *options,
                                           uint32_t mode);

/**
 * Permission bits of new directories, whatever the umask is: 0700 to 0777, with those of the owner. Default:
 * those of files, and an x for each r, so 0700.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_dir_mode(frondb_options *options,
                                          uint32_t mode);

/**
 * Bytes that a file of the log grows to: 64 KiB to 1 GiB; 0, the default, for a quarter of the write
 * buffer and at most 100 MiB.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_log_segment_bytes(frondb_options *options,
                                                   uint64_t bytes);

/**
 * Whether log records are compressed with lz4 where that pays. Default false.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_log_compression(frondb_options *options, bool on);

/**
 * Threads that flush and merge. 0 does all of it inside the calls that need it. Default: half of
 * the cores, at least 2.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_background_threads(frondb_options *options, uint32_t threads);

/**
 * Whether data files bypass the operating system's cache where the file system can. Default true.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_direct_io(frondb_options *options, bool on);

/**
 * Disk space kept ready for deletes and one merge on a full disk, bytes. Default 24 MiB, at most
 * 256 MiB.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_reserve_bytes(frondb_options *options, uint64_t bytes);

/**
 * How long a record of the log may be the only place of its messages, about, milliseconds: then they
 * are flushed, although there is room for more, so that a crash replays little. Default 0: as long as
 * the log is no longer than twice the write buffer.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_checkpoint_millis(frondb_options *options,
                                                   uint64_t millis);

/**
 * Bytes a second that flushes and merges may write; writers are slowed to what they can follow.
 * Default 0: no limit.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_options_set_background_bytes_per_second(frondb_options *options,
                                                             uint64_t bytes);

/**
 * Registers an update function, beside other versions of it. A tree that was made with one that is
 * missing takes no updates, and its keys that have some cannot be read. If this fails,
 * `free_user_data` is not called.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a function without `apply` or name, or with a wrong size.
 */
frondb_error *frondb_options_add_update_fn(frondb_options *options,
                                           const frondb_update_fn *function);

/**
 * Adds bytes to what an update function returns.
 *
 * Threads: the one in which the update function was called with this `output`.
 *
 * Errors: FRONDB_INVALID for an output that is not of the present call.
 */
frondb_error *frondb_output_append(frondb_output *output, frondb_slice bytes);

/**
 * Options of a primary or unique index: looked up by full key, values with the keys. Free them with
 * frondb_tree_options_free().
 *
 * Threads: any. The options are for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_tree_options_new(frondb_tree_options **options);

/**
 * Options of a non-unique secondary index: scanned by prefix and never asked whether one full key
 * exists, so that its bases carry no filters.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_options_new_secondary(frondb_tree_options **options);

/**
 * Options for data that is read seldom, smallest files: LZMA in blocks of 128 KiB.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_options_new_aggressive(frondb_tree_options **options);

/**
 * The options that a tree was made with, for another one like it.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_options_of(frondb_tree *tree, frondb_tree_options **options);

/**
 * Frees options. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_tree_options_free(frondb_tree_options *options);

/**
 * The codec of consolidated data, and its level if it has some. Default zstd level 1.
 * FRONDB_CODEC_NONE turns compression off for what is not consolidated yet, too; any other leaves
 * that at lz4.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a codec that does not exist; a level is checked when the tree is made.
 */
frondb_error *frondb_tree_options_set_codec(frondb_tree_options *options,
                                            frondb_codec of,
                                            uint32_t level);

/**
 * The codec of data that is not consolidated yet. Default lz4. After
 * frondb_tree_options_set_codec(), which sets it too.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a codec that does not exist.
 */
frondb_error *frondb_tree_options_set_run_codec(frondb_tree_options *options,
                                                frondb_codec of,
                                                uint32_t level);

/**
 * Bytes of keys and values in a block of consolidated data. Default 16 KiB.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tree_options_set_block_bytes(frondb_tree_options *options, uint32_t bytes);

/**
 * Children of an inner node, 2 to 1,024. Default 16.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tree_options_set_fanout(frondb_tree_options *options, uint32_t fanout);

/**
 * What keys are looked up by; `prefix_bytes` is for FRONDB_FILTER_PREFIX alone. Default
 * FRONDB_FILTER_FULL.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a filter that does not exist.
 */
frondb_error *frondb_tree_options_set_filter(frondb_tree_options *options,
                                             frondb_filter filter,
                                             uint16_t prefix_bytes);

/**
 * The update function of this name and version, registered by frondb_options_add_update_fn().
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tree_options_set_update_fn(frondb_tree_options *options,
                                                const char *name,
                                                uint32_t version);

/**
 * A number of the tree's shape, for experts and tests: `name` is a field of "A tree's shape" in
 * docs/operating/options.md, for example "leaf_bytes_max".
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a name that does not exist or a number that is too large; a range is
 * checked when the tree is made.
 */
frondb_error *frondb_tree_options_set_shape(frondb_tree_options *options,
                                            const char *name,
                                            uint64_t value);

/**
 * Opens the database in a directory, or makes one there. `options` may be NULL for the defaults.
 * Free it with frondb_db_free().
 *
 * Threads: any, and any number of them may use the database.
 *
 * Errors: FRONDB_BUSY if it is open already; FRONDB_NOT_FOUND if it does not exist and is not to be
 * made; FRONDB_EXISTS if it exists and is to be new; FRONDB_INVALID for an option out of its range,
 * or if the directory holds something else; FRONDB_UNSUPPORTED if a newer version wrote it;
 * FRONDB_CORRUPTION; FRONDB_IO.
 */
frondb_error *frondb_db_open(const char *path, frondb_options *options, frondb_db **db);

/**
 * Closes a database and frees its directory for another open. The handle stays good, and so do
 * those of its trees, cursors and transactions: every later call with them but their free function
 * fails with FRONDB_CLOSED. Does not wait for other threads' calls to return.
 *
 * Threads: any.
 *
 * Errors: FRONDB_POISONED or FRONDB_IO if something could not be written: it is closed all the
 * same, and what was durable stays so.
 */
frondb_error *frondb_db_close(frondb_db *db);

/**
 * Frees a database. NULL is ignored. One that was not closed loses nothing of what was committed,
 * and ends when its trees, cursors and transactions are freed too; its next open replays the log.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
 */
frondb_kind frondb_db_free(frondb_db *db);

/**
 * Makes an empty tree. It is durable when this returns. `options` may be NULL for the defaults.
 * Free the handle with frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS; FRONDB_INVALID for a bad name or option, or an update function that is not
 * registered.
 */
frondb_error *frondb_db_create_tree(frondb_db *db,
                                    const char *name,
                                    frondb_tree_options *options,
                                    frondb_tree **tree);

/**
 * The tree of this name. Free the handle with frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND.
 */
frondb_error *frondb_db_open_tree(frondb_db *db, const char *name, frondb_tree **tree);

/**
 * The names of all trees, sorted.
 *
 * Threads: any.
 */
frondb_error *frondb_db_list_trees(frondb_db *db, frondb_list **names);

/**
 * Gives a tree another name. It is durable when this returns; handles stay good.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND, FRONDB_EXISTS, FRONDB_INVALID.
 */
frondb_error *frondb_db_rename_tree(frondb_db *db, const char *from, const char *to);

/**
 * Removes a tree with all it holds, at once. It is durable when this returns; cursors that are open
 * on it go on, other calls with its handles fail with FRONDB_NOT_FOUND.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND; FRONDB_BUSY if a prepared transaction has written to it: commit it or roll
 * it back first.
 */
frondb_error *frondb_db_drop_tree(frondb_db *db,
                                  const char *name);

/**
 * Commits a batch: all of it or nothing. Where transactions have locks it waits for them as a
 * transaction would.
 *
 * Threads: any for the database, one at a time for the batch.
 *
 * Errors: FRONDB_LOCK_TIMEOUT or FRONDB_DEADLOCK where it met locks of transactions, and
 * FRONDB_NO_SPACE: nothing changed; FRONDB_INVALID for what is wrong with the batch, or if it is
 * too large; FRONDB_NOT_FOUND if a tree was dropped; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_write(frondb_db *db, frondb_batch *batch, frondb_durability waits_for);

/**
 * How many bytes of memory, as frondb_batch_measure() counts them, a batch may have.
 *
 * Threads: any.
 */
frondb_error *frondb_db_batch_bytes_max(frondb_db *db, uint64_t *bytes);

/**
 * Begins a transaction. It costs next to nothing until it writes or locks. `options` may be NULL
 * for the defaults. Free it with frondb_txn_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for options that do not go together
 * (frondb_txn_options_set_snapshot_isolation()); FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_db_begin(frondb_db *db, frondb_txn_options *options, frondb_txn **txn);

/**
 * Takes a snapshot of all that is committed. Free it with frondb_snapshot_free().
 *
 * Threads: any, and any number of them may read at it.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_snapshot(frondb_db *db, frondb_snapshot **snapshot);

/**
 * Takes a snapshot that sees all that transactions have written to `count` trees before this call.
 * Waits up to `timeout_millis` for each to end, prepared ones too, and keeps others from writing there for the
 * moment it takes. For who builds an index of existing data: create its tree, have everybody write to it
 * from now on, then read the data at this snapshot: no row is missed.
 *
 * Threads: any.
 *
 * Errors: FRONDB_BUSY if the time was up and a prepared transaction has written there: commit it or roll it back
 * first;
 * FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK if there was one when the time was up; FRONDB_INVALID for a tree
 * of another database; FRONDB_NOT_FOUND if one was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_db_snapshot_behind_writers(frondb_db *db,
                                                frondb_tree *const *trees,
                                                size_t count,
                                                uint64_t timeout_millis,
                                                frondb_snapshot **snapshot);

/**
 * A handle of the same database whose trees make each single write (frondb_tree_put() and its like)
 * as durable as this, and so its transactions unless their options say otherwise. The handle it is
 * made of, and trees that are open, stay as they are. Free it with frondb_db_free(); either may be
 * freed first.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for a durability that does not exist.
 */
frondb_error *frondb_db_with_commit_sync(frondb_db *db,
                                         frondb_durability waits_for,
                                         frondb_db **other);

/**
 * Changes what FRONDB_SYNC waits for, for all handles and threads, until the database is closed.
 * `millis` is for FRONDB_SYNC_EVERY_MILLIS alone. Everything that was committed before this was
 * called is durable when it returns.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for a bad mode or interval: nothing is changed. As frondb_db_sync(): the
 * mode is changed all the same.
 */
frondb_error *frondb_db_set_sync_mode(frondb_db *db, frondb_sync_mode mode, uint64_t millis);

/**
 * Changes how long a record of the log may be the only place of its messages, milliseconds; see
 * frondb_options_set_checkpoint_millis(). What was committed before counts from now on.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for more than a year: nothing is changed; FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_checkpoint_millis(frondb_db *db, uint64_t millis);

/**
 * Changes how many bytes a second flushes and merges may write; 0 for no limit. Those that wait go on
 * at once. Commits, bulk loads and the parts of large transactions that are written before they
 * commit have no limit of their own.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_background_bytes_per_second(frondb_db *db,
                                                        uint64_t bytes);

/**
 * Changes how much memory the database may use, bytes; 0 for a quarter of the machine's. When it
 * returns, the cache has given back what is too much, and writes beyond the new write buffer are
 * being flushed. Merges and bulk loads that run end with what they began with.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for less than 16 MiB, or than twice a write buffer of a fixed size: nothing
 * is changed; FRONDB_CLOSED, FRONDB_POISONED.
 */
frondb_error *frondb_db_set_memory_bytes(frondb_db *db,
                                         uint64_t bytes);

/**
 * Says how much memory the program holds for the database's sake, bytes, as a server does for its
 * connections; 0 at the start. It counts as the database's own in memory_used, up to an eighth of
 * the memory (a sixteenth of less than 64 MiB): the cache makes room for it. May be called often.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CLOSED.
 */
frondb_error *frondb_db_set_outside_memory_bytes(frondb_db *db, uint64_t bytes);

/**
 * What FRONDB_SYNC waits for now, and the interval (0 where the mode has none).
 *
 * Threads: any.
 */
frondb_error *frondb_db_sync_mode(frondb_db *db, frondb_sync_mode *mode, uint64_t *millis);

/**
 * Makes everything committed so far durable.
 *
 * Threads: any.
 *
 * Errors: FRONDB_POISONED if the disk failed to; FRONDB_NO_SPACE; FRONDB_CLOSED.
 */
frondb_error *frondb_db_sync(frondb_db *db);

/**
 * Writes what is in memory to the trees, and waits for it.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NO_SPACE (nothing is lost, the log has it); FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_flush(frondb_db *db);

/**
 * Flushes and lets go of the log: the next open replays nothing from before.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_flush().
 */
frondb_error *frondb_db_checkpoint(frondb_db *db);

/**
 * Waits until no background work that writers owe is due, and until the space of deleted and overwritten large
 * values (64 KiB or more) is given back where it is worth the leaves that are written anew for it.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NO_SPACE while the disk is full; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_wait_settled(frondb_db *db);

/**
 * Whether no background work that writers owe is due; false for what is no database.
 *
 * Threads: any.
 */
bool frondb_db_is_settled(frondb_db *db);

/**
 * Does one piece of background work if one is due; with no background threads the only way it gets
 * done outside of writes. `idle` lets in what is otherwise done only when nothing is written.
 * `did` says whether there was one.
 *
 * Threads: any.
 */
frondb_error *frondb_db_run_one(frondb_db *db, bool idle, bool *did);

/**
 * Figures of the whole database; docs/operating/status.md has their names.
 *
 * Threads: any.
 */
frondb_error *frondb_db_stats(frondb_db *db, frondb_figures **stats);

/**
 * What was recovered when the database was opened: `created`, `records`, `log_bytes`, `messages`,
 * and `log_tail` and `manifest_tail`, which are 1 if a torn tail was cut off; the page has them in
 * words.
 *
 * Threads: any.
 */
frondb_error *frondb_db_recovery(frondb_db *db, frondb_figures **recovery);

/**
 * Frees the handle of a tree; the tree stays. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses the handle.
 */
frondb_kind frondb_tree_free(frondb_tree *tree);

/**
 * The tree's name, put into a buffer.
 *
 * Threads: any for the tree, one at a time for the buffer.
 */
frondb_error *frondb_tree_name(frondb_tree *tree, frondb_buffer *buffer);

/**
 * The tree's number: never used for another tree; frondb_lock_info names trees by it.
 *
 * Threads: any.
 */
frondb_error *frondb_tree_id(frondb_tree *tree, uint64_t *id);

/**
 * Puts the value of a key into a buffer; `found` says whether it has one. `snapshot` may be NULL
 * for the newest.
 *
 * Threads: any for the tree, one at a time for the buffer.
 *
 * Errors: FRONDB_CORRUPTION; FRONDB_IO; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped;
 * FRONDB_INVALID for a snapshot of another database.
 */
frondb_error *frondb_tree_get(frondb_tree *tree,
                              frondb_slice key,
                              frondb_snapshot *snapshot,
                              frondb_buffer *buffer,
                              bool *found);

/**
 * Copies the value of a key to `value`, as much of it as `capacity` has room for; `value_len` is its
 * full length. Else as frondb_tree_get().
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
 * Reads several keys as of one moment, or at a snapshot. The values are put into the buffer, and
 * `values`, an array of `count`, says where: data is NULL for a key that has none. They are good
 * until the buffer is filled again or freed.
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
 * Whether a key has a value. A large one is not read.
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
 * Sets one key, durably unless the database's handle says otherwise
 * (frondb_db_with_commit_sync()). Many are better put in a batch.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_put(frondb_tree *tree, frondb_slice key, frondb_slice value);

/**
 * Removes one key, whether it exists or not; as durable as frondb_tree_put().
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_delete(frondb_tree *tree, frondb_slice key);

/**
 * Applies the update function to one key without reading it; as durable as frondb_tree_put().
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if the tree has no update function, or the database was opened without it;
 * else as frondb_db_write().
 */
frondb_error *frondb_tree_update(frondb_tree *tree, frondb_slice key, frondb_slice operand);

/**
 * Removes all keys from `lo` on that are below `hi`, all to the end if `hi` is NULL; as durable
 * as frondb_tree_put().
 *
 * Threads: any.
 *
 * Errors: as frondb_db_write().
 */
frondb_error *frondb_tree_delete_range(frondb_tree *tree, frondb_slice lo, const frondb_slice *hi);

/**
 * About how much the keys from `lo` on that are below `hi` hold (`hi` NULL: to the end). Costs a few
 * searches; usually within a factor of two.
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
 * Counts the entries among the first `max_keys` keys from `lo` on that are below `hi` (`hi` NULL: to
 * the end). Deleted keys whose deletes still lie in the tree count as keys. Costs as much as a scan of
 * these keys that does not look at their values. Where the range has many messages in memory, its
 * entries are estimated by the first keys, an eighth of `max_keys` or more, but never by fewer than
 * eight. If it is known without a look that there are several times as many keys, 0 is counted and
 * nothing read.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_count_first(frondb_tree *tree,
                                      frondb_slice lo,
                                      const frondb_slice *hi,
                                      uint64_t max_keys,
                                      frondb_first_entries *first);

/**
 * About how many messages the keys from `lo` on that are below `hi` have (`hi` NULL: to the end). By
 * counts alone: cheaper than frondb_tree_estimate(), and reads no data. Within a block keys count
 * as even.
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
 * Keys that cut the tree into parts that hold about as many entries each: up to `parts` - 1 of them,
 * ascending, fewer where there are few keys; at most 1,024 parts are made. For a sample that stands for all of
 * the tree, or work in parts. Costs a few searches a part and reads no data.
 *
 * Threads: any.
 *
 * Errors: as frondb_tree_get().
 */
frondb_error *frondb_tree_split_keys(frondb_tree *tree,
                                     size_t parts,
                                     frondb_list **keys);

/**
 * Figures of a tree; docs/operating/status.md has their names.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_tree_stats(frondb_tree *tree, frondb_figures **stats);

/**
 * Puts the smallest key above all that begin with `prefix` into a buffer: the `hi` of a range of
 * them. `found` is false if there is no such key: then the range goes to the end, `hi` is NULL.
 *
 * Threads: one at a time for the buffer.
 */
frondb_error *frondb_prefix_end(frondb_slice prefix, frondb_buffer *buffer, bool *found);

/**
 * Makes an empty batch. Free it with frondb_batch_free().
 *
 * Threads: any. The batch is for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_batch_new(frondb_batch **batch);

/**
 * Frees a batch. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_batch_free(frondb_batch *batch);

/**
 * Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB; what is longer is reported by
 * frondb_db_write().
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_put(frondb_batch *batch,
                               frondb_tree *tree,
                               frondb_slice key,
                               frondb_slice value);

/**
 * Removes a key, whether it exists or not.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_delete(frondb_batch *batch, frondb_tree *tree, frondb_slice key);

/**
 * Removes all keys from `lo` on that are below `hi`; all to the end if `hi` is NULL.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_delete_range(frondb_batch *batch,
                                        frondb_tree *tree,
                                        frondb_slice lo,
                                        const frondb_slice *hi);

/**
 * Applies the tree's update function to a key, without reading it. Operands have at most 64 KiB.
 *
 * Threads: one at a time for the batch, any for the tree.
 */
frondb_error *frondb_batch_update(frondb_batch *batch,
                                  frondb_tree *tree,
                                  frondb_slice key,
                                  frondb_slice operand);

/**
 * Says that the batch is a step of something that frees space, as the names of trees that are dropped
 * behind it: then it is let in while the disk is full, as one that only deletes is. For small ones: what
 * is kept for a full disk is little.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_set_frees_space(frondb_batch *batch);

/**
 * Says that the batch is not to wait for background work, as writes that outrun it do: others wait for
 * who writes it, and it is small and rare, like a counter.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_set_unpaced(frondb_batch *batch);

/**
 * Forgets all writes and keeps the memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_clear(frondb_batch *batch);

/**
 * How large a batch is by now.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_batch_measure(frondb_batch *batch, frondb_batch_size *size);

/**
 * Makes an empty buffer. Free it with frondb_buffer_free().
 *
 * Threads: any. The buffer is for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_buffer_new(frondb_buffer **buffer);

/**
 * The value that the buffer was last filled with; empty if there was none, or if it is no buffer.
 * Good until the buffer is filled again or freed.
 *
 * Threads: one at a time.
 */
frondb_slice frondb_buffer_value(frondb_buffer *buffer);

/**
 * Frees a buffer and what it holds. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_buffer_free(frondb_buffer *buffer);

/**
 * A cursor over the keys of a tree from `lo` on that are below `hi` (`hi` NULL: to the end; an empty
 * `lo` is the beginning), at a snapshot, or as of now if that is NULL. It reads nothing yet. Free
 * it with frondb_cursor_free().
 *
 * Threads: any for the tree. The cursor is for one thread at a time; a second one gets FRONDB_BUSY.
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
 * Frees a cursor. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_cursor_free(frondb_cursor *cursor);

/**
 * Goes to the first entry with a key not below `key`; `found` says whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_CORRUPTION for a damaged block on the way; FRONDB_IO; FRONDB_CLOSED. Of a
 * transaction's cursor also those of frondb_txn_get().
 */
frondb_error *frondb_cursor_seek(frondb_cursor *cursor, frondb_slice key, bool *found);

/**
 * Goes to the last entry with a key not above `key`; `found` says whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_seek_for_prev(frondb_cursor *cursor, frondb_slice key, bool *found);

/**
 * Goes to the first entry; `found` says whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_first(frondb_cursor *cursor, bool *found);

/**
 * Goes to the last entry; `found` says whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_last(frondb_cursor *cursor, bool *found);

/**
 * Goes to the next entry; `found` says whether there is one. Once past the end it stays there.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_next(frondb_cursor *cursor, bool *found);

/**
 * Goes to the entry before; `found` says whether there is one.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek().
 */
frondb_error *frondb_cursor_prev(frondb_cursor *cursor, bool *found);

/**
 * Reads the next entries at once: as many calls of frondb_cursor_next() would, but that it begins
 * with the entry at which a seek has just put the cursor. It ends after `rows_max` entries, before
 * keys and values are longer than `bytes_max` together (one entry is always read), or at the end
 * of the range; a count of 0 means the end. The cursor is at the last entry then; at none if the
 * batch ended with the range.
 *
 * Costs a copy of keys and values and saves the calls: about 100 rows are a good number. A locking
 * cursor of a transaction locks all that it reads. If the work fails after some entries these are
 * given, and the next move returns the error.
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_seek() and frondb_cursor_value().
 */
frondb_error *frondb_cursor_next_batch(frondb_cursor *cursor,
                                       size_t rows_max,
                                       size_t bytes_max,
                                       frondb_rows *rows);

/**
 * Reads the entries before at once, from the later to the earlier; else as
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
 * Whether the cursor is at an entry; false for what is no cursor.
 *
 * Threads: one at a time.
 */
bool frondb_cursor_is_valid(frondb_cursor *cursor);

/**
 * Key of the entry the cursor is at; empty if it is at none. Not copied: good until the cursor
 * moves or is freed.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_cursor_key(frondb_cursor *cursor, frondb_slice *key);

/**
 * Value of the entry the cursor is at; empty if it is at none. Not copied: good until the cursor
 * moves or is freed. A large value is read from disk now.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_CORRUPTION or FRONDB_IO for a large value that cannot be read; FRONDB_CLOSED;
 * FRONDB_INVALID once the cursor's transaction was prepared.
 */
frondb_error *frondb_cursor_value(frondb_cursor *cursor, frondb_slice *value);

/**
 * Key and value of the entry the cursor is at, for one call: both empty if it is at none. As
 * frondb_cursor_key() and frondb_cursor_value().
 *
 * Threads: one at a time.
 *
 * Errors: as frondb_cursor_value().
 */
frondb_error *frondb_cursor_entry(frondb_cursor *cursor, frondb_entry *entry);

/**
 * The state that a cursor shows, as a snapshot. Free it with frondb_snapshot_free().
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a cursor of a transaction.
 */
frondb_error *frondb_cursor_snapshot(frondb_cursor *cursor, frondb_snapshot **snapshot);

/**
 * Gives up the lock of the entry the cursor is at: for a caller that looked and does not want it.
 * Only at read committed and below, and only a lock that this cursor took; else nothing happens.
 * After a batch that is the batch's last entry, unless `bytes_max` ended it: then nothing happens.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a cursor of no transaction;
 * FRONDB_CLOSED.
 */
frondb_error *frondb_cursor_unlock(frondb_cursor *cursor);

/**
 * Frees a snapshot. NULL is ignored. Cursors that read at it go on.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_snapshot_free(frondb_snapshot *snapshot);

/**
 * Makes options with the defaults: repeatable read, waits of 10 s for a lock, and a commit that
 * waits for the disk. Free them with frondb_txn_options_free().
 *
 * Threads: any. The options are for one thread at a time to set, for any number to begin with.
 */
frondb_error *frondb_txn_options_new(frondb_txn_options **options);

/**
 * Frees options. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
 */
frondb_kind frondb_txn_options_free(frondb_txn_options *options);

/**
 * What the transaction sees of others. Default FRONDB_REPEATABLE_READ.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for a level that does not exist.
 */
frondb_error *frondb_txn_options_set_isolation(frondb_txn_options *options,
                                               frondb_isolation isolation);

/**
 * Whether a write to a row that was changed since the transaction's snapshot fails with
 * FRONDB_CONFLICT. Default false. For repeatable read only: at another level frondb_db_begin() fails
 * with FRONDB_INVALID.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_txn_options_set_snapshot_isolation(frondb_txn_options *options,
                                                        bool on);

/**
 * How long each lock is waited for before the call fails with FRONDB_LOCK_TIMEOUT, milliseconds.
 * Default 10,000.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_txn_options_set_lock_timeout_millis(frondb_txn_options *options,
                                                         uint64_t millis);

/**
 * What the commit waits for. Default: what the handle says that begins it
 * (frondb_db_with_commit_sync()), which is FRONDB_SYNC if nothing else was said.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID for one that does not exist.
 */
frondb_error *frondb_txn_options_set_durability(frondb_txn_options *options,
                                                frondb_durability waits_for);

/**
 * Frees a transaction; one that has not ended is rolled back. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it, or with one
 * of its cursors (frondb_txn_cancel() ends its wait).
 */
frondb_kind frondb_txn_free(frondb_txn *txn);

/**
 * The transaction's number: ascending in the order in which transactions begin; names it in
 * frondb_lock_info.
 *
 * Threads: any.
 */
frondb_error *frondb_txn_id(frondb_txn *txn, uint64_t *id);

/**
 * Begins a statement: at read committed, all plain reads until the next call of this see one state.
 * Without it each call, and each cursor, is a statement of its own. A frondb_txn_cancel() that no wait
 * has met is forgotten: it was meant for the statement before.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_begin_statement(frondb_txn *txn);

/**
 * Ends a statement: at read committed, the state that its reads saw is kept for it no longer, also if
 * the next frondb_txn_begin_statement() comes late.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_end_statement(frondb_txn *txn);

/**
 * Changes how long each lock is waited for, milliseconds, from the next call on.
 * frondb_txn_options_set_lock_timeout_millis() is what a transaction begins with.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended or is prepared; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_lock_timeout_millis(frondb_txn *txn, uint64_t millis);

/**
 * Changes what the prepare and the commit to come wait for. Also once it is prepared, for
 * frondb_txn_commit(). frondb_txn_options_set_durability() is what a transaction begins with.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a durability that does not exist;
 * FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_durability(frondb_txn *txn, frondb_durability waits_for);

/**
 * Fixes now what a repeatable read sees; else its first read does.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_take_snapshot(frondb_txn *txn);

/**
 * Makes the transaction's wait for a lock fail with FRONDB_CANCELLED, or its commit or prepare while that
 * waits for background work to make room: it is then as if it had not been tried. If the transaction does
 * not wait, its next wait fails, unless frondb_txn_begin_statement() or frondb_txn_forget_cancel() comes
 * before. Never waits itself.
 *
 * Threads: any; this is for another one than the one that waits.
 */
frondb_error *frondb_txn_cancel(frondb_txn *txn);

/**
 * Forgets a frondb_txn_cancel() that no wait has met, as frondb_txn_begin_statement() does: for a commit
 * that is a statement of its own.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_forget_cancel(frondb_txn *txn);

/**
 * Puts the value of a key into a buffer, own writes included; `found` says whether it has one. With
 * a lock it is the newest value, whatever the snapshot, and the key is locked also if it has none.
 *
 * Threads: any for the transaction, calls take turns; one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED. Where it
 * locks: FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK: the transaction was rolled back, try it again;
 * FRONDB_BUSY if it is locked and is not to be waited for; FRONDB_CANCELLED; FRONDB_CONFLICT under
 * snapshot isolation.
 */
frondb_error *frondb_txn_get(frondb_txn *txn,
                             frondb_tree *tree,
                             frondb_slice key,
                             frondb_lock lock,
                             frondb_wait wait_for,
                             frondb_buffer *buffer,
                             bool *found);

/**
 * Copies the value of a key to `value`, as much of it as `capacity` has room for; `value_len` is its
 * full length. Else as frondb_txn_get().
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
 * Reads several keys as of one moment, without locks (at serializable with shared ones); as
 * frondb_tree_multi_get().
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
 * Gives up the lock of a key that the last locking frondb_txn_get() took: for a caller that looked and
 * does not want it. Only at read committed and below, only if the transaction had no lock on it
 * before, and only if it has locked or written nothing since; else nothing happens.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_unlock(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice key);

/**
 * Whether a key was committed after the snapshot that plain reads of the transaction read at: then
 * `is_outdated` is set, `found` says whether the key had a value there, and `buffer` has it. Not set: plain
 * reads see the newest commit; also without a snapshot, where the overlay has the key, and under
 * snapshot isolation. Own writes do not count.
 *
 * For keys that the transaction has locked and is about to write, by a caller that keeps other trees derived
 * from their values: the transaction's writes to those trees lead from the newest value to its own, and its
 * plain reads need the way from this value too, which is for frondb_txn_overlay_put() and
 * frondb_txn_overlay_delete(). Costs next to nothing while nobody has committed to the tree since the snapshot.
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
 * From now on plain reads see this value of a key in place of what their snapshot has, unless the transaction
 * writes the key itself. It is neither locked nor committed, and locking reads do not see it. It ends with
 * the snapshot; rolling back to a savepoint undoes it.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if plain reads have no snapshot (yet), at serializable, if the transaction has ended,
 * for a key or value that is too long, or for a tree of another database; FRONDB_NOT_FOUND if the tree was
 * dropped; FRONDB_NO_SPACE if a large transaction cannot go on to disk; FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_txn_overlay_put(frondb_txn *txn,
                                     frondb_tree *tree,
                                     frondb_slice key,
                                     frondb_slice value);

/**
 * From now on plain reads see no value of a key, as frondb_txn_overlay_put().
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_overlay_put().
 */
frondb_error *frondb_txn_overlay_delete(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Locks all keys from `lo` on that are below `hi`, there or not, until the transaction ends; all
 * to the end if `hi` is NULL. An empty `lo` without `hi` is the whole tree.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_get(); FRONDB_INVALID for FRONDB_LOCK_NONE.
 */
frondb_error *frondb_txn_lock_range(frondb_txn *txn,
                                    frondb_tree *tree,
                                    frondb_slice lo,
                                    const frondb_slice *hi,
                                    frondb_lock lock,
                                    frondb_wait wait_for);

/**
 * Whether a key has a value; reads and locks as frondb_txn_get() with FRONDB_LOCK_NONE.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_get().
 */
frondb_error *frondb_txn_exists(frondb_txn *txn, frondb_tree *tree, frondb_slice key, bool *found);

/**
 * A cursor over the keys of a tree from `lo` on that are below `hi` (`hi` NULL: to the end), with
 * the transaction's own writes as of its last seek. With a lock it shows the newest data and locks
 * each entry before it shows it, from repeatable read on with the gap before it. Free it with
 * frondb_cursor_free(), before or after the transaction's end; after it every move fails.
 *
 * Threads: any for the transaction, calls take turns. The cursor is for one thread at a time.
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
 * Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended, for a key or value that is too long, or for a
 * tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_LOCK_TIMEOUT;
 * FRONDB_DEADLOCK: the transaction was rolled back, try it again; FRONDB_CONFLICT under snapshot
 * isolation; FRONDB_CANCELLED; FRONDB_NO_SPACE if a large transaction cannot go on to disk;
 * FRONDB_IO, FRONDB_CLOSED. The transaction is as it was before the call, but for FRONDB_DEADLOCK.
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
 * Errors: FRONDB_EXISTS if it has one; it is locked now. Else as frondb_txn_put().
 */
frondb_error *frondb_txn_insert(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice key,
                                frondb_slice value);

/**
 * Removes a key, whether it exists or not.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_put().
 */
frondb_error *frondb_txn_delete(frondb_txn *txn, frondb_tree *tree, frondb_slice key);

/**
 * Removes all keys from `lo` on that are below `hi`; all to the end if `hi` is NULL. The range is
 * locked as a whole.
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
 * Applies the tree's update function to a key, without reading it.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_put(); FRONDB_INVALID if the tree has no update function, or the database
 * was opened without it.
 */
frondb_error *frondb_txn_update(frondb_txn *txn,
                                frondb_tree *tree,
                                frondb_slice key,
                                frondb_slice operand);

/**
 * Sets a savepoint and gives its number, which is never 0 and no other savepoint's of the process.
 * Savepoints nest. It needs no freeing; the transaction's end forgets it.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
 */
frondb_error *frondb_txn_set_savepoint(frondb_txn *txn, uint64_t *savepoint);

/**
 * Undoes all writes since the savepoint was set. It stays set; those set after it are gone. Locks
 * stay.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NOT_FOUND if it is not set any more, or is another transaction's; FRONDB_INVALID if
 * the transaction has ended; FRONDB_NO_SPACE or FRONDB_IO if a part of a large transaction has to
 * be written anew: the call may be repeated.
 */
frondb_error *frondb_txn_roll_back_to(frondb_txn *txn,
                                      uint64_t savepoint);

/**
 * Forgets a savepoint and those set after it, and keeps what was written.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NOT_FOUND if it is not set any more, or is another transaction's; FRONDB_INVALID if
 * the transaction has ended.
 */
frondb_error *frondb_txn_release_savepoint(frondb_txn *txn,
                                           uint64_t savepoint);

/**
 * Forgets a savepoint alone: those set after it stay, and what was written.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_release_savepoint().
 */
frondb_error *frondb_txn_forget_savepoint(frondb_txn *txn, uint64_t savepoint);

/**
 * Commits: all writes take effect together. Returns when they are as durable as it asks;
 * others see them, and get the locks, before the wait for the disk.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_NO_SPACE, or FRONDB_NOT_FOUND if a tree was dropped: nothing has changed, and the
 * transaction goes on, for another try or a rollback. FRONDB_POISONED, FRONDB_IO, FRONDB_CLOSED;
 * FRONDB_INVALID if it has ended.
 */
frondb_error *frondb_txn_commit(frondb_txn *txn);

/**
 * The first half of frondb_txn_commit(): all but the wait for the disk, which is
 * frondb_committing_wait(). Who calls it for several transactions one after the other decides their
 * order, and lets one sync serve them all.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_commit().
 */
frondb_error *frondb_txn_commit_in_order(frondb_txn *txn, frondb_committing **committing);

/**
 * The second half of a commit: waits until it is as durable as the transaction asks. Frees
 * `committing`, also if it fails.
 *
 * Threads: any, also another one than that of the first half.
 *
 * Errors: FRONDB_POISONED if the disk failed: the commit may be lost; close and open again.
 */
frondb_error *frondb_committing_wait(frondb_committing *committing);

/**
 * Frees a commit's second half without the wait: the commit has happened, and becomes durable with
 * a later one, or with frondb_db_sync(). NULL is ignored.
 *
 * Threads: any.
 */
frondb_kind frondb_committing_free(frondb_committing *committing);

/**
 * Undoes all writes and lets go of all locks.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_INVALID if it was committed or rolled back before.
 */
frondb_error *frondb_txn_rollback(frondb_txn *txn);

/**
 * Applies `count` writes in order, all or none: if a write fails, the writes before it are undone. Meant for
 * the entries that one row has in several trees; one call costs less than one call an entry. Each write
 * locks its key and behaves as the single call of its operation; a write sees what earlier writes of the
 * same call wrote. The locks that the call took stay until the transaction ends, also after an error.
 *
 * After an error `failed_at` is the index of the write that failed, or `count` if the error did not come
 * from a write.
 *
 * `any_outdated` is set if another transaction has committed the key of a write that has
 * FRONDB_WRITE_CHECK_OUTDATED since the snapshot of this transaction's plain reads;
 * frondb_txn_get_outdated() then tells for each key whether it is outdated, and its value at the snapshot.
 * `failed_at` and `any_outdated` may be NULL.
 *
 * Threads: any. Calls of other threads with the same transaction may run between two writes; if a write
 * fails, what they wrote in the meantime is undone too.
 *
 * Errors: as the single calls. The transaction is then as it was before the call except for its locks; after
 * FRONDB_DEADLOCK it was rolled back. FRONDB_INVALID also for an operation or a flag that does not exist.
 * Where the writes cannot be undone the error is that of frondb_txn_roll_back_to(), and some of them remain:
 * roll the transaction back.
 */
frondb_error *frondb_txn_write_entries(frondb_txn *txn,
                                       const frondb_write *writes,
                                       size_t count,
                                       size_t *failed_at,
                                       bool *any_outdated);

/**
 * Prepares under a name of 1 to 256 bytes, the first of two phases: from now on the transaction can
 * be committed or rolled back, whatever happens, by this handle or by name
 * (frondb_db_commit_prepared()), also after a restart. It keeps its write locks and takes no more
 * reads or writes; freeing the handle leaves it prepared. Durable, as it asks, when this
 * returns.
 *
 * Threads: any; calls take turns.
 *
 * Errors: FRONDB_EXISTS if one of this name is prepared; FRONDB_INVALID for the name, or if it has
 * ended; else as frondb_txn_commit().
 */
frondb_error *frondb_txn_prepare(frondb_txn *txn, frondb_slice xid);

/**
 * The first half of frondb_txn_prepare(): all but the wait for the disk, which is
 * frondb_committing_wait(). Only when that is over may a coordinator be told that the transaction
 * is prepared.
 *
 * Threads: any; calls take turns.
 *
 * Errors: as frondb_txn_prepare().
 */
frondb_error *frondb_txn_prepare_in_order(frondb_txn *txn,
                                          frondb_slice xid,
                                          frondb_committing **preparing);

/**
 * The names of all prepared transactions, sorted: those of this process, and those that the last
 * one left behind.
 *
 * Threads: any.
 */
frondb_error *frondb_db_prepared(frondb_db *db, frondb_list **xids);

/**
 * Commits a prepared transaction by its name.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if none of this name is prepared; FRONDB_NO_SPACE: it is still prepared,
 * try again; FRONDB_POISONED, FRONDB_CLOSED.
 */
frondb_error *frondb_db_commit_prepared(frondb_db *db,
                                        frondb_slice xid,
                                        frondb_durability waits_for);

/**
 * Rolls a prepared transaction back by its name; durable when it returns.
 *
 * Threads: any.
 *
 * Errors: as frondb_db_commit_prepared().
 */
frondb_error *frondb_db_rollback_prepared(frondb_db *db, frondb_slice xid);

/**
 * Tells `hook` of every commit from now on, in their order, for a log of one's own; NULL for
 * nobody. It is called by the thread that commits, before the commit is durable and while no other
 * can happen: it must be quick, must not call functions of this interface, and must not throw or
 * jump out. `free_user_data`, unless NULL, is called once, when the hook is not used any more: after
 * another one was set, or the database was freed. If this function fails it is not called.
 *
 * Threads: any.
 */
frondb_error *frondb_db_set_commit_hook(frondb_db *db,
                                        frondb_commit_hook hook,
                                        void *user_data,
                                        void (*free_user_data)(void *user_data));

/**
 * All locks that transactions hold just now, in no order. Not one moment: locks come and go while
 * the list is made. It copies every key, so it is for people.
 *
 * Threads: any.
 */
frondb_error *frondb_db_locks(frondb_db *db, frondb_locks **locks);

/**
 * All waits for locks just now, with who is waited for.
 *
 * Threads: any.
 */
frondb_error *frondb_db_lock_waits(frondb_db *db, frondb_locks **waits);

/**
 * Tells `hook` of every wait for a lock that begins from now on, and of those that get longer, for who
 * has an order of its own for transactions; NULL for nobody. It is called by the thread that waits,
 * before it sleeps: it may call frondb_txn_cancel() for any transaction and no other function with the
 * one that waits, and must not throw or jump out. `free_user_data`, unless NULL, is called once, when
 * the hook is not used any more. If this function fails it is not called.
 *
 * Threads: any.
 */
frondb_error *frondb_db_set_wait_hook(frondb_db *db,
                                      frondb_wait_hook hook,
                                      void *user_data,
                                      void (*free_user_data)(void *user_data));

/**
 * How many there are; 0 for what is no list.
 *
 * Threads: any.
 */
size_t frondb_locks_count(frondb_locks *locks);

/**
 * One of the list.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if there are not so many.
 */
frondb_error *frondb_locks_get(frondb_locks *locks, size_t at, frondb_lock_info *info);

/**
 * Frees a list. NULL is ignored.
 *
 * Threads: any; the last call with this list.
 */
frondb_kind frondb_locks_free(frondb_locks *locks);

/**
 * The last deadlock since the database was opened. `found` says whether there was one; else the other
 * results are not written, but that `waits` is NULL.
 *
 * `waits` has what each transaction of the circle waited for, in the order of the circle: each waits
 * for the next one, the last for the first. The first 16 of them; keys are cut to 1,024 bytes. Free it
 * with frondb_locks_free().
 *
 * Threads: any.
 */
frondb_error *frondb_db_last_deadlock(frondb_db *db,
                                      frondb_deadlock_info *info,
                                      frondb_locks **waits,
                                      bool *found);

/**
 * All transactions that have not ended, active ones and prepared ones, by number. Not one moment: they
 * go on while the list is made. It takes time with their number, and keeps none of them waiting.
 *
 * Threads: any.
 */
frondb_error *frondb_db_transactions(frondb_db *db,
                                     frondb_transactions **transactions);

/**
 * How many there are; 0 for what is no list.
 *
 * Threads: any.
 */
size_t frondb_transactions_count(frondb_transactions *transactions);

/**
 * One of the list.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if there are not so many.
 */
frondb_error *frondb_transactions_get(frondb_transactions *transactions,
                                      size_t at,
                                      frondb_transaction_info *info);

/**
 * Frees a list. NULL is ignored.
 *
 * Threads: any; the last call with this list.
 */
frondb_kind frondb_transactions_free(frondb_transactions *transactions);

/**
 * The files that the database owns, by kind and path.
 *
 * Threads: any.
 *
 * Errors: FRONDB_IO, FRONDB_CLOSED.
 */
frondb_error *frondb_db_files(frondb_db *db, frondb_files **files);

/**
 * How many there are; 0 for what is no list.
 *
 * Threads: any.
 */
size_t frondb_files_count(frondb_files *files);

/**
 * One of the list.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if there are not so many.
 */
frondb_error *frondb_files_get(frondb_files *files, size_t at, frondb_file_info *info);

/**
 * Frees a list. NULL is ignored.
 *
 * Threads: any; the last call with this list.
 */
frondb_kind frondb_files_free(frondb_files *files);

/**
 * How many figures there are; 0 for what is none.
 *
 * Threads: any.
 */
size_t frondb_figures_count(frondb_figures *figures);

/**
 * A figure by its place. Either result may be NULL if it is not wanted. The name is good until the
 * figures are freed.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if there are not so many.
 */
frondb_error *frondb_figures_get(frondb_figures *figures,
                                 size_t at,
                                 const char **name,
                                 uint64_t *value);

/**
 * A figure by its name.
 *
 * Threads: any.
 *
 * Errors: FRONDB_NOT_FOUND if there is none of this name.
 */
frondb_error *frondb_figures_find(frondb_figures *figures, const char *name, uint64_t *value);

/**
 * All figures as a page for people; never NULL, good until the figures are freed.
 *
 * Threads: any.
 */
const char *frondb_figures_page(frondb_figures *figures);

/**
 * Frees figures. NULL is ignored.
 *
 * Threads: any; the last call with these figures.
 */
frondb_kind frondb_figures_free(frondb_figures *figures);

/**
 * How many strings there are; 0 for what is no list.
 *
 * Threads: any.
 */
size_t frondb_list_count(frondb_list *list);

/**
 * A string of the list. A zero byte stands behind it, which its length does not count. Good until
 * the list is freed.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if there are not so many.
 */
frondb_error *frondb_list_get(frondb_list *list, size_t at, frondb_slice *item);

/**
 * Frees a list. NULL is ignored.
 *
 * Threads: any; the last call with this list.
 */
frondb_kind frondb_list_free(frondb_list *list);

/**
 * Reads every block and every large value of every tree and checks checksums, order, counts and
 * structure. Goes on after a fault: damage is no error of this function but in the results.
 * `counts` has `runs`, `entries`, `values`, `bytes` and `faults`; `faults` has a sentence for each
 * fault. Either may be NULL if it is not wanted, and so may `progress`.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CANCELLED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_verify(frondb_db *db,
                               frondb_progress progress,
                               void *user_data,
                               frondb_figures **counts,
                               frondb_list **faults);

/**
 * As frondb_db_verify(), for one tree.
 *
 * Threads: any.
 *
 * Errors: FRONDB_CANCELLED; FRONDB_CLOSED; FRONDB_NOT_FOUND if the tree was dropped.
 */
frondb_error *frondb_tree_verify(frondb_tree *tree,
                                 frondb_progress progress,
                                 void *user_data,
                                 frondb_figures **counts,
                                 frondb_list **faults);

/**
 * Saves what can be read of the database in the directory `from`, which is not changed, into a new database in the
 * directory `to`, which must be empty or missing.
 *
 * Every row that is saved under the name of its tree is what was committed last. A key range in which a block
 * cannot be read is left out whole. Where the manifest or the log had to be cut, no row is certain; then trees are
 * saved only if `uncertain` is true, as NAME.uncertain. Where nothing is saved nothing is made.
 *
 * Until all is saved `to` has nothing but a directory `unfinished-salvage`, and opens as no database. A call that fails
 * removes it; a process that is killed leaves it.
 *
 * `options` may be NULL for the defaults; they are those of both databases, with the log directory of `from`.
 * `counts` has `trees` and `rows` that were saved, `repaired` (damage of manifest and log that was put right), `cut`
 * (places where they were cut) and `lost` (strings of `losses`). `losses` has a sentence for each cut, for each key range
 * of a tree that is lost, with its bounds in hexadecimal digits and the place of the damage, and for each
 * prepared transaction. If it is empty, everything was saved. Each of them may be NULL if it is not wanted, and so
 * may `progress`. Damage is no error of this function but in the results.
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS if `to` has files; FRONDB_INVALID if it lies in `from` or in the directory of the log, or one of
 * those in it; FRONDB_NOT_FOUND if there is no database in `from`, or no log directory; FRONDB_BUSY if it is open;
 * FRONDB_CORRUPTION if nothing can be read of it; FRONDB_CANCELLED; FRONDB_NO_SPACE; FRONDB_IO.
 */
frondb_error *frondb_salvage(const char *from,
                             const char *to,
                             frondb_options *options,
                             bool uncertain,
                             frondb_progress progress,
                             void *user_data,
                             frondb_figures **counts,
                             frondb_list **losses);

/**
 * Begins a bulk load. `memory_bytes` is for sorting, of all writers together; 0 for a quarter of the
 * memory option. With `refuse_duplicates` a key that is given twice makes frondb_bulk_finish() fail
 * with FRONDB_EXISTS; else the last one of a writer counts, and of several writers any.
 * `waits_for` is what the commit waits for. Finish it with frondb_bulk_finish(); free it with
 * frondb_bulk_free(), finished or not.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID for a durability that does not exist; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_db_bulk_load(frondb_db *db,
                                  uint64_t memory_bytes,
                                  bool refuse_duplicates,
                                  frondb_durability waits_for,
                                  frondb_bulk **bulk);

/**
 * Frees a load, and gives it up if it was not finished. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with it.
 */
frondb_kind frondb_bulk_free(frondb_bulk *bulk);

/**
 * Makes the calls of the load and of its writers, those under way too, fail with FRONDB_CANCELLED
 * soon. Without effect once frondb_bulk_finish() has committed.
 *
 * Threads: any.
 */
frondb_error *frondb_bulk_cancel(frondb_bulk *bulk);

/**
 * A new tree that exists from the commit of the load on, with all that is loaded into it, also if that is
 * nothing. A load that fails, is freed or is killed leaves no tree. Until then only writers of this load take
 * the handle; every other call with it fails with FRONDB_NOT_FOUND. `options` may be NULL for the defaults.
 * Free the handle with frondb_tree_free().
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS, here or from frondb_bulk_finish() if the name is taken meanwhile;
 * FRONDB_INVALID for a bad name or option, an update function that is not registered, or a load that was
 * finished; FRONDB_POISONED; FRONDB_CLOSED.
 */
frondb_error *frondb_bulk_new_tree(frondb_bulk *bulk,
                                   const char *name,
                                   frondb_tree_options *options,
                                   frondb_tree **tree);

/**
 * A writer of the load; all of them share its memory. Finish it with frondb_bulk_writer_finish().
 *
 * Threads: any for the load. The writer is for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_bulk_writer_new(frondb_bulk *bulk, frondb_bulk_writer **writer);

/**
 * Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
 *
 * Threads: one at a time for the writer, any for the tree.
 *
 * Errors: FRONDB_INVALID for a key or value that is too long, or a tree of another database;
 * FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CANCELLED; FRONDB_NO_SPACE, FRONDB_IO,
 * FRONDB_CLOSED: the load can only be freed.
 */
frondb_error *frondb_bulk_writer_put(frondb_bulk_writer *writer,
                                     frondb_tree *tree,
                                     frondb_slice key,
                                     frondb_slice value);

/**
 * Hands in what the writer has, and frees it, also if this fails.
 *
 * Threads: any; the last call with this writer.
 *
 * Errors: FRONDB_CANCELLED.
 */
frondb_error *frondb_bulk_writer_finish(frondb_bulk_writer *writer);

/**
 * Frees a writer without handing in what it has: the load cannot be finished any more. NULL is
 * ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_bulk_writer_free(frondb_bulk_writer *writer);

/**
 * Merges what all writers have handed in and commits it. Once only; then free the load.
 * `progress`, unless NULL, is told the entries done and to do (its `tree` is ""), and can stop the
 * work. `report` has `entries`, `duplicates`, `raw_bytes` and `sorted_runs`; NULL if it is not
 * wanted.
 *
 * Threads: any.
 *
 * Errors: FRONDB_INVALID if a writer was not finished, or the load was; FRONDB_CANCELLED, also if a
 * writer was freed; FRONDB_EXISTS if a key was given twice and that is refused; FRONDB_NOT_FOUND if
 * a tree was dropped; FRONDB_LOCK_TIMEOUT or FRONDB_DEADLOCK if transactions kept the trees locked for
 * a minute; FRONDB_NO_SPACE, FRONDB_IO, FRONDB_POISONED, FRONDB_CLOSED. Nothing is loaded then.
 */
frondb_error *frondb_bulk_finish(frondb_bulk *bulk,
                                 frondb_progress progress,
                                 void *user_data,
                                 frondb_figures **report);

/**
 * Puts a key that was given twice into a buffer, and the number of its tree, as frondb_tree_id() has
 * it, into `tree`; `found` says whether there is one. It is the least key of the first tree, in the
 * order in which they were made, that has any; of a load that failed with FRONDB_EXISTS it is any.
 *
 * Threads: any for the load, one at a time for the buffer.
 *
 * Errors: FRONDB_INVALID for a bad handle or a place that is NULL.
 */
frondb_error *frondb_bulk_duplicate(frondb_bulk *bulk,
                                    uint64_t *tree,
                                    frondb_buffer *key,
                                    bool *found);

/**
 * Tells `log` what happens in all databases of the process that nobody asked for: recoveries and how
 * far they are, damage found in the background, a full disk. NULL for nobody, as at first.
 * `free_user_data`, unless NULL, is called once, when `log` is not used any more: after another one
 * was set. If this function fails it is not called.
 *
 * Threads: any.
 *
 * Errors: FRONDB_EXISTS if the process listens in another way.
 */
frondb_error *frondb_set_log(frondb_log log,
                             void *user_data,
                             void (*free_user_data)(void *user_data));

/**
 * Makes a tuple without parts. Free it with frondb_tuple_free().
 *
 * Threads: any. The tuple is for one thread at a time; a second one gets FRONDB_BUSY.
 */
frondb_error *frondb_tuple_new(frondb_tuple **tuple);

/**
 * Frees a tuple. NULL is ignored.
 *
 * Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
 */
frondb_kind frondb_tuple_free(frondb_tuple *tuple);

/**
 * Forgets all parts and keeps the memory.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_clear(frondb_tuple *tuple);

/**
 * Adds "no value".
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
 * Adds an integer. Equal to an unsigned one of the same value.
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
 * Adds a 32-bit float, in IEEE 754's total order.
 *
 * Threads: one at a time.
 */
frondb_error *frondb_tuple_add_float(frondb_tuple *tuple, float value, bool descending);

/**
 * Adds a 64-bit float, in IEEE 754's total order.
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
 * Adds a string, which must be UTF-8; sorted by code point.
 *
 * Threads: one at a time.
 *
 * Errors: FRONDB_INVALID if it is not UTF-8.
 */
frondb_error *frondb_tuple_add_string(frondb_tuple *tuple, frondb_slice value, bool descending);

/**
 * The key so far; empty for what is no tuple. Good until the tuple changes or is freed.
 *
 * Threads: one at a time.
 */
frondb_slice frondb_tuple_key(frondb_tuple *tuple);

/**
 * How many handles the process holds, of all types: those that a function gave and that were not
 * freed yet. For tests of programs: it is 0 when all was freed.
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

/* The characters of a string, without the zero byte behind them. */
static inline frondb_slice frondb_text(const char *text) {
  return frondb_bytes(text, strlen(text));
}

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FRONDB_H */
