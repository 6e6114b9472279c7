/* SPDX-License-Identifier: GPL-2.0-only

   See handler/row_writer.h. */

#include "handler/row_writer.h"

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/connection.h"

namespace fron {

Error RowWriter::open(RowEncoder *encoder, Share *share, ReadFree *read_free, const StatementUse *use) {
  encoder_ = encoder;
  share_ = share;
  read_free_ = read_free;
  use_ = use;
  size_t keys = encoder->table()->s->keys;
  before_.resize(keys);
  after_.resize(keys);
  is_changed_.resize(keys);
  return overlay_.open(encoder);
}

// --- Encoding ---

void RowWriter::row_key(const uchar *record, const std::string &shown, std::string *to) {
  if (share_->has_hidden_key) {
    *to = shown;
    return;
  }
  to->clear();
  encoder_->append_key(encoder_->table()->s->primary_key, record, to);
}

int RowWriter::encode_new_row(const uchar *record) {
  primary_.clear();
  encoder_->encode_row(record, &row_);
  if (row_.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
  if (!share_->has_hidden_key) {
    encoder_->append_key(encoder_->table()->s->primary_key, record, &primary_);
    return 0;
  }
  uint64_t number;
  if (int error = share_->next_hidden(&number)) return error;
  append_big_endian(number, &primary_);
  return 0;
}

bool RowWriter::has_other_indexes() const { return encoder_->table()->s->keys > (share_->has_hidden_key ? 0u : 1u); }

// --- The writes of a row ---

void RowWriter::begin(bool checks_unique) {
  checks_unique_ = checks_unique;
  writes_.clear();
  indexes_.clear();
  is_changed_.assign(is_changed_.size(), false);
}

void RowWriter::add(frondb_operation operation, uint index, bool checks_outdated, std::string_view key,
                    std::string_view value) {
  bool is_row = index == encoder_->table()->s->primary_key;
  frondb_tree *tree = is_row ? encoder_->rows() : encoder_->tree(index);
  frondb_write_flags flags = checks_outdated ? FRONDB_WRITE_CHECK_OUTDATED : 0;
  // As in InnoDB, the row that has the key stays locked in shared mode, unless the statement writes to it.
  if (operation == FRONDB_WRITE_INSERT && !use_->writes_duplicates) flags |= FRONDB_WRITE_SHARE_EXISTING;
  writes_.push_back({tree, slice(key), slice(value), operation, flags});
  indexes_.push_back(index);
}

int RowWriter::add_value(uint index, bool is_new_key, bool checks_outdated, std::string_view key,
                         std::string_view value) {
  if (value.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
  if (is_new_key && !checks_unique_) ReadFree::count_unique_check();
  add(is_new_key && checks_unique_ ? FRONDB_WRITE_INSERT : FRONDB_WRITE_PUT, index, checks_outdated, key, value);
  return 0;
}

bool RowWriter::can_go_on() const {
  const THD *thd = encoder_->table()->in_use;
  return share_->has_unique_secondary || thd->lex->ignore || thd->in_sub_stmt || thd->slave_thread;
}

int RowWriter::apply(Connection *connection) {
  size_t failed_at = 0;
  bool any_outdated = false, all_or_none = can_go_on();
  Error failed = frondb_txn_write_entries(connection->txn(), writes_.data(), writes_.size(), all_or_none, &failed_at,
                                          &any_outdated);
  needs_overlay_ = any_outdated || connection->has_overlay;
  if (!failed) {
    written_++;
    return 0;
  }
  int number = ha_error(failed);
  bool is_duplicate = number == HA_ERR_FOUND_DUPP_KEY;
  // A part of the row is written. If the server does not roll the statement back, no commit may succeed.
  if (!all_or_none && !(is_duplicate && failed_at == 0)) connection->must_roll_back = true;
  if (is_duplicate && failed_at < indexes_.size()) connection->duplicate_key = indexes_[failed_at];
  return number;
}

int RowWriter::encode_insert(const uchar *record) {
  if (int error = encode_new_row(record)) return error;
  const TABLE *table = encoder_->table();
  bool has_key = !share_->has_hidden_key;
  begin(!read_free_->skips_unique_checks(encoder_->table()));
  int error = add_value(table->s->primary_key, has_key, has_key && has_other_indexes(), primary_, row_);
  for (uint k = 0; k < table->s->keys && !error; k++) {
    if (encoder_->is_primary(k)) continue;
    Entry &now = after_[k];
    now.is_unique = encoder_->entry(k, record, primary_, &now.key, &now.value);
    error = add_value(k, now.is_unique, now.is_unique, now.key, now.value);
  }
  return error;
}

int RowWriter::insert(Connection *connection, const uchar *record) {
  int error = encode_insert(record);
  return error ? error : apply_insert(connection);
}

int RowWriter::insert(Connection *connection, const std::vector<frondb_write> &writes) {
  const TABLE *table = encoder_->table();
  begin(true);
  auto next = writes.begin();
  auto add_again = [&](uint index) {
    writes_.push_back(*next++);
    indexes_.push_back(index);
    return writes_.back();
  };
  primary_.assign(view(add_again(table->s->primary_key).key));
  for (uint k = 0; k < table->s->keys; k++) {
    if (encoder_->is_primary(k)) continue;
    frondb_write write = add_again(k);
    after_[k].key.assign(view(write.key));
    after_[k].is_unique = write.flags & FRONDB_WRITE_CHECK_OUTDATED;
  }
  return apply_insert(connection);
}

/** Applies the writes of a new row. */
int RowWriter::apply_insert(Connection *connection) {
  const TABLE *table = encoder_->table();
  bool has_key = !share_->has_hidden_key;
  int error = apply(connection);
  if (error) return error;
  if (!needs_overlay_) return 0;
  if (has_key && (error = overlay_.lift_row(connection, nullptr, primary_))) return error;
  for (uint k = 0; k < table->s->keys; k++)
    if (!encoder_->is_primary(k))
      if (int failed = uncover(connection, k, after_[k], primary_)) return failed;
  return 0;
}

int RowWriter::add_change(uint k, const uchar *before, const uchar *after) {
  Entry &was = before_[k], &now = after_[k];
  was.is_unique = encoder_->entry(k, before, primary_before_, &was.key, &was.value);
  now.is_unique = encoder_->entry(k, after, primary_, &now.key, &now.value);
  bool same_key = now.key == was.key;
  if (same_key && now.value == was.value) return 0;
  is_changed_[k] = true;
  if (int error = add_value(k, now.is_unique && !same_key, now.is_unique, now.key, now.value)) return error;
  if (!same_key) add(FRONDB_WRITE_DELETE, k, was.is_unique, was.key);
  return 0;
}

int RowWriter::change(Connection *connection, const uchar *before, const uchar *after, const std::string &shown) {
  const TABLE *table = encoder_->table();
  row_key(before, shown, &primary_before_);
  row_key(after, shown, &primary_);
  encoder_->encode_row(after, &row_);
  begin(!read_free_->skips_unique_checks(encoder_->table()));
  bool moves = primary_ != primary_before_, checks = has_other_indexes();
  int error = add_value(table->s->primary_key, moves, checks, primary_, row_);
  if (error) return error;
  if (moves) add(FRONDB_WRITE_DELETE, table->s->primary_key, checks, primary_before_);
  for (uint k = 0; k < table->s->keys && !error; k++)
    if (!encoder_->is_primary(k)) error = add_change(k, before, after);
  if (!error) error = apply(connection);
  if (error) return error;
  if (!needs_overlay_) return 0;
  if (int failed = overlay_.lift_row(connection, before, primary_before_)) return failed;
  if (moves)
    if (int failed = overlay_.lift_row(connection, nullptr, primary_)) return failed;
  for (uint k = 0; k < table->s->keys; k++) {
    if (!is_changed_[k]) continue;
    if (int failed = uncover(connection, k, after_[k], primary_)) return failed;
    if (!moves && before_[k].key == after_[k].key) continue;
    if (int failed = uncover(connection, k, before_[k], primary_before_)) return failed;
  }
  return 0;
}

int RowWriter::remove(Connection *connection, const uchar *record, const std::string &shown) {
  const TABLE *table = encoder_->table();
  row_key(record, shown, &primary_);
  begin(false);
  add(FRONDB_WRITE_DELETE, table->s->primary_key, has_other_indexes(), primary_);
  for (uint k = 0; k < table->s->keys; k++) {
    if (encoder_->is_primary(k)) continue;
    Entry &was = before_[k];
    was.is_unique = encoder_->entry(k, record, primary_, &was.key, &was.value);
    add(FRONDB_WRITE_DELETE, k, was.is_unique, was.key);
  }
  if (int error = apply(connection)) return error;
  if (!needs_overlay_) return 0;
  if (int error = overlay_.lift_row(connection, record, primary_)) return error;
  for (uint k = 0; k < table->s->keys; k++)
    if (!encoder_->is_primary(k))
      if (int error = uncover(connection, k, before_[k], primary_)) return error;
  return 0;
}

int RowWriter::uncover(Connection *connection, uint index, const Entry &entry, const std::string &primary) {
  return entry.is_unique ? overlay_.uncover_entry(connection, index, entry.key, primary) : 0;
}

}  // namespace fron
