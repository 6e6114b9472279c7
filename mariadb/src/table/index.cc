/* SPDX-License-Identifier: GPL-2.0-only

   See table/index.h. */

#include "table/index.h"

#include <algorithm>
#include <set>

#include "codec/entry.h"
#include "table/options.h"

namespace fron {

void Index::describe(const TABLE *table, const KEY *key, const Layout &layout) {
  const KEY *primary = primary_key_of(table);
  codec = KeyCodec(key);
  is_unique = key->flags & HA_NOSAME;
  is_clustering = key != primary && fron::is_clustering(*key);
  std::set<uint> fields;
  auto cover = [&](const KEY *of) {
    for (uint i = 0; i < of->user_defined_key_parts; i++)
      if (is_whole_field(of->key_part[i])) fields.insert(of->key_part[i].fieldnr - 1);
  };
  cover(key);
  KEY_PART_INFO *parts_end = key->key_part + key->ext_key_parts;
  has_all_parts = is_clustering || std::all_of(key->key_part, parts_end, is_whole_field);
  is_enough = !table->part_info || has_all_parts;
  if (primary) cover(primary);
  // Fields that are decoded from the keys need not be stored again.
  for (uint field : codec.decodable()) fields.erase(field);
  if (primary) {
    codec.extend(key, primary);
    KeyCodec of_primary(primary);
    for (uint field : of_primary.decodable()) fields.erase(field);
  }
  // Cover fields in the order of slots: ALTER may move columns, and entries stay unchanged.
  covered.clear();
  widened.clear();
  for (const Slot &slot : layout) {
    if (!fields.count(slot.field)) continue;
    covered.push_back(slot.field);
    widened.push_back(slot.short_until != 0);
  }
  if (std::find(widened.begin(), widened.end(), true) == widened.end()) widened.clear();
  if (layout.empty()) covered.assign(fields.begin(), fields.end());
  describe_generated(table, key);
}

void Index::finish_entry(const TABLE *table, const Layout &layout, const uchar *record, const std::string &primary,
                         bool is_unique, std::string *key, std::string *value) const {
  value->clear();
  append_head(primary.size(), is_unique, value);
  (is_unique ? value : key)->append(primary);
  if (is_clustering) pack_row(table, layout, record, value);
  else pack_fields(table, covered, widened, record, value);
}

void Index::describe_generated(const TABLE *table, const KEY *key) {
  fills_generated = false;
  computed.clear();
  // In a table without partitions, the server uses index-only reads of a non-clustering key only for fields that its
  // entries contain.
  if (!table->part_info && !is_clustering) return;
  std::set<uint> held(codec.decodable().begin(), codec.decodable().end());
  // A row, and so a clustering entry, has no virtual fields.
  if (!is_clustering) held.insert(covered.begin(), covered.end());
  for (uint i = 0; i < key->user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key->key_part[i];
    uint number = part.fieldnr - 1;
    if (table->field[number]->stored_in_db()) continue;
    if (held.count(number)) fills_generated = table->part_info != nullptr;
    else computed.push_back({number, part.length});
  }
}

}  // namespace fron
