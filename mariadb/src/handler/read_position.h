/* SPDX-License-Identifier: GPL-2.0-only

   The position of a handler's reads in a tree: a cursor with the batch of entries it has fetched, or, without a cursor,
   a key from which the next step continues. */

#ifndef FRONDB_HANDLER_READ_POSITION_H
#define FRONDB_HANDLER_READ_POSITION_H

#include <my_global.h>

#include <string>
#include <string_view>

#include "engine/api.h"
#include "table/statement_use.h"
#include "table/share.h"

namespace fron {

/** Functions that return int return 0 or an HA_ERR_ number. */
class ReadPosition {
 public:
  void attach(const Share *share, const StatementUse *use) {
    share_ = share;
    use_ = use;
  }

  /** Returns the number of the tree being read. */
  uint tree() const { return tree_; }
  bool has_cursor() const { return bool(cursor_); }

  /** Opens a cursor before the first entry from `lo` on; entries from `hi` on are not read. The first fetch reads
      one entry if there is no `hi`, otherwise `expected` entries, but at least BATCH_BOUND and at most BATCH_MAX. */
  int open(uint tree, std::string_view lo, const std::string *hi, size_t expected = 0);
  /** Puts the cursor before the first entry from `lo` on. Keeps the open cursor if it would return the same entries as
      a new one, because the new place may be near its position. */
  int seek(uint tree, std::string_view lo, const std::string *hi, size_t expected);
  /** Fetches the first entries of a range that the statement will probably read. Returns whether they are all
      entries of the range, and sets `rows` to their number. If they are not all, the next search may still use them;
      after an error there are none. */
  bool read_ahead(uint tree, std::string_view lo, const std::string &hi, size_t *rows);
  /** Makes the entries that were read ahead the next ones and returns true if they begin where this search begins.
      Otherwise discards them. */
  bool take_ahead(uint tree, std::string_view lo, const std::string *hi, bool forward);
  /** Returns whether the position is unused and the statement has not yet read ahead. */
  bool may_read_ahead() const { return !has_read_ahead_ && !cursor_ && !has_last_key_ && !past_end_; }
  /** Sets the position to a key that was read without a cursor. */
  void stand_at(uint tree, const std::string &key);
  /** Makes the next step continue from a key. */
  void go_on_from(const std::string &key);
  /** Sets the direction of the next step. */
  void set_direction(bool forward) { forward_ = forward; }
  /** Frees the cursor. */
  void close();
  /** Frees the cursor and forgets the position, but not that HANDLER has read past an end. */
  void rewind() {
    close();
    has_last_key_ = false;
  }
  /** Frees the cursor, and forgets the position and that the statement has read ahead. */
  void reset();
  /** Frees the cursor and keeps the position, so that the next step sees what other statements have written in
      between. */
  void park();

  /** Prepares a step in a direction. HA_ERR_END_OF_FILE if there is no entry to step to. */
  int begin_step(bool forward);
  /** Returns whether the batch is used up. */
  bool needs_fetch() const { return at_ == rows_.count; }
  int fetch(bool forward);
  /** Returns the next entry of the batch; null at the end of the range. */
  const frondb_entry *next() { return rows_.count == 0 ? nullptr : &rows_.entries[place(at_++)]; }
  /** Records that the step has reached the end of the range. */
  void note_end(bool forward);
  /** Returns whether another transaction has locked the entry that was returned last, so that the entry is as it was
      last committed. Valid until forget_unlocked(). */
  bool is_unlocked() const { return is_unlocked_; }
  void forget_unlocked() { is_unlocked_ = false; }
  /** Releases the lock of the entry that was returned last. */
  Error unlock() { return frondb_cursor_unlock(cursor_.get()); }

  /** Records that the search was for all entries with a prefix: its cursor ends at `end`, and a step that is not bound
      to the prefix continues after it. */
  void end_prefix_at(const std::string &end) { prefix_end_ = end; }
  void forget_prefix() { prefix_end_.clear(); }
  bool is_in_prefix() const { return !prefix_end_.empty(); }
  /** Returns the end of the prefix, and forgets it. */
  std::string take_prefix_end() { return std::exchange(prefix_end_, {}); }

 private:
  int refresh();
  int turn(bool forward);
  int turn_at_end();
  int return_from_end(bool forward);
  bool is_shown() const { return at_ > 0 && at_ <= rows_.count; }
  std::string_view shown_key() const { return view(rows_.entries[place(at_ - 1)].key); }
  /** Returns the position in the batch of the entry that a step returns as number `at`. */
  size_t place(size_t at) const { return is_reversed_ ? rows_.count - 1 - at : at; }
  void drop_batch() {
    rows_ = {};
    at_ = 0;
    is_reversed_ = is_unlocked_ = false;
  }

  const Share *share_ = nullptr;
  const StatementUse *use_ = nullptr;

  Cursor cursor_;
  uint tree_ = 0;
  /** The beginning of the cursor's range, and whether the range ends before the tree does. */
  std::string from_;
  bool has_end_ = false;
  bool forward_ = true;
  /** Whether the cursor shows locked rows; see is_unlocked(). */
  bool shows_locked_ = false, is_unlocked_ = false;
  /** Whether the entries of the batch were read ahead, to this end of their range, and no search has used them yet. */
  bool is_ahead_ = false;
  std::string ahead_to_;
  /** Whether the statement has read ahead. */
  bool has_read_ahead_ = false;

  /** Fetched entries, the index of the next one, and the number of entries that the next fetch requests. */
  frondb_rows rows_ = {};
  size_t at_ = 0;
  size_t batch_ = 0;
  /** Whether the batch was read forward and is returned backward. */
  bool is_reversed_ = false;

  /** The value of Connection::actions when the cursor was opened or moved. */
  uint64_t actions_ = 0;

  std::string prefix_end_;
  /** Without a cursor: the key from which the next step continues, if any. */
  std::string last_key_;
  bool has_last_key_ = false;
  /** Whether HANDLER has read past the last entry (1) or the first (-1); 0 if neither. */
  int past_end_ = 0;
};

}  // namespace fron

#endif
