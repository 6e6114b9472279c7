/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: keys and entries of a row, writing. */

#include "handler/ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** Whether the server does not compare the rows of an update before it asks for it. */
bool leaves_comparing(MYSQL_THD thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_REPLACE || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_LOAD;
}

}  // namespace

// --- Keys ---

uint ha_frondb::tree_of(uint index) const {
  if (share_->has_hidden_key) return index + 1;
  uint primary = table->s->primary_key;
  return index == primary ? 0 : index < primary ? index + 1 : index;
}

bool ha_frondb::encode_key(uint index, const uchar *record, std::string *to) {
  KEY *key = &table->key_info[index];
  copy_key(table, index, record, key->key_length, image_.data());
  encode_image(index, image_.data(), key->key_length, to);
  return KeyCodec::has_null(key, image_.data(), key->key_length);
}

void ha_frondb::encode_image(uint index, const uchar *image, uint length, std::string *to) const {
  share_->indexes[tree_of(index)].codec.encode(&table->key_info[index], image, length, to);
}

int ha_frondb::primary_key(const uchar *record, std::string *to) {
  to->clear();
  if (!share_->has_hidden_key) {
    encode_key(table->s->primary_key, record, to);
    return 0;
  }
  *to = current_;
  return 0;
}

bool ha_frondb::entry(uint index, const uchar *record, const std::string &primary, std::string *key,
                      std::string *value) {
  const Index &in = share_->indexes[tree_of(index)];
  key->clear();
  value->clear();
  bool is_unique = !encode_key(index, record, key) && in.is_unique;
  append_head(primary.size(), is_unique, value);
  (is_unique ? value : key)->append(primary);
  if (in.is_clustering) pack_row(table, share_->record.form.layout, record, value);
  else pack_fields(table, in.covered, record, value);
  return is_unique;
}

// --- Writing ---

int ha_frondb::insert_into(uint index, const std::string &key, const std::string &value, bool check) {
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  frondb_txn *txn = connection_->txn();
  if (value.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
  if (!check) return ha_error(frondb_txn_put(txn, tree, slice(key), slice(value)));
  int error = ha_error(frondb_txn_insert(txn, tree, slice(key), slice(value)));
  if (error == HA_ERR_FOUND_DUPP_KEY) connection_->duplicate_key = index;
  return error;
}

int ha_frondb::insert_entries(const uchar *record, const std::string &primary) {
  for (uint k = 0; k < table->s->keys; k++) {
    if (is_primary(k)) continue;
    bool is_unique = entry(k, record, primary, &key_, &value_);
    if (int error = insert_into(k, key_, value_, is_unique)) return error;
    if (is_unique)
      if (int error = uncover_entry(k, key_, primary)) return error;
  }
  return 0;
}

int ha_frondb::write_row(const uchar *record) {
  if (is_sequence()) return guarded([&] { return write_sequence(record); });
  if (table->next_number_field && record == table->record[0])
    // The server has one error for all that may fail in there; a full disk has its own.
    if (int error = update_auto_increment())
      return error == HA_ERR_AUTOINC_READ_FAILED && reserve_error_ ? reserve_error_ : error;
  int error = guarded([&] {
    return is_copy_ && (is_bulk_ || load_) ? load_row(record) : whole([&] { return insert_row(record); });
  });
  if (error) return error;
  count(1);
  return keep_auto_increment_of(record);
}

/** Does to a row all or nothing, whatever the statement makes of an error. Only a duplicate in an index
    behind the primary one can be what the statement goes on after: any other error undoes all of it. */
template <typename Work>
int ha_frondb::whole(Work work) {
  if (!share_->has_unique_secondary) return work();
  frondb_txn *txn = connection_->txn();
  uint64_t savepoint;
  if (Error error = frondb_txn_set_savepoint(txn, &savepoint)) return ha_error(error);
  int error = work();
  if (error && error != HA_ERR_LOCK_DEADLOCK)
    if (Error undone = frondb_txn_roll_back_to(txn, savepoint)) return ha_error(undone);
  // After a deadlock it is gone; the next statement's takes its place.
  Error ignored = frondb_txn_release_savepoint(txn, savepoint);
  return error;
}

int ha_frondb::encode_new_row(const uchar *record) {
  primary_.clear();
  value_.clear();
  pack_row(table, share_->record.form.layout, record, &value_);
  if (value_.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
  if (!share_->has_hidden_key) {
    encode_key(table->s->primary_key, record, &primary_);
    return 0;
  }
  uint64_t number;
  if (int error = share_->next_hidden(&number)) return error;
  append_big_endian(number, &primary_);
  return 0;
}

int ha_frondb::insert_row(const uchar *record) {
  if (int error = encode_new_row(record)) return error;
  if (share_->has_hidden_key) {
    frondb_tree *rows = share_->indexes[0].tree.get();
    if (Error error = frondb_txn_put(connection_->txn(), rows, slice(primary_), slice(value_))) return ha_error(error);
    current_ = primary_;
  } else if (int error = insert_into(table->s->primary_key, primary_, value_, true)) {
    return error;
  } else if (int error = lift_row(nullptr, primary_)) {
    return error;
  }
  if (int error = insert_entries(record, primary_)) return error;
  return tell_build(nullptr, record);
}

int ha_frondb::update_row(const uchar *before, const uchar *after) {
  if (is_sequence()) return guarded([&] { return write_sequence(after); });
  // For UPDATE the server has compared them; REPLACE leaves it to the engine, and counts what it is told.
  if (leaves_comparing(ha_thd()) && is_same_row(table, before, after)) return HA_ERR_RECORD_IS_THE_SAME;
  int error = guarded([&] { return whole([&] { return change_row(before, after); }); });
  if (error) return error;
  count(0);
  return keep_auto_increment_of(after);
}

int ha_frondb::change_row(const uchar *before, const uchar *after) {
  frondb_txn *txn = connection_->txn();
  primary_key(before, &other_primary_);
  primary_key(after, &primary_);
  value_.clear();
  pack_row(table, share_->record.form.layout, after, &value_);
  if (value_.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
  frondb_tree *rows = share_->indexes[0].tree.get();
  int error = 0;
  if (primary_ != other_primary_) {
    error = insert_into(table->s->primary_key, primary_, value_, true);
    if (!error) error = ha_error(frondb_txn_delete(txn, rows, slice(other_primary_)));
  } else {
    error = ha_error(frondb_txn_put(txn, rows, slice(primary_), slice(value_)));
  }
  if (!error) error = lift_row(before, other_primary_);
  if (!error && primary_ != other_primary_) error = lift_row(nullptr, primary_);
  for (uint k = 0; k < table->s->keys && !error; k++)
    if (!is_primary(k)) error = change_entry(k, before, after);
  return error ? error : tell_build(before, after);
}

/** The entry of a row in an index, whose primary keys are in `other_primary_` and `primary_`. */
int ha_frondb::change_entry(uint k, const uchar *before, const uchar *after) {
  bool was_unique = entry(k, before, other_primary_, &other_key_, &other_value_);
  bool is_unique = entry(k, after, primary_, &key_, &value_);
  bool same_key = key_ == other_key_;
  if (same_key && value_ == other_value_) return 0;
  if (int error = insert_into(k, key_, value_, is_unique && !same_key)) return error;
  if (is_unique)
    if (int error = uncover_entry(k, key_, primary_)) return error;
  if (!same_key) {
    frondb_tree *tree = share_->indexes[tree_of(k)].tree.get();
    if (Error error = frondb_txn_delete(connection_->txn(), tree, slice(other_key_))) return ha_error(error);
  }
  bool is_same = same_key && primary_ == other_primary_;
  return was_unique && !is_same ? uncover_entry(k, other_key_, other_primary_) : 0;
}

int ha_frondb::delete_row(const uchar *record) {
  int error = guarded([&] { return remove_row(record); });
  if (!error) count(-1);
  return error;
}

int ha_frondb::remove_row(const uchar *record) {
  frondb_txn *txn = connection_->txn();
  primary_key(record, &primary_);
  int error = ha_error(frondb_txn_delete(txn, share_->indexes[0].tree.get(), slice(primary_)));
  if (!error) error = lift_row(record, primary_);
  for (uint k = 0; k < table->s->keys && !error; k++) {
    if (is_primary(k)) continue;
    bool was_unique = entry(k, record, primary_, &key_, &value_);
    error = ha_error(frondb_txn_delete(txn, share_->indexes[tree_of(k)].tree.get(), slice(key_)));
    if (!error && was_unique) error = uncover_entry(k, key_, primary_);
  }
  return error ? error : tell_build(record, nullptr);
}

void ha_frondb::count(int64_t rows) {
  share_->rows->changed();
  if (rows) connection_->counts().add(share_->rows, rows);
  if (has_written_) return;
  has_written_ = true;
  share_->update_time = time(nullptr);
}
