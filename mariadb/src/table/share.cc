/* SPDX-License-Identifier: GPL-2.0-only

   See table/share.h. Here: opening a table's trees and indexes, and its hidden keys. */

#include "table/share.h"

#include <algorithm>

#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"

namespace fron {
namespace {

/** Number of hidden keys that are reserved in the dictionary at a time. */
constexpr uint64_t HIDDEN_KEYS = 1 << 16;

const KEY *find_key(const TABLE *table, const std::string &name) {
  for (uint k = 0; k < table->s->keys; k++)
    if (name == table->key_info[k].name.str) return &table->key_info[k];
  return nullptr;
}

/** Returns the names and the keys of a table's indexes, by the numbers of their trees. */
TreeShapes shapes_of(const TABLE *table, const Share &share) {
  TreeShapes shapes;
  KeyReader primary = KeyReader::hidden();
  for (size_t i = 0; i < share.indexes.size(); i++) {
    const Index &index = share.indexes[i];
    const std::string &name = share.record.indexes[i].name;
    uint64_t tree;
    if (Error error = frondb_tree_id(index.tree.get(), &tree)) continue;  // The tree was dropped, so it has no locks.
    const KEY *key = find_key(table, name);
    KeyReader reader = key ? KeyReader(index.codec, key, i == 0 ? nullptr : &primary) : KeyReader::hidden();
    if (i == 0) primary = reader;
    shapes[tree] = std::make_shared<IndexShape>(IndexShape{IndexName(share.name, name), std::move(reader)});
  }
  return shapes;
}

}  // namespace

int Share::open(const TABLE *table, const std::string &of) {
  name = of;
  hidden_next_ = hidden_end_ = 0;
  auto_increment = 0;
  bool found;
  if (Error error = dictionary().find(name, &record, &found)) return ha_error(error);
  if (!found) return HA_ERR_NO_SUCH_TABLE;
  has_hidden_key = fron::has_hidden_key(table);
  size_t expected = table->s->keys + (has_hidden_key ? 1 : 0);
  if (record.indexes.size() != expected)
    return ha_internal("the table's definition has other indexes than FronDB's dictionary: restore both from the same backup");
  if (!is_layout_of(record.form.layout, table->s->fields))
    return ha_internal("the table's definition has other columns than FronDB's dictionary: restore both from the same backup");
  indexes.resize(expected);
  for (size_t i = 0; i < expected; i++) {
    std::string name = Dictionary::tree_name(record.number, record.indexes[i].number);
    if (Error error = open_tree(name, &indexes[i].tree)) return ha_error(error);
  }
  for (uint k = 0; k < table->s->keys; k++) {
    Index &index = indexes[tree_of(table, k)];
    index.describe(table, &table->key_info[k], record.form.layout);
    if (index.is_unique && k != table->s->primary_key) has_unique_secondary = true;
  }
  const KEY *primary = primary_key_of(table);
  is_primary_covered = !primary || std::all_of(primary->key_part, primary->key_part + primary->user_defined_key_parts,
                                               is_whole_field);
  changed_at = dictionary().changed_at(record.number);
  uint64_t next;
  if (Error error = dictionary().counter(record.number, Dictionary::AUTO_INCREMENT, &next)) return ha_error(error);
  auto_increment = std::max<uint64_t>(1, next);
  counter_lock = std::make_shared<CounterLock>(record.number);
  listing.reset();
  listing = std::make_unique<Listing>(shapes_of(table, *this));
  return open_statistics();
}

int Share::next_hidden(uint64_t *number) {
  std::lock_guard<std::mutex> guard(counting);
  if (hidden_next_ == hidden_end_) {
    if (Error error = dictionary().counter(record.number, Dictionary::HIDDEN_KEY, &hidden_next_))
      return ha_error(error);
    hidden_end_ = hidden_next_ + HIDDEN_KEYS;
    if (Error error = dictionary().keep_counter(record.number, Dictionary::HIDDEN_KEY, hidden_end_)) {
      hidden_end_ = hidden_next_;
      return ha_error(error);
    }
  }
  *number = hidden_next_++;
  return 0;
}

}  // namespace fron
