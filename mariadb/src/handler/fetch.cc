/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: how entries come from the engine, in batches where nothing is locked, and
   rows out of entries. A cursor of an index passes over what a pushed condition or a filter of
   rows rejects, before it reads the row. */

#include "handler/ha_frondb.h"

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** Entries a crossing: few at first, for most reads want few; more where the range has an end. */
constexpr size_t BATCH_OPEN = 1, BATCH_BOUND = 8, BATCH_MAX = 128;
constexpr size_t BATCH_BYTES = 256 << 10;
/** No error of the server: the row is locked and such are passed over, or a condition rejects it. */
constexpr int SKIPPED = -1;

}  // namespace

int ha_frondb::damaged() const {
  const char *index = "(rows)";
  for (uint k = 0; k < table->s->keys; k++)
    if (tree_of(k) == cursor_tree_) index = table->key_info[k].name.str;
  return ha_damaged(table->s->normalized_path.str, index);
}

// --- Entries ---

void ha_frondb::want_fields(uint tree) {
  // As InnoDB does. Whoever locks rows may write them.
  bool is_all = row_lock_ != FRONDB_LOCK_NONE || is_sql_handler_;
  // What they are computed from nobody asks for.
  is_all = is_all || computes_fields(tree);
  const MY_BITMAP *read = table->read_set, *written = table->write_set;
  uint words = no_words_in_map(read);
  bool is_same = wanted_tree_ == tree && wanted_all_ == is_all && wanted_filter_ == pushed_rowid_filter &&
                 wanted_bits_.size() == words;
  for (uint i = 0; is_same && i < words; i++) is_same = wanted_bits_[i] == (read->bitmap[i] | written->bitmap[i]);
  if (is_same) return;
  wanted_tree_ = tree;
  wanted_all_ = is_all;
  wanted_filter_ = pushed_rowid_filter;
  wanted_bits_.resize(words);
  for (uint i = 0; i < words; i++) wanted_bits_[i] = read->bitmap[i] | written->bitmap[i];
  plan_fields(is_all);
}

/** What the statement wants of rows, and of entries of the tree. */
void ha_frondb::plan_fields(bool is_all) {
  wanted_ = {};
  // It sums up all that is stored, and does not ask for generated columns that are.
  is_all = is_all || thd_sql_command(ha_thd()) == SQLCOM_CHECKSUM;
  const KEY *primary = share_->has_hidden_key ? nullptr : &table->key_info[table->s->primary_key];
  if (!is_all) {
    for (uint i = 0; i < table->s->fields; i++) {
      wanted_.fields.push_back(bitmap_is_set(table->read_set, i) || bitmap_is_set(table->write_set, i));
      Slot bytes{i, 0, 0};
      describe_bytes(table->field[i], &bytes);
      wanted_.others.push_back(bytes);
    }
    // A filter knows rows by their positions.
    if (primary && pushed_rowid_filter) want_key(primary);
    if (table->part_info) {
      // Partitions are merged by these, also by reads backwards that did not say so.
      if (primary) want_key(primary);
      if (wanted_tree_ != 0) want_key(key_of(wanted_tree_));
    }
  }
  key_targets_.clear();
  primary_targets_.clear();
  wants_covered_ = false;
  if (wanted_tree_ == 0) return;
  const Index &index = share_->indexes[wanted_tree_];
  key_targets_ = index.codec.targets(table, key_of(wanted_tree_), wanted_);
  if (primary) primary_targets_ = share_->indexes[0].codec.targets(table, primary, wanted_);
  for (uint field : index.covered) wants_covered_ = wants_covered_ || wanted_.has(field);
}

/** The key of a tree other than the primary one. */
const KEY *ha_frondb::key_of(uint tree) const {
  uint number = table->s->keys;
  while (number-- > 0 && tree_of(number) != tree) {}
  return &table->key_info[number];
}

void ha_frondb::want_key(const KEY *key) {
  for (uint i = 0; i < key->user_defined_key_parts; i++) wanted_.fields[key->key_part[i].fieldnr - 1] = true;
}

int ha_frondb::open_cursor(uint tree, std::string_view lo, const std::string *hi) {
  frondb_slice end = hi ? slice(*hi) : frondb_slice{};
  want_fields(tree);
  has_last_key_ = false;
  past_end_ = 0;
  cursor_from_.assign(lo);
  cursor_has_end_ = hi != nullptr;
  cursor_tree_ = tree;
  rows_ = {};
  at_ = 0;
  batch_ = hi ? BATCH_BOUND : BATCH_OPEN;
  return ha_error(frondb_txn_cursor(connection_->txn(), share_->indexes[tree].tree.get(), slice(lo),
                                    hi ? &end : nullptr, row_lock_, row_wait_, cursor_.out()));
}

/** Puts the cursor before the first entry from `lo` on. The one that is there is kept if it shows all that a
    new one would: the way from where it is may be short. */
int ha_frondb::seek(uint tree, std::string_view lo, const std::string *hi) {
  bool is_kept = cursor_ && cursor_tree_ == tree && !cursor_has_end_ && !hi && lo >= cursor_from_;
  if (!is_kept || row_lock_ != FRONDB_LOCK_NONE || is_sql_handler_) return open_cursor(tree, lo, hi);
  want_fields(tree);
  bool is_ahead = forward_ && !has_last_key_ && at_ > 0 && at_ <= rows_.count;
  is_ahead = is_ahead && view(rows_.entries[at_ - 1].key) < lo;
  while (is_ahead && at_ < rows_.count) {
    if (view(rows_.entries[at_].key) >= lo) return 0;
    at_++;
  }
  rows_ = {};
  at_ = 0;
  has_last_key_ = false;
  past_end_ = 0;
  batch_ = BATCH_OPEN;
  bool found;
  return ha_error(frondb_cursor_seek(cursor_.get(), slice(lo), &found));
}

/** The next entries; what is locked is read one by one. */
int ha_frondb::fetch(bool forward) {
  want_fields(cursor_tree_);
  size_t count = row_lock_ == FRONDB_LOCK_NONE && !is_sql_handler_ ? batch_ : 1;
  batch_ = std::min(batch_ * 8, BATCH_MAX);
  auto read = forward ? frondb_cursor_next_batch : frondb_cursor_prev_batch;
  at_ = 0;
  return ha_error(read(cursor_.get(), count, BATCH_BYTES, &rows_));
}

/** Goes on in a direction from the entry shown last, without an end. */
int ha_frondb::turn(bool forward) {
  forward_ = forward;
  exact_end_.clear();
  if (!has_last_key_) {
    if (at_ == 0 || at_ > rows_.count) return 0;
    last_key_.assign(view(rows_.entries[at_ - 1].key));
  }
  std::string from = last_key_;
  if (!forward) return open_cursor(cursor_tree_, "", &from);
  from.push_back(0);
  return open_cursor(cursor_tree_, from, nullptr);
}

void ha_frondb::park() {
  if (!has_last_key_ && cursor_ && !past_end_) {
    // A scan that has shown nothing, of a later partition, begins before all keys.
    bool has_shown = at_ > 0 && at_ <= rows_.count;
    last_key_.assign(has_shown ? view(rows_.entries[at_ - 1].key) : std::string_view());
    has_last_key_ = true;
  }
  cursor_.reset();
  rows_ = {};
  at_ = 0;
}

/** HANDLER has read to an end of the index, and goes on: back from there, or not at all. */
int ha_frondb::return_from_end(bool forward) {
  if (forward == (past_end_ > 0)) return HA_ERR_END_OF_FILE;
  forward_ = forward;
  return open_cursor(cursor_tree_, "", nullptr);
}

int ha_frondb::step(bool forward, uchar *record) {
  if (past_end_)
    if (int error = return_from_end(forward)) return error;
  if (has_last_key_ || (cursor_ && forward != forward_)) {
    if (int error = turn(forward)) return error;
  }
  if (!cursor_) return HA_ERR_END_OF_FILE;
  for (;;) {
    if (at_ == rows_.count)
      if (int error = fetch(forward)) return error;
    if (rows_.count == 0) {
      // The end of a prefix is not one of the index.
      if (is_sql_handler_ && exact_end_.empty()) past_end_ = forward ? 1 : -1;
      return HA_ERR_END_OF_FILE;
    }
    const frondb_entry &entry = rows_.entries[at_++];
    int error = show(entry.key, entry.value, record);
    if (error != SKIPPED) return error;
    // At read committed and below nobody has to wait for a row that is not wanted.
    if (row_lock_ != FRONDB_LOCK_NONE)
      if (Error failed = frondb_cursor_unlock(cursor_.get())) return ha_error(failed);
  }
}

/** A step that does not end with the prefix that was searched for. */
int ha_frondb::step_in_index(bool forward, uchar *record) {
  std::string end = std::exchange(exact_end_, {});
  int error = step(forward, record);
  if (error != HA_ERR_END_OF_FILE || end.empty() || !forward || !cursor_) return error;
  if ((error = open_cursor(cursor_tree_, end, nullptr))) return error;
  return step(forward, record);
}

/** An entry of a unique key that an overlay has (handler/overlay.cc): the primary key is behind it. */
int ha_frondb::read_unique(const std::string &key, uchar *record) {
  std::string from = key, end = key;
  bool has_end = prefix_end(&end);
  if (int error = open_cursor(cursor_tree_, from, has_end ? &end : nullptr)) return error;
  if (has_end) exact_end_ = end;
  int error = step(true, record);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

/** The one entry of a unique key: no cursor is needed, and a filter may know that there is none. */
int ha_frondb::read_exact(uint tree, const std::string &key, uchar *record) {
  cursor_.reset();
  rows_ = {};
  at_ = 0;
  forward_ = true;
  want_fields(tree);
  cursor_tree_ = tree;
  last_key_ = key;
  has_last_key_ = true;
  past_end_ = 0;
  int error;
  if (tree == 0) {
    current_ = key;
    error = read_row(record);
  } else {
    bool found;
    error = get(tree, key, &found);
    if (!error && !found && connection_->has_overlay && row_lock_ == FRONDB_LOCK_NONE) return read_unique(key, record);
    if (!error) error = found ? show_entry(slice(key), frondb_buffer_value(buffer_.get()), record) : HA_ERR_KEY_NOT_FOUND;
  }
  return error == SKIPPED ? HA_ERR_KEY_NOT_FOUND : error;
}

/** Reads one key into the buffer, locked as the statement asks. */
int ha_frondb::get(uint tree, std::string_view key, bool *found) {
  Error error = frondb_txn_get(connection_->txn(), share_->indexes[tree].tree.get(), slice(key), row_lock_,
                               row_wait_, buffer_.get(), found);
  return error && error.kind() == FRONDB_BUSY && row_wait_ == FRONDB_SKIP_LOCKED ? SKIPPED : ha_error(error);
}

// --- Rows ---

int ha_frondb::show(frondb_slice key, frondb_slice value, uchar *record) {
  if (cursor_tree_ != 0) return show_entry(key, value, record);
  if (needs_key()) current_.assign(view(key));
  return decode_row(view(value), record);
}

int ha_frondb::show_entry(frondb_slice key, frondb_slice value, uchar *record) {
  frondb_slice primary;
  std::string_view covered;
  if (!split_entry(key, value, &primary, &covered)) return damaged();
  const Index &index = share_->indexes[cursor_tree_];
  bool is_alone = key_read_ && share_->is_primary_covered && index.is_enough;
  // Who wants the row for himself locks it where everybody looks: in the primary tree.
  bool is_enough = row_lock_ == FRONDB_LOCK_NONE && (index.is_clustering || is_alone);
  bool checks = record == table->record[0] && (has_condition() || has_filter());
  if (needs_key() || !is_enough) current_.assign(view(primary));
  // Who reads by an index alone computes no generated fields, so they come from the entry also where
  // the row is read.
  if (key_read_ || checks || is_enough || index.fills_generated)
    if (!decode_entry(key, primary, covered, record)) return damaged();
  if (checks)
    if (int error = check_entry()) return error;
  int error = is_enough ? 0 : read_row(record);
  if (!error && computes_fields(cursor_tree_)) compute_fields(record);
  // An entry whose row is gone is no row, and no end of what is read.
  return error == HA_ERR_KEY_NOT_FOUND ? SKIPPED : error;
}

/** The fields that an entry of an index has, as far as they are wanted: those of its key, of the primary one,
    and those that it holds because they do not come back from keys. False if it is damaged. */
bool ha_frondb::decode_entry(frondb_slice key, frondb_slice primary, std::string_view covered, uchar *record) {
  const Index &index = share_->indexes[cursor_tree_];
  if (index.is_clustering) {
    if (!unpack_row(table, share_->record.form, covered, record, wanted_)) return false;
  } else if (wants_covered_ && !unpack_fields(table, index.covered, covered, record)) {
    return false;
  }
  my_ptrdiff_t offset = record - table->record[0];
  return index.codec.decode(key_targets_, view(key), offset) &&
         share_->indexes[0].codec.decode(primary_targets_, view(primary), offset);
}

/** Whether the fields of an entry, in the server's record, are wanted. */
int ha_frondb::check_entry() {
  check_result_t result = CHECK_POS;
  // The server looks first whether the range ends here, by all parts of the key; what the record has for one that
  // is in no entry is of some other row.
  key_range *end = end_range;
  if (!share_->indexes[cursor_tree_].has_all_parts) end_range = nullptr;
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

/** Whether entries of a tree are shown with fields that no entry has. In a table without partitions the server
    computes them, but for who reads by an index alone. */
bool ha_frondb::computes_fields(uint tree) const {
  return !share_->indexes[tree].computed.empty() && (table->part_info || key_read_);
}

/** The fields of the index that are in no entry and no row, in the record of a row that is whole but for such. The
    server computes them in its own record only, and not for who reads by an index alone: where it merges partitions
    it would compare those of some other row. */
void ha_frondb::compute_fields(uchar *record) {
  const std::vector<Index::Computed> &computed = share_->indexes[cursor_tree_].computed;
  computed_.resize(computed.size());
  // An expression may be of any fields.
  my_ptrdiff_t offset = record - table->record[0];
  for (Field **field = table->field; *field; field++) (*field)->move_field_offset(offset);
  for (size_t i = 0; i < computed.size(); i++) {
    Field *field = table->field[computed[i].field];
    // What it warns of it has warned of when the row was written.
    table->update_virtual_field(field, true);
    if (!table->part_info || !(field->flags & BLOB_FLAG) || field->is_real_null()) continue;
    // The field keeps the bytes for its own next one, and other partitions use it too.
    auto blob = static_cast<Field_blob *>(field);
    size_t length = std::min<size_t>(blob->get_length(), computed[i].length);
    computed_[i].assign(reinterpret_cast<const char *>(blob->get_ptr()), length);
    blob->set_ptr(uint32(length), reinterpret_cast<uchar *>(computed_[i].data()));
  }
  for (Field **field = table->field; *field; field++) (*field)->move_field_offset(-offset);
}

/** The row whose primary key is `current_`. */
int ha_frondb::read_row(uchar *record) {
  bool found;
  if (int error = get(0, current_, &found)) return error;
  return found ? decode_row(view(frondb_buffer_value(buffer_.get())), record) : HA_ERR_KEY_NOT_FOUND;
}

int ha_frondb::decode_row(std::string_view row, uchar *record) {
  return unpack_row(table, share_->record.form, row, record, wanted_) ? 0 : damaged();
}
