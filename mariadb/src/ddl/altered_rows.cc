/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/altered_rows.h. */

#include "ddl/altered_rows.h"

#include <sql_error.h>

#include <algorithm>

#include "codec/entry.h"
#include "codec/row.h"
#include "engine/db.h"
#include "engine/errors.h"

namespace fron {

AlteredRows::AlteredRows(THD *thd, TABLE *altered, const IndexBuild &build, const AlterPlan &plan)
    : thd_(thd), altered_(altered), build_(build), rebuilds_(plan.rebuilds), converts_null_(plan.converts_null),
      names_rows_(thd->is_strict_mode()) {
  const Layout &layout = build.form().layout;
  for (uint number : plan.not_null) {
    auto has_field = [&](const Slot &slot) { return slot.field == number; };
    size_t slot = number;
    if (!layout.empty()) slot = size_t(std::find_if(layout.begin(), layout.end(), has_field) - layout.begin());
    not_null_.push_back({slot, altered->field[number], false});
  }
  uint longest = 0;
  for (uint k = 0; k < altered->s->keys; k++) longest = std::max(longest, altered->key_info[k].key_length);
  image_.resize(longest + 8);
  for (const BuiltIndex &built : build.indexes) {
    if (built.number == MAX_KEY) continue;
    const KEY &key = altered->key_info[built.number];
    for (uint i = 0; i < key.user_defined_key_parts; i++) {
      Field *field = altered->field[key.key_part[i].fieldnr - 1];
      bool is_known = std::find(virtual_.begin(), virtual_.end(), field) != virtual_.end();
      if (!field->stored_in_db() && !is_known) virtual_.push_back(field);
    }
  }
  memcpy(altered->record[0], altered->s->default_values, altered->s->reclength);
}

// --- Decoding ---

int AlteredRows::damaged() const { return ha_damaged(altered_->s->normalized_path.str, "(rows)"); }

int AlteredRows::check_nulls(std::string_view row, bool is_first) {
  for (NotNull &column : not_null_) {
    // A row that lacks the slot has the former default, which the altered form may have replaced.
    column.is_null = is_null_in(build_.form_before(), row, column.slot);
    if (!column.is_null) continue;
    const char *name = column.field->field_name.str;
    if (!converts_null_) {
      my_error(WARN_DATA_TRUNCATED, MYF(0), name, rows_);
      return ALTER_ERROR_REPORTED;
    }
    if (is_first)
      push_warning_printf(thd_, Sql_condition::WARN_LEVEL_WARN, WARN_DATA_TRUNCATED, ER_THD(thd_, WARN_DATA_TRUNCATED), name, rows_);
  }
  return 0;
}

int AlteredRows::compute_virtual() {
  if (virtual_.empty()) return 0;
  MY_BITMAP *read = tmp_use_all_columns(altered_, &altered_->read_set);
  MY_BITMAP *write = tmp_use_all_columns(altered_, &altered_->write_set);
  int errors = 0;
  for (size_t i = 0; i < virtual_.size() && errors == 0; i++) errors = altered_->update_virtual_field(virtual_[i], false);
  tmp_restore_column_map(&altered_->read_set, read);
  tmp_restore_column_map(&altered_->write_set, write);
  return errors ? ALTER_ERROR_REPORTED : 0;
}

int AlteredRows::decode(std::string_view primary, std::string_view row, bool is_first) {
  if (is_first) rows_++;
  if (is_first && names_rows_) thd_inc_error_row(thd_);
  if (int error = check_nulls(row, is_first)) return error;
  if (!unpack_row(altered_, build_.form(), row, altered_->record[0], build_.wanted())) return damaged();
  // Convert NULL as a copy would, whatever the column's default is.
  for (const NotNull &column : not_null_)
    if (column.is_null) column.field->reset();
  if (int error = compute_virtual()) return error;
  primary_.assign(primary);
  if (!rebuilds_ || has_hidden_key(altered_)) return 0;
  primary_.clear();
  encode_key(build_.indexes[0].index, &altered_->key_info[altered_->s->primary_key], &primary_);
  return 0;
}

// --- Entries ---

void AlteredRows::encode_key(const Index &index, KEY *info, std::string *to) {
  copy_columns(altered_, info, altered_->record[0], info->key_length, image_.data());
  index.codec.encode(info, image_.data(), info->key_length, to);
}

bool AlteredRows::entry(size_t i, std::string *key, std::string *value) {
  const BuiltIndex &built = build_.indexes[i];
  value->clear();
  if (built.is_rows) {
    *key = primary_;
    pack_row(altered_, build_.layout(), altered_->record[0], value);
    return true;
  }
  KEY *info = &altered_->key_info[built.number];
  key->clear();
  encode_key(built.index, info, key);
  bool is_unique = built.index.is_unique && !KeyCodec::has_null(info, image_.data(), info->key_length);
  built.index.finish_entry(altered_, build_.layout(), altered_->record[0], primary_, is_unique, key, value);
  return is_unique;
}

// --- Duplicates ---

int AlteredRows::report_duplicate(size_t index) {
  uint number = build_.indexes[index].number;
  if (number == MAX_KEY) return ha_internal("ALTER TABLE has found a hidden key twice");
  print_keydup_error(altered_, &altered_->key_info[number], MYF(0));
  return HA_ERR_FOUND_DUPP_KEY;
}

int AlteredRows::report_loaded_twice(size_t index, std::string_view key, frondb_tree *rows, frondb_snapshot *at) {
  const BuiltIndex &built = build_.indexes[index];
  Buffer buffer;
  bool found;
  std::string primary(key);
  if (Error error = buffer.make()) return ha_error(error);
  if (!built.is_rows) {
    if (Error error = read_key(built.index.tree.get(), key, nullptr, buffer, &found)) return ha_error(error);
    frondb_slice row;
    std::string_view covered;
    if (!found || !split_entry(slice(key), buffer.slice(), &row, &covered)) return damaged();
    primary.assign(view(row));
  }
  // If the ALTER writes the rows anew, `primary` is a key of the new tree, otherwise a key of the old tree at the
  // snapshot `at`.
  frondb_tree *tree = rebuilds_ ? build_.indexes[0].index.tree.get() : rows;
  if (Error error = read_key(tree, primary, rebuilds_ ? nullptr : at, buffer, &found)) return ha_error(error);
  RowForm as_written;
  as_written.layout = build_.layout();
  const RowForm &form = rebuilds_ ? as_written : build_.form();
  if (!found || !unpack_row(altered_, form, buffer.value(), altered_->record[0])) return damaged();
  if (int error = compute_virtual()) return error;
  return report_duplicate(index);
}

}  // namespace fron
