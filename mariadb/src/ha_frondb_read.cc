/* SPDX-License-Identifier: GPL-2.0-only

   See ha_frondb.h. Here: scans and reads of tables and indexes. */

#include "ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "frondb_entry.h"
#include "frondb_error.h"
#include "frondb_txn.h"

using namespace fron;

namespace {

/** Entries a crossing: first few, for most reads want one row. */
constexpr size_t BATCH_FIRST = 1, BATCH_MAX = 128;
constexpr size_t BATCH_BYTES = 256 << 10;
/** No error of the server: the row is locked, and the statement asked to pass over such rows. */
constexpr int SKIPPED = -1;

}  // namespace

int ha_frondb::damaged() const { return ha_internal("a row or an index entry of FronDB cannot be decoded"); }

int ha_frondb::open_cursor(uint tree, const std::string &lo, const std::string *hi) {
  frondb_slice end = hi ? slice(*hi) : frondb_slice{};
  cursor_tree_ = tree;
  rows_ = {};
  at_ = 0;
  batch_ = BATCH_FIRST;
  return ha_error(frondb_txn_cursor(connection_->txn(), share_->indexes[tree].tree.get(), slice(lo),
                                    hi ? &end : nullptr, row_lock_, row_wait_, cursor_.out()));
}

/** The next entries; what is locked is read one by one. */
int ha_frondb::fetch(bool forward) {
  size_t count = row_lock_ == FRONDB_LOCK_NONE ? batch_ : 1;
  batch_ = std::min(batch_ * 8, BATCH_MAX);
  auto read = forward ? frondb_cursor_next_batch : frondb_cursor_prev_batch;
  at_ = 0;
  return ha_error(read(cursor_.get(), count, BATCH_BYTES, &rows_));
}

/** Goes on in the other direction, from the entry shown last. */
int ha_frondb::turn(bool forward) {
  forward_ = forward;
  if (at_ == 0 || at_ > rows_.count) return 0;
  std::string here(view(rows_.entries[at_ - 1].key));
  if (!forward) return open_cursor(cursor_tree_, "", &here);
  here.push_back(0);
  return open_cursor(cursor_tree_, here, nullptr);
}

int ha_frondb::step(bool forward, uchar *record) {
  if (!cursor_) return HA_ERR_END_OF_FILE;
  if (forward != forward_)
    if (int error = turn(forward)) return error;
  for (;;) {
    if (at_ == rows_.count)
      if (int error = fetch(forward)) return error;
    if (rows_.count == 0) return HA_ERR_END_OF_FILE;
    at_++;
    int error = show(record);
    if (error != SKIPPED) return error;
  }
}

int ha_frondb::show(uchar *record) {
  const frondb_entry &row = rows_.entries[at_ - 1];
  if (cursor_tree_ == 0) {
    current_.assign(view(row.key));
    return unpack_row(table, view(row.value), record) ? 0 : damaged();
  }
  frondb_slice primary;
  std::string_view covered;
  if (!split_entry(row.key, row.value, &primary, &covered)) return damaged();
  const Index &index = share_->indexes[cursor_tree_];
  if ((key_read_ || index.is_clustering) && row_lock_ == FRONDB_LOCK_NONE) {
    current_.assign(view(primary));
    bool is_good = index.is_clustering ? unpack_row(table, covered, record)
                                       : unpack_fields(table, index.covered, covered, record);
    return is_good ? 0 : damaged();
  }
  return read_primary(primary, record);
}

int ha_frondb::read_primary(frondb_slice key, uchar *record) {
  bool found;
  current_.assign(view(key));
  if (Error error = frondb_txn_get(connection_->txn(), share_->indexes[0].tree.get(), slice(current_), row_lock_,
                                   row_wait_, buffer_.get(), &found))
    return error.kind() == FRONDB_BUSY && row_wait_ == FRONDB_SKIP_LOCKED ? SKIPPED : ha_error(error);
  if (!found) return HA_ERR_KEY_NOT_FOUND;
  return unpack_row(table, view(frondb_buffer_value(buffer_.get())), record) ? 0 : damaged();
}

int ha_frondb::rnd_init(bool scan) {
  forward_ = true;
  return scan ? open_cursor(0, "", nullptr) : 0;
}

int ha_frondb::rnd_end() {
  cursor_.reset();
  rows_ = {};
  return 0;
}

int ha_frondb::rnd_next(uchar *record) { return step(true, record); }

void ha_frondb::position(const uchar *record) {
  if (share_->has_hidden_key)
    memcpy(ref, current_.data(), std::min(current_.size(), size_t(ref_length)));
  else
    key_copy(ref, record, &table->key_info[table->s->primary_key], ref_length, true);
}

int ha_frondb::rnd_pos(uchar *record, uchar *position) {
  std::string key;
  if (share_->has_hidden_key)
    key.assign(reinterpret_cast<char *>(position), ref_length);
  else
    encode_image(table->s->primary_key, position, ref_length, &key);
  int error = read_primary(slice(key), record);
  return error == SKIPPED ? HA_ERR_RECORD_DELETED : error;
}

int ha_frondb::cmp_ref(const uchar *a, const uchar *b) {
  if (share_->has_hidden_key) return memcmp(a, b, ref_length);
  std::string left, right;
  encode_image(table->s->primary_key, a, ref_length, &left);
  encode_image(table->s->primary_key, b, ref_length, &right);
  return left.compare(right);
}

int ha_frondb::index_init(uint index, bool) {
  active_index = index;
  return 0;
}

int ha_frondb::index_end() {
  active_index = MAX_KEY;
  return rnd_end();
}

int ha_frondb::index_read(uchar *record, const uchar *key, uint length, ha_rkey_function flag) {
  std::string lo, hi;
  encode_image(active_index, key, length, &lo);
  hi = lo;
  bool has_end = prefix_end(&hi);
  const std::string *end = has_end ? &hi : nullptr;
  uint tree = tree_of(active_index);
  bool forward = true;
  int error;
  switch (flag) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX: error = open_cursor(tree, lo, end); break;
    case HA_READ_KEY_OR_NEXT: error = open_cursor(tree, lo, nullptr); break;
    case HA_READ_AFTER_KEY:
      if (!has_end) return HA_ERR_KEY_NOT_FOUND;
      error = open_cursor(tree, hi, nullptr);
      break;
    case HA_READ_BEFORE_KEY: forward = false; error = open_cursor(tree, "", &lo); break;
    case HA_READ_PREFIX_LAST: forward = false; error = open_cursor(tree, lo, end); break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV: forward = false; error = open_cursor(tree, "", end); break;
    default: return HA_ERR_WRONG_COMMAND;
  }
  if (error) return error;
  forward_ = forward;
  error = step(forward, record);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

int ha_frondb::index_next(uchar *record) { return step(true, record); }
int ha_frondb::index_prev(uchar *record) { return step(false, record); }

int ha_frondb::index_first(uchar *record) {
  forward_ = true;
  if (int error = open_cursor(tree_of(active_index), "", nullptr)) return error;
  return step(true, record);
}

int ha_frondb::index_last(uchar *record) {
  forward_ = false;
  if (int error = open_cursor(tree_of(active_index), "", nullptr)) return error;
  return step(false, record);
}
