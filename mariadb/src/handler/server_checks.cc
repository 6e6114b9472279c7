/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: unique keys that the server itself checks, by a read before each write of a row.

     USING HASH        UNIQUE of texts that are too long for an index: the index has a hash of the row's values, and the
                       server compares the values of all rows with the same hash (handler::check_duplicate_long_entry_key)
     WITHOUT OVERLAPS  the server reads the first row that ends after the new one begins (handler::ha_check_overlaps)

   The engine sees such an index as one that is not unique. Its reads lock the rows that they find, but an
   uncommitted row of another transaction cannot be found, and at READ COMMITTED no gap is locked: two transactions
   could add equal rows. So a check first takes a lock, as an insert locks a unique key: on the bytes with which all
   entries begin that may conflict with the new row, exclusively and until the transaction ends. A second transaction
   waits, and then finds the row. No entry has exactly these bytes; a lock of a key takes less memory than one of a
   range.

   How the checks are recognized: the handler has a write lock, and the read is
     by a hash: the complete key of an index whose algorithm is HA_KEY_ALG_LONG_HASH. Its only column is hidden, so no
       condition of a statement can have it. (A replica may find a row by it; the lock is more than it needs.)
     of a period: into the buffer that the server's own handler keeps for checks. Statements read into other records. */

#include "handler/ha_frondb.h"

#include "codec/entry.h"
#include "engine/errors.h"
#include "foreign/trees.h"
#include "txn/connection.h"

using namespace fron;

bool ha_frondb::is_server_check(const uchar *record, ha_rkey_function flag) const {
  if (use_.row_lock != FRONDB_LOCK_EXCLUSIVE) return false;
  const KEY &key = table->key_info[active_index];
  if (key.algorithm == HA_KEY_ALG_LONG_HASH) return flag == HA_READ_KEY_EXACT;
  if (!key.without_overlaps || flag != HA_READ_AFTER_KEY) return false;
  // The buffer belongs to the table's own handler, also in a call for a clone or for a partition.
  const uchar *buffer = table->file->lookup_buffer;
  return buffer && record == buffer + table->s->max_unique_length + table->s->null_fields;
}

/** Locks the bytes that conflicting rows have in common in the active index; `key` is the key that the server searches
    for. `end` becomes the end of their entries, if `*has_end`: nothing after it is read or locked. */
int ha_frondb::lock_checked_key(const uchar *key, uint length, std::string *end, bool *has_end) {
  const KEY &info = table->key_info[active_index];
  // The period is the last two parts: its end, by which the server searches, and its start.
  if (info.without_overlaps) length = info.key_length - 2 * info.key_part[info.user_defined_key_parts - 1].length;
  std::string common;
  encoder_.append_image(active_index, key, length, &common);
  *end = common;
  *has_end = prefix_end(end);
  // A row with NULL conflicts with no other row.
  if (KeyCodec::has_null(&info, key, length)) return 0;
  frondb_txn *txn = use_.connection->txn();
  frondb_tree *tree = encoder_.tree(active_index);
  // Lock a range of one key, which the engine locks as a row.
  std::string behind = common + '\0';
  frondb_slice hi = slice(behind);
  if (Error error = frondb_txn_lock_range(txn, tree, slice(common), &hi, use_.row_lock, FRONDB_WAIT)) return ha_error(error);
  bool is_there;
  return wait_for_prepared(txn, tree, common, nullptr, &is_there);
}
