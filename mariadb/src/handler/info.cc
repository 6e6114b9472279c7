/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: estimates for the optimizer and SHOW TABLE STATUS. */

#include "handler/ha_frondb.h"

#include <key.h>
#include <my_sys.h>

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "handler/costs.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** A range with at most this many keys is counted, unless the engine can estimate it from fewer keys
    (frondb_tree_estimate_first()). */
constexpr uint64_t COUNTED_KEYS_MAX = 128;
/** Number of entries read to count the transaction's own writes in a short range. */
constexpr size_t OWN_MAX = 32;
constexpr size_t OWN_BYTES = 64 << 10;
/** For a range with at least this many messages, use the engine's estimate of live entries, which costs more. */
constexpr uint64_t ESTIMATED_MIN = 1000;

/** Returns the lengths of `live` rows. Rows that were not measured, such as rows of uncommitted transactions, count
    like the measured ones, or, if no row was measured, like rows and entries before compression: a length of 0 would
    make the server's costs of reading rows by position infinite or undefined. */
Share::Lengths lengths_of_rows(Share::Lengths lengths, uint64_t live, const TABLE_SHARE *share) {
  if (live == 0) return lengths;
  auto complete = [&](uint64_t measured, uint64_t bytes) {
    double each = lengths.rows > 0 && measured > 0 ? double(measured) / double(lengths.rows) : double(bytes);
    double more = double(live - std::min(live, lengths.rows)) * each;
    return std::max<uint64_t>(BLOCK_BYTES, measured + uint64_t(more));
  };
  uint64_t entry_bytes = 0;
  for (uint k = 0; k < share->keys; k++)
    if (k != share->primary_key) entry_bytes += share->key_info[k].key_length + ROW_OVERHEAD;
  lengths.data = complete(lengths.data, share->reclength + ROW_OVERHEAD);
  if (entry_bytes > 0) lengths.indexes = complete(lengths.indexes, entry_bytes);
  return lengths;
}

/** Estimates the live rows in a part of a table. `rows`: the live rows of the whole table. Assumes that the part has
    the ratio of the whole table: of new rows to unconsolidated messages, or, if deletes prevail, of live rows to
    consolidated messages. */
double live_rows(const frondb_message_counts &part, const frondb_message_counts &whole, double rows) {
  double base = double(whole.base), above = double(whole.all - whole.base);
  if (rows < base) return double(part.base) * rows / base;
  double added = above > 0 ? std::min(1.0, (rows - base) / above) : 0;
  return double(part.base) + double(part.all - part.base) * added;
}

}  // namespace

// --- The whole table ---

int ha_frondb::info(uint flag) {
  if (flag & HA_STATUS_ERRKEY) errkey = use_.connection ? use_.connection->duplicate_key : ~0u;
  return guarded([&] {
    if (flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST) && needs_statistics(flag))
      // One measurement serves all handlers, and precedes the use of its results.
      if (int error = share_->measure_if_stale(table)) return error;
    if (flag & HA_STATUS_VARIABLE)
      if (int error = report_size(flag)) return error;
    if (flag & HA_STATUS_CONST) {
      stats.block_size = BLOCK_BYTES;
      report_create_time();
    }
    if (flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST)) share_->give_statistics(table);
    if (flag & HA_STATUS_TIME) stats.update_time = share_->rows->commit_time();
    if (flag & HA_STATUS_AUTO && table->found_next_number_field) stats.auto_increment_value = share_->auto_increment;
    return 0;
  });
}

/** Returns whether the call needs statistics of the indexes. SHOW TABLE STATUS and the information schema do not:
    they open every table of a database and ask for sizes, not for the rows of a key. To measure the indexes of
    thousands of tables, and to write the results, would take most of their time. The server opens tables for them
    under the command SHOW FIELDS, and only these statements request the extra variables. A statement that uses the
    table later asks again. */
bool ha_frondb::needs_statistics(uint flag) const {
  bool opens_for_listing = flag & HA_STATUS_OPEN && thd_sql_command(ha_thd()) == SQLCOM_SHOW_FIELDS;
  return !opens_for_listing && !(flag & HA_STATUS_VARIABLE_EXTRA);
}

int ha_frondb::report_size(uint flag) {
  stats.records = ha_rows(std::max<int64_t>(0, share_->rows->rows()));
  // The optimizer treats 0 as exact, and would not read the table.
  if (stats.records == 0 && !(flag & (HA_STATUS_TIME | HA_STATUS_OPEN))) stats.records = 1;
  bool is_old;
  Share::Lengths lengths = share_->known_lengths(&is_old);
  if (is_old || flag & HA_STATUS_VARIABLE_EXTRA)
    if (int error = share_->measure_lengths(&lengths)) return error;
  lengths = lengths_of_rows(lengths, stats.records, table->s);
  stats.data_file_length = lengths.data;
  stats.index_file_length = lengths.indexes;
  stats.delete_length = lengths.free;
  stats.deleted = 0;
  row_bytes_ = lengths.row ? lengths.row : table->s->reclength;
  stats.mean_rec_length = stats.records ? ulong(stats.data_file_length / stats.records) : 0;
  return 0;
}

/** Reports when the table was created: when the server wrote its definition file. */
void ha_frondb::report_create_time() {
  if (stats.create_time) return;
  char path[FN_REFLEN];
  MY_STAT found;
  fn_format(path, table->s->normalized_path.str, "", reg_ext, MY_UNPACK_FILENAME | MY_APPEND_EXT);
  // A temporary table has no lasting file, and so no creation time.
  if (my_stat(path, &found, MYF(0))) stats.create_time = ulong(found.st_mtime);
}

ha_rows ha_frondb::estimate_rows_upper_bound() { return HA_POS_ERROR; }

// --- A range of an index ---

ha_rows ha_frondb::records_in_range(uint index, const key_range *min, const key_range *max, page_range *) {
  ha_rows rows = HA_POS_ERROR;
  int error = guarded([&] {
    counted_.rows = 0;
    if (int error = count_range(index, min, max, &rows)) return error;
    if (rows == 0 || rows > COUNTED_KEYS_MAX || !max) return 0;
    counted_.tree = tree_of(index);
    counted_.lo = lo_;
    counted_.hi = hi_;
    counted_.rows = size_t(rows);
    return 0;
  });
  return error ? HA_POS_ERROR : rows;
}

int ha_frondb::count_range(uint index, const key_range *min, const key_range *max, ha_rows *rows) {
  lo_.clear();
  hi_.clear();
  bool has_end = false;
  *rows = 0;
  if (min) {
    encoder_.append_image(index, min->key, min->length, &lo_);
    if (min->flag == HA_READ_AFTER_KEY && !prefix_end(&lo_)) return 0;
  }
  if (max) {
    encoder_.append_image(index, max->key, max->length, &hi_);
    has_end = max->flag == HA_READ_BEFORE_KEY || prefix_end(&hi_);
  }
  if (has_end && hi_ <= lo_) return 0;
  size_t read;
  if (has_end && may_read_ahead() && position_.read_ahead(tree_of(index), lo_, hi_, &read)) {
    *rows = std::max<ha_rows>(1, read);
    return 0;
  }
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  frondb_slice end = slice(hi_);
  const frondb_slice *to = has_end ? &end : nullptr;
  if (int error = count_committed(tree, to, rows)) return error;
  return add_own(tree, to, rows);
}

/** Counts the committed rows from lo_ to `to`. */
int ha_frondb::count_committed(frondb_tree *tree, const frondb_slice *to, ha_rows *rows) {
  frondb_first_entries first;
  if (Error error = frondb_tree_estimate_first(tree, slice(lo_), to, COUNTED_KEYS_MAX, &first)) return ha_error(error);
  *rows = std::max<ha_rows>(1, first.count);
  if (first.is_all || first.is_estimate) return 0;
  frondb_message_counts part, whole;
  if (Error error = frondb_tree_messages(tree, slice(lo_), to, &part)) return ha_error(error);
  if (Error error = frondb_tree_messages(tree, {}, nullptr, &whole)) return ha_error(error);
  double live = live_rows(part, whole, double(stats.records));
  *rows = std::max<ha_rows>({1, first.count, ha_rows(live)});
  // Decide by messages, not by live rows: if a table is filled at one end and emptied at the other, the ratio of the
  // whole table says nothing about a part.
  if (part.all < ESTIMATED_MIN) return 0;
  frondb_estimate estimate;
  if (Error error = frondb_tree_estimate(tree, slice(lo_), to, &estimate)) return ha_error(error);
  *rows = std::max<ha_rows>({1, first.count, estimate.entries});
  return 0;
}

/** Returns whether a range can be counted by reading its first entries, which the statement then need not read
    again. Only for the first range that the optimizer requests, because it may request many of which the statement
    reads one. */
bool ha_frondb::may_read_ahead() const {
  return reads_plainly() && position_.may_read_ahead() && use_.seen_trees.empty() && !table->part_info &&
         !is_sequence() && reads_at_once();
}

/** Returns whether the statement reads its tables right after the optimizer's requests: then it makes no difference
    that the entries, and the transaction's snapshot, are slightly older. Between the two, a subquery or a stored
    function could write or wait for a lock, and a function with a side effect could wait too. EXPLAIN does not read,
    and a statement with a small LIMIT reads less. */
bool ha_frondb::reads_at_once() const {
  LEX *lex = table->in_use->lex;
  SELECT_LEX *select = lex->first_select_lex();
  bool is_only_select = lex->all_selects_list == select && !select->next_select_in_list();
  return lex->sql_command == SQLCOM_SELECT && !lex->describe && is_only_select && !select->uncacheable &&
         !lex->uses_stored_routines() && lex->unit.lim.get_select_limit() >= COUNTED_KEYS_MAX;
}

/** Returns whether the statement reads without locks at the transaction's snapshot. Otherwise a cursor would lock,
    or read at a snapshot of its own. */
bool ha_frondb::reads_plainly() const {
  return use_.connection && !use_.reads_singly() && thd_tx_isolation(ha_thd()) != ISO_SERIALIZABLE;
}

/** Adds the transaction's own inserts and deletes: counts them if the range is short, otherwise assumes that they
    are spread over the index as the transaction's messages are. */
int ha_frondb::add_own(frondb_tree *tree, const frondb_slice *to, ha_rows *rows) {
  Connection *connection = use_.connection;
  if (!connection || !connection->txn() || connection->counts().empty()) return 0;
  uint64_t part, whole;
  if (Error error = frondb_txn_own_messages(connection->txn(), tree, slice(lo_), to, &part)) return ha_error(error);
  if (part == 0) return 0;
  if (reads_plainly() && *rows + part <= OWN_MAX) {
    Cursor cursor;
    frondb_rows read;
    if (Error error = frondb_txn_cursor(connection->txn(), tree, slice(lo_), to, FRONDB_LOCK_NONE, FRONDB_WAIT, cursor.out()))
      return ha_error(error);
    if (Error error = cursor.read(OWN_MAX, OWN_BYTES, &read)) return ha_error(error);
    *rows = std::max<ha_rows>(1, cursor.is_at_entry() ? std::max<ha_rows>(*rows, read.count) : read.count);
    return 0;
  }
  if (Error error = frondb_txn_own_messages(connection->txn(), tree, {}, nullptr, &whole)) return ha_error(error);
  double more = double(connection->counts().rows_of(*share_->rows)) * double(part) / double(std::max(part, whole));
  *rows = ha_rows(std::max(1.0, double(*rows) + more));
  return 0;
}
