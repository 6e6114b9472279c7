/* SPDX-License-Identifier: GPL-2.0-only

   See handler/read_position.h. */

#include "handler/read_position.h"

#include <algorithm>

#include "engine/errors.h"
#include "txn/connection.h"

namespace fron {
namespace {

/** Entries per fetch: few at first, because most reads want few; more if the range has an end. */
constexpr size_t BATCH_OPEN = 1, BATCH_BOUND = 8, BATCH_MAX = 128;
constexpr size_t BATCH_BYTES = 256 << 10;
/** Bytes of entries that are read ahead: enough for a short range, and not much if the range is not read after all. */
constexpr size_t AHEAD_BYTES = 32 << 10;

}  // namespace

int ReadPosition::open(uint tree, std::string_view lo, const std::string *hi, size_t expected) {
  frondb_slice end = hi ? slice(*hi) : frondb_slice{};
  has_last_key_ = false;
  past_end_ = 0;
  from_.assign(lo);
  has_end_ = hi != nullptr;
  is_ahead_ = false;
  tree_ = tree;
  actions_ = use_->connection->actions;
  drop_batch();
  batch_ = hi ? std::clamp(expected, BATCH_BOUND, BATCH_MAX) : BATCH_OPEN;
  // Show locked rows only in the tree of rows: an entry of another index may lead to another version of the row.
  shows_locked_ = use_->is_semi_consistent && tree == 0;
  frondb_wait wait = shows_locked_ ? FRONDB_SHOW_LOCKED : use_->row_wait;
  return ha_error(frondb_txn_cursor(use_->connection->txn(), share_->indexes[tree].tree.get(), slice(lo),
                                    hi ? &end : nullptr, use_->row_lock, wait, cursor_.out()));
}

int ReadPosition::seek(uint tree, std::string_view lo, const std::string *hi, size_t expected) {
  bool is_kept = cursor_ && tree_ == tree && !has_end_ && !hi && lo >= from_ && actions_ == use_->connection->actions;
  if (!is_kept || use_->reads_singly()) return open(tree, lo, hi, expected);
  bool is_ahead = forward_ && !has_last_key_ && is_shown() && shown_key() < lo;
  while (is_ahead && at_ < rows_.count) {
    if (view(rows_.entries[at_].key) >= lo) return 0;
    at_++;
  }
  drop_batch();
  has_last_key_ = false;
  past_end_ = 0;
  batch_ = BATCH_OPEN;
  bool found;
  return ha_error(frondb_cursor_seek(cursor_.get(), slice(lo), &found));
}

bool ReadPosition::read_ahead(uint tree, std::string_view lo, const std::string &hi, size_t *rows) {
  has_read_ahead_ = true;
  // Ignore errors: the statement gets them again if it reads this range.
  if (open(tree, lo, &hi, BATCH_MAX) || cursor_.read(batch_, AHEAD_BYTES, &rows_)) {
    close();
    return false;
  }
  ahead_to_ = hi;
  is_ahead_ = true;
  *rows = rows_.count;
  return rows_.is_end;
}

bool ReadPosition::take_ahead(uint tree, std::string_view lo, const std::string *hi, bool forward) {
  if (!std::exchange(is_ahead_, false)) return false;
  bool is_same = tree_ == tree && from_ == lo && hi && *hi == ahead_to_;
  // A backward search begins with the last entries of the range, which only a complete batch contains.
  if (!is_same || !(forward || rows_.is_end)) return false;
  is_reversed_ = !forward;
  forward_ = forward;
  return true;
}

void ReadPosition::stand_at(uint tree, const std::string &key) {
  close();
  forward_ = true;
  tree_ = tree;
  past_end_ = 0;
  go_on_from(key);
}

void ReadPosition::go_on_from(const std::string &key) {
  last_key_ = key;
  has_last_key_ = true;
}

void ReadPosition::close() {
  cursor_.reset();
  is_ahead_ = false;
  drop_batch();
}

void ReadPosition::reset() {
  close();
  has_read_ahead_ = false;
  has_last_key_ = false;
  past_end_ = 0;
}

void ReadPosition::park() {
  if (!has_last_key_ && cursor_ && !past_end_) {
    // A scan that has returned no entry, such as the scan of a later partition, continues before all keys.
    last_key_.assign(is_shown() ? shown_key() : std::string_view());
    has_last_key_ = true;
  }
  close();
}

int ReadPosition::fetch(bool forward) {
  // The range has no more entries. A cursor that was read forward for a backward step would return them again.
  if (rows_.is_end) {
    rows_.count = at_ = 0;
    return 0;
  }
  size_t count = use_->reads_singly() ? 1 : batch_;
  batch_ = std::min(batch_ * 8, BATCH_MAX);
  at_ = 0;
  Error error = forward ? cursor_.read(count, BATCH_BYTES, &rows_) : cursor_.read_back(count, BATCH_BYTES, &rows_);
  is_unlocked_ = shows_locked_ && !error && rows_.count > 0 && !frondb_cursor_is_locked(cursor_.get());
  return ha_error(error);
}

/** Opens a cursor from the entry shown last to the end of the tree, or to its beginning if the direction is backward.
    */
int ReadPosition::turn(bool forward) {
  forward_ = forward;
  prefix_end_.clear();
  if (!has_last_key_) {
    if (!is_shown()) return turn_at_end();
    last_key_.assign(shown_key());
  }
  std::string from = last_key_;
  if (!forward) return open(tree_, "", &from);
  from.push_back(0);
  return open(tree_, from, nullptr);
}

/** Turns after a step that has passed an end of the range. The cursor is at that end, unless its batch was returned
    in reverse. */
int ReadPosition::turn_at_end() {
  bool was_reversed = is_reversed_;
  drop_batch();
  if (!was_reversed) return 0;
  std::string from = from_;
  return open(tree_, from, &ahead_to_);
}

/** Begins a step after HANDLER has read past an end of the index: a step back begins at that end, and a step further
    finds nothing. */
int ReadPosition::return_from_end(bool forward) {
  if (forward == (past_end_ > 0)) return HA_ERR_END_OF_FILE;
  forward_ = forward;
  return open(tree_, "", nullptr);
}

/** Continues after the entry that was shown last, with the present data, if actions of foreign keys have written to
    the table since the cursor was opened. A cursor does not show what its transaction has written since its last
    seek. */
int ReadPosition::refresh() {
  if (!cursor_ || actions_ == use_->connection->actions) return 0;
  bool is_due = use_->connection->has_acted_since(share_, actions_);
  actions_ = use_->connection->actions;
  if (!is_due || !is_shown()) return 0;
  std::string shown(shown_key());
  if (!forward_) {
    std::string from = from_;
    return open(tree_, from, &shown);
  }
  drop_batch();
  shown.push_back(0);
  bool found;
  return ha_error(frondb_cursor_seek(cursor_.get(), slice(shown), &found));
}

int ReadPosition::begin_step(bool forward) {
  if (int error = refresh()) return error;
  if (past_end_)
    if (int error = return_from_end(forward)) return error;
  if (has_last_key_ || (cursor_ && forward != forward_))
    if (int error = turn(forward)) return error;
  return cursor_ ? 0 : HA_ERR_END_OF_FILE;
}

void ReadPosition::note_end(bool forward) {
  // The end of a prefix is not an end of the index.
  if (use_->is_sql_handler && prefix_end_.empty()) past_end_ = forward ? 1 : -1;
}

}  // namespace fron
