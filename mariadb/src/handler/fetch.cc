/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: fetching entries from the engine and decoding rows. A read by an index skips the
   entries that a pushed condition or a row filter rejects, before it reads their rows. */

#include "handler/ha_frondb.h"

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "handler/profile.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** Not an error of the server: the row is skipped, since it is locked or deleted, or a condition rejects it. */
constexpr int SKIPPED = -1;

}  // namespace

// --- Entries ---

int ha_frondb::damaged() const { return encoder_.damaged(position_.tree()); }

void ha_frondb::want_fields(uint tree) {
  // A statement that locks rows may write them, as in InnoDB. Computed fields may depend on any field.
  bool is_all = use_.reads_singly() || computes_fields(tree);
  wanted_.find(tree, is_all, pushed_rowid_filter != nullptr);
}

int ha_frondb::open_cursor(uint tree, std::string_view lo, const std::string *hi, bool forward) {
  want_fields(tree);
  if (position_.take_ahead(tree, lo, hi, forward)) return 0;
  Profiled profiled(handler_stats);
  return position_.open(tree, lo, hi, first_fetch(tree, lo, hi));
}

int ha_frondb::seek(uint tree, std::string_view lo, const std::string *hi) {
  want_fields(tree);
  if (position_.take_ahead(tree, lo, hi, true)) return 0;
  Profiled profiled(handler_stats);
  return position_.seek(tree, lo, hi, first_fetch(tree, lo, hi));
}

size_t ha_frondb::first_fetch(uint tree, std::string_view lo, const std::string *hi) const {
  if (!counted_.is(tree, lo, hi)) return 0;
  // With LIMIT the statement may end early. If it sorts first, the next fetch reads the rest.
  ha_rows limit = table->in_use->lex->unit.lim.get_select_limit();
  return size_t(std::min<ha_rows>(counted_.rows, limit));
}

/** Reads the row again that was shown without its lock, and waits for the lock, because the server wants the row.
    Returns HA_ERR_KEY_NOT_FOUND if the row was deleted. */
int ha_frondb::read_again(uchar *record) {
  position_.forget_unlocked();
  return read_row(record);
}

int ha_frondb::step(bool forward, uchar *record) {
  if (position_.is_unlocked()) {
    int error = read_again(record);
    if (error != HA_ERR_KEY_NOT_FOUND) return error;
  }
  if (int error = position_.begin_step(forward)) return error;
  for (;;) {
    if (position_.needs_fetch()) {
      want_fields(position_.tree());
      Profiled profiled(handler_stats);
      if (int error = position_.fetch(forward)) return error;
    }
    const frondb_entry *entry = position_.next();
    if (!entry) {
      position_.note_end(forward);
      return HA_ERR_END_OF_FILE;
    }
    int error = show(entry->key, entry->value, record);
    if (error != SKIPPED) return error;
    // At READ COMMITTED and below, unlock a rejected row, so that no other transaction waits for it.
    if (use_.locks_rows())
      if (Error failed = position_.unlock()) return ha_error(failed);
  }
}

/** Steps to the next entry, and past the end of the prefix that was searched for. */
int ha_frondb::step_in_index(bool forward, uchar *record) {
  if (!position_.is_in_prefix()) return step(forward, record);
  std::string end = position_.take_prefix_end();
  int error = step(forward, record);
  if (error != HA_ERR_END_OF_FILE || end.empty() || !forward || !position_.has_cursor()) return error;
  if ((error = open_cursor(position_.tree(), end, nullptr))) return error;
  return step(forward, record);
}

/** Reads the entry of a unique key in an overlay (handler/overlay.h), where the primary key follows the key. */
int ha_frondb::read_unique(const std::string &key, uchar *record) {
  std::string from = key, end = key;
  bool has_end = prefix_end(&end);
  if (int error = open_cursor(position_.tree(), from, has_end ? &end : nullptr)) return error;
  if (has_end) position_.end_prefix_at(end);
  int error = step(true, record);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

/** Reads the only entry of a complete unique key, without a cursor; a Bloom filter may prove that it does not exist. */
int ha_frondb::read_exact(uint tree, const std::string &key, uchar *record) {
  want_fields(tree);
  position_.stand_at(tree, key);
  int error;
  if (tree == 0) {
    current_ = key;
    error = read_row(record);
  } else {
    bool found;
    error = get(tree, key, &found);
    if (!error && !found && use_.connection->has_overlay && use_.row_lock == FRONDB_LOCK_NONE) return read_unique(key, record);
    if (!error) error = found ? show_entry(slice(key), buffer_.slice(), record) : HA_ERR_KEY_NOT_FOUND;
  }
  return error == SKIPPED ? HA_ERR_KEY_NOT_FOUND : error;
}

/** Reads a key into the buffer, and locks it if the statement locks rows. */
int ha_frondb::get(uint tree, std::string_view key, bool *found) {
  Profiled profiled(handler_stats);
  Error error = frondb_txn_get(use_.connection->txn(), share_->indexes[tree].tree.get(), slice(key), use_.row_lock,
                               use_.row_wait, buffer_.get(), found);
  return error && error.kind() == FRONDB_BUSY && use_.row_wait == FRONDB_SKIP_LOCKED ? SKIPPED : ha_error(error);
}

// --- Rows ---

int ha_frondb::show(frondb_slice key, frondb_slice value, uchar *record) {
  if (position_.tree() != 0) return show_entry(key, value, record);
  if (needs_key()) current_.assign(view(key));
  return decode_row(view(value), record);
}

int ha_frondb::show_entry(frondb_slice key, frondb_slice value, uchar *record) {
  frondb_slice primary;
  std::string_view covered;
  if (!split_entry(key, value, &primary, &covered)) return damaged();
  const Index &index = share_->indexes[position_.tree()];
  bool is_alone = use_.key_read && share_->is_primary_covered && index.is_enough;
  // A locking read must lock the row in the primary tree, where every transaction checks.
  bool is_enough = use_.row_lock == FRONDB_LOCK_NONE && (index.is_clustering || is_alone);
  bool checks = record == table->record[0] && (has_condition() || has_filter());
  if (needs_key() || !is_enough) current_.assign(view(primary));
  // In an index-only read the server computes no generated fields, so they are decoded from the entry even if the row
  // is read too.
  if (use_.key_read || checks || is_enough || index.fills_generated)
    if (!wanted_.decode_entry(index, key, primary, covered, record)) return damaged();
  if (checks)
    if (int error = check_entry()) return error;
  int error = is_enough ? 0 : read_row(record);
  if (!error && computes_fields(position_.tree())) computed_.fill(table, index, record);
  // An entry whose row was deleted is skipped and does not end the scan.
  return error == HA_ERR_KEY_NOT_FOUND ? SKIPPED : error;
}

/** Checks the pushed condition and the row filter on an entry's fields, which are in the server's record. */
int ha_frondb::check_entry() {
  check_result_t result = CHECK_POS;
  // The server first compares all parts of the key with the end of the range. If entries lack a part of the key, the
  // record still has that part of another row, so skip the comparison.
  key_range *end = end_range;
  if (!share_->indexes[position_.tree()].has_all_parts) end_range = nullptr;
  if (has_condition()) result = handler_index_cond_check(this);
  if (result == CHECK_POS && has_filter()) result = handler_rowid_filter_check(this);
  end_range = end;
  switch (result) {
    case CHECK_POS: return 0;
    case CHECK_NEG: return SKIPPED;
    case CHECK_OUT_OF_RANGE: return HA_ERR_END_OF_FILE;
    default: return HA_ERR_ABORTED_BY_USER;
  }
}

/** Returns whether the handler must compute fields that no entry of the tree has. In a table without partitions the
    server computes them, except in an index-only read. */
bool ha_frondb::computes_fields(uint tree) const {
  return !share_->indexes[tree].computed.empty() && (table->part_info || use_.key_read);
}

/** Reads the row whose primary key is `current_`. */
int ha_frondb::read_row(uchar *record) {
  bool found;
  if (int error = get(0, current_, &found)) return error;
  return found ? decode_row(buffer_.value(), record) : HA_ERR_KEY_NOT_FOUND;
}

int ha_frondb::decode_row(std::string_view row, uchar *record) {
  return wanted_.decode_row(row, record) ? 0 : damaged();
}
