/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/trees.h. */

#include "foreign/trees.h"

#include <string_view>

#include "codec/entry.h"
#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "foreign/text.h"
#include "txn/prepared_writes.h"

namespace fron {

int open_index(const std::string &table, const std::string &index, Tree *tree) {
  TableRecord record;
  bool found;
  if (Error error = dictionary().find(table, &record, &found)) return ha_error(error);
  if (!found) return 0;
  for (const IndexRecord &one : record.indexes) {
    if (!is_same_name(one.name, index)) continue;
    Error error = open_tree(Dictionary::tree_name(record.number, one.number), tree);
    return error && error.kind() != FRONDB_NOT_FOUND ? ha_error(error) : 0;
  }
  return 0;
}

bool is_current(const KeySide &side, frondb_slice key, frondb_slice value) {
  if (side.current.empty()) return true;
  frondb_slice primary = key;
  std::string_view covered;
  // If the index is the primary one, the value is a row.
  bool is_primary = is_same_name(side.index, "PRIMARY");
  if (!is_primary && !split_entry(key, value, &primary, &covered)) return false;
  std::string_view bytes = view(primary);
  return bytes.size() >= side.current.size() && bytes.substr(bytes.size() - side.current.size()) == side.current;
}

Error lock_prefix(frondb_txn *txn, frondb_tree *tree, const std::string &prefix) {
  PrefixRange range(prefix);
  return frondb_txn_lock_range(txn, tree, range.from(), range.to(), FRONDB_LOCK_SHARED, FRONDB_WAIT);
}

/** Moves the cursor to its next entry; if `side` is given, to the next entry of a current row. */
static Error next_current(frondb_cursor *cursor, const KeySide *side, bool *found) {
  for (;;) {
    if (Error error = frondb_cursor_next(cursor, found)) return error;
    if (!*found || !side || side->current.empty()) return {};
    frondb_slice key, value;
    if (Error error = frondb_cursor_key(cursor, &key)) return error;
    if (Error error = frondb_cursor_value(cursor, &value)) return error;
    if (is_current(*side, key, value)) return {};
  }
}

int wait_for_prepared(frondb_txn *txn, frondb_tree *children, const std::string &prefix, const KeySide *side, bool *found) {
  *found = false;
  if (!may_have_prepared(children)) return 0;
  if (Error error = lock_prefix(txn, children, prefix)) return ha_error(error);
  PrefixRange range(prefix);
  Cursor cursor;
  if (Error error = frondb_tree_cursor(children, range.from(), range.to(), nullptr, cursor.out())) return ha_error(error);
  return ha_error(next_current(cursor.get(), side, found));
}

int open_rows(const std::string &table, Tree *tree) {
  TableRecord record;
  bool found;
  if (Error error = dictionary().find(table, &record, &found)) return ha_error(error);
  if (!found || record.indexes.empty()) return 0;
  Error error = open_tree(Dictionary::tree_name(record.number, record.indexes[0].number), tree);
  return error && error.kind() != FRONDB_NOT_FOUND ? ha_error(error) : 0;
}

Error lock_key(frondb_txn *txn, frondb_tree *tree, const std::string &key, frondb_lock mode, bool *found) {
  size_t length;
  return frondb_txn_get_into(txn, tree, slice(key), mode, FRONDB_WAIT, nullptr, 0, &length, found);
}

Error find_prefix(frondb_txn *txn, frondb_tree *tree, const std::string &prefix, const KeySide &side, bool *found) {
  PrefixRange range(prefix);
  Cursor cursor;
  if (Error error = frondb_txn_cursor(txn, tree, range.from(), range.to(), FRONDB_LOCK_SHARED_ENTRIES, FRONDB_WAIT, cursor.out()))
    return error;
  return next_current(cursor.get(), &side, found);
}

}  // namespace fron
