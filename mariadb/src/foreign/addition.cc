/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/addition.h. */

#include "foreign/addition.h"

#include <mysql/service_progress_report.h>
#include <mysqld_error.h>

#include <algorithm>

#include "codec/entry.h"
#include "codec/row.h"
#include "table/yielding.h"
#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "foreign/binding.h"
#include "foreign/checks.h"
#include "foreign/column_key.h"
#include "foreign/text.h"
#include "foreign/trees.h"
#include "foreign/watch.h"
#include "table/share.h"
#include "txn/prepared_writes.h"
#include "txn/lock_timeout.h"

namespace fron {
namespace {

/** Number of rows read, and of parents searched for, at a time. The keys of the parents are sorted, so that each search
    is near the previous one in the tree. */
constexpr size_t ROWS_A_STEP = 4096;
constexpr size_t BYTES_A_STEP = 1 << 20;

int report_orphan(THD *thd, const ForeignKey &key) {
  my_printf_error(ER_NO_REFERENCED_ROW_2, ER_THD(thd, ER_NO_REFERENCED_ROW_2), MYF(0), failure_of(thd, key).c_str());
  return HA_ERR_NO_REFERENCED_ROW;
}

/** Searches a tree, at a snapshot or now, for an entry of a current row that begins with `prefix`. */
Error has_prefix(frondb_tree *tree, const std::string &prefix, const KeySide &side, frondb_snapshot *at, bool *found) {
  *found = false;
  PrefixRange range(prefix);
  Cursor cursor;
  if (Error error = frondb_tree_cursor(tree, range.from(), range.to(), at, cursor.out())) return error;
  for (;;) {
    if (Error error = frondb_cursor_next(cursor.get(), found)) return error;
    if (!*found) return {};
    frondb_slice key, value;
    if (Error error = frondb_cursor_key(cursor.get(), &key)) return error;
    if (Error error = frondb_cursor_value(cursor.get(), &value)) return error;
    if (is_current(side, key, value)) return {};
  }
}

/** Searches for parents at a snapshot. */
class Parents {
 public:
  Parents(const ForeignKey &key, frondb_tree *tree, frondb_snapshot *at) : key_(key), tree_(tree), at_(at) {}
  Error make() { return buffer_.make(); }
  /** Sorts the keys, and sets `found` to whether all of them exist. */
  Error find_all(std::vector<std::string> *keys, bool *found) {
    std::sort(keys->begin(), keys->end());
    keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
    // If the rows are in the order of their parents, the first key is often the last one of the previous batch, which
    // exists.
    if (!keys->empty() && keys->front() == last_) keys->erase(keys->begin());
    if (!keys->empty()) last_ = keys->back();
    *found = true;
    return key_.parent_side.is_exact && key_.parent_side.current.empty() ? find_keys(*keys, found) : find_prefixes(*keys, found);
  }

 private:
  Error find_keys(const std::vector<std::string> &keys, bool *found) {
    std::vector<frondb_slice> wanted, values(keys.size());
    for (const std::string &key : keys) wanted.push_back(slice(key));
    if (Error error = frondb_tree_multi_get(tree_, wanted.data(), wanted.size(), at_, buffer_.get(), values.data()))
      return error;
    *found = std::all_of(values.begin(), values.end(), [](frondb_slice value) { return value.data != nullptr; });
    return {};
  }
  Error find_prefixes(const std::vector<std::string> &keys, bool *found) {
    for (size_t i = 0; i < keys.size() && *found; i++)
      if (Error error = has_prefix(tree_, keys[i], key_.parent_side, at_, found)) return error;
    return {};
  }

  const ForeignKey &key_;
  frondb_tree *tree_;
  frondb_snapshot *at_;
  Buffer buffer_;
  std::string last_;
};

/** One foreign key during the scan of the rows. */
struct Scanned {
  ForeignKeyPtr key;
  std::shared_ptr<ColumnKey> columns;
  Tree parent, parent_rows;
  std::unique_ptr<Parents> parents;
  std::vector<std::string> wanted;
};

void compute_virtual(TABLE *table, const ForeignKey &key, const ColumnKey &columns) {
  for (size_t i = 0; i < key.columns.size(); i++) {
    Field *field = table->field[columns.part(i).field->field_index];
    if (!field->stored_in_db()) table->update_virtual_field(field, true);
  }
}

/** Marks the fields of a foreign key as wanted; for a virtual field, all fields, because it may depend on any of
    them. */
void want(TABLE *table, const ForeignKey &key, const ColumnKey &columns, Wanted *wanted) {
  for (size_t i = 0; i < key.columns.size(); i++) {
    uint number = columns.part(i).field->field_index;
    if (table->field[number]->stored_in_db()) wanted->fields[number] = 1;
    else std::fill(wanted->fields.begin(), wanted->fields.end(), 1);
  }
}

/** Searches for the parents of the rows read since the last call. */
int find_parents(THD *thd, std::vector<Scanned> *scanned) {
  for (Scanned &one : *scanned) {
    bool found;
    if (Error error = one.parents->find_all(&one.wanted, &found)) return ha_error(error);
    one.wanted.clear();
    if (!found) return report_orphan(thd, *one.key);
  }
  return 0;
}

int scan(THD *thd, TABLE *table, const Share &share, const Wanted &wanted, frondb_snapshot *at,
         std::vector<Scanned> *scanned) {
  frondb_tree *rows_tree = share.indexes[0].tree.get();
  Yielding yielding(*share.rows);
  frondb_estimate estimate;
  if (Error error = frondb_tree_estimate(rows_tree, {}, nullptr, &estimate)) return ha_error(error);
  Cursor cursor;
  if (Error error = cursor.open(rows_tree, {}, at)) return ha_error(error);
  std::vector<uchar> image;
  for (uint64_t done = 0;;) {
    if (is_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    frondb_rows rows;
    if (Error error = cursor.read(ROWS_A_STEP, BYTES_A_STEP, &rows)) return ha_error(error);
    if (rows.count == 0) return 0;
    for (size_t i = 0; i < rows.count; i++) {
      if (!unpack_row(table, share.record.form, view(rows.entries[i].value), table->record[0], wanted))
        return ha_damaged(table->s->normalized_path.str, "(rows)");
      if (is_history(table, table->record[0])) continue;
      for (Scanned &one : *scanned) {
        compute_virtual(table, *one.key, *one.columns);
        one.columns->image_of(table->record[0], &image);
        if (one.columns->has_null(image)) continue;
        std::string key;
        if (!one.columns->encode_as(image, one.key->parent_side.parts, &key)) return report_orphan(thd, *one.key);
        one.wanted.push_back(std::move(key));
      }
    }
    if (int error = find_parents(thd, scanned)) return error;
    yielding.passed(rows.count);
    done += rows.count;
    thd_progress_report(thd, done, std::max<uint64_t>(done, estimate.entries));
  }
}

}  // namespace

ForeignKeyAddition::ForeignKeyAddition(const std::vector<ForeignKeyPtr> &keys) {
  for (const ForeignKeyPtr &key : keys) {
    auto watched = std::make_shared<ForeignKey>(*key);
    watched->watch = std::make_shared<ForeignKeyWatch>();
    keys_.push_back(watched);
  }
}

void ForeignKeyAddition::begin() {
  is_begun_ = true;
  dictionary().foreign_keys().begin_adding(keys_);
}

void ForeignKeyAddition::end() {
  if (is_begun_) dictionary().foreign_keys().end_adding(keys_);
  is_begun_ = false;
}

int ForeignKeyAddition::validate(THD *thd, TABLE *table, const Share &share) {
  const RowForm &form = share.record.form;
  std::vector<Scanned> scanned;
  Wanted wanted;
  wanted.fields.assign(table->s->fields, 0);
  std::vector<frondb_tree *> trees;
  for (const ForeignKeyPtr &key : keys_) {
    Scanned one{key, ColumnKey::make(table, key->columns), {}, {}, nullptr, {}};
    if (int error = open_index(key->parent, key->parent_side.index, &one.parent)) return error;
    if (int error = open_rows(key->parent, &one.parent_rows)) return error;
    if (!one.columns || !one.parent || !one.parent_rows) return report_orphan(thd, *key);
    want(table, *key, *one.columns, &wanted);
    trees.push_back(one.parent_rows.get());
    scanned.push_back(std::move(one));
  }
  if (table->versioned()) wanted.fields[table->vers_end_field()->field_index] = 1;
  pass_others(table, form.layout, &wanted);
  Snapshot at;
  Error error = snapshot_behind_writers(trees, statement_lock_timeout_millis(thd), &at);
  if (error && error.kind() == FRONDB_BUSY) return refuse_for_prepared();
  if (error) return ha_error(error);
  for (Scanned &one : scanned) {
    one.parents = std::make_unique<Parents>(*one.key, one.parent.get(), at.get());
    if (Error failed = one.parents->make()) return ha_error(failed);
  }
  return scan(thd, table, share, wanted, at.get(), &scanned);
}

int ForeignKeyAddition::finish(THD *thd, const std::function<Error(const std::string &, Tree *)> &open) {
  std::vector<std::string> parents;
  for (const ForeignKeyPtr &key : keys_) parents.push_back(key->parent);
  std::sort(parents.begin(), parents.end());
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  if (int error = fences_.take(thd, parents)) return error;
  for (const ForeignKeyPtr &key : keys_) {
    std::map<std::string, std::string> gone = key->watch->noted();
    if (gone.empty()) continue;
    Tree child, parent;
    if (Error error = open(key->child_side.index, &child)) return ha_error(error);
    if (int error = open_index(key->parent, key->parent_side.index, &parent)) return error;
    for (const auto &[of_parent, of_child] : gone) {
      bool is_used, is_there = false;
      if (Error error = has_prefix(child.get(), of_child, key->child_side, nullptr, &is_used)) return ha_error(error);
      if (is_used && parent)
        if (Error error = has_prefix(parent.get(), of_parent, key->parent_side, nullptr, &is_there)) return ha_error(error);
      if (is_used && !is_there) return report_orphan(thd, *key);
    }
  }
  return 0;
}

}  // namespace fron
