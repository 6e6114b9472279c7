/* SPDX-License-Identifier: GPL-2.0-only

   See handler/built_entries.h. */

#include "handler/built_entries.h"

#include <key.h>

#include <algorithm>

#include "engine/errors.h"

namespace fron {

void BuiltEntries::use(const std::shared_ptr<IndexBuild> &build) {
  if (of_ == build) return;
  TABLE *table = encoder_->table();
  std::vector<std::vector<KEY_PART_INFO>> parts;
  std::vector<KEY> keys;
  size_t longest = 0;
  for (const BuiltIndex &built : build->indexes) {
    parts.push_back(built.parts);
    for (KEY_PART_INFO &part : parts.back()) part.field = table->field[part.fieldnr - 1];
    keys.push_back(built.key);
    longest = std::max<size_t>(longest, built.key.key_length + 8);
  }
  for (size_t i = 0; i < keys.size(); i++) {
    keys[i].key_part = parts[i].data();
    keys[i].table = table;
  }
  image_.resize(longest);
  parts_ = std::move(parts);
  keys_ = std::move(keys);
  of_ = build;
}

bool BuiltEntries::entry(const IndexBuild &build, size_t i, const uchar *record, const std::string &primary,
                         std::string *key, std::string *value) {
  const Index &index = build.indexes[i].index;
  KEY *info = &keys_[i];
  key_copy(image_.data(), record, info, info->key_length, true);
  bool is_unique = index.is_unique && !KeyCodec::has_null(info, image_.data(), info->key_length);
  key->clear();
  index.codec.encode(info, image_.data(), info->key_length, key);
  encoder_->finish_entry(index, record, primary, is_unique, key, value);
  return is_unique;
}

int BuiltEntries::notify(const std::shared_ptr<IndexBuild> &build, frondb_txn *txn, const uchar *before,
                         const std::string &primary_before, const uchar *after, const std::string &primary_after) {
  use(build);
  std::string old_key, old_value, key, value;
  for (size_t i = 0; i < build->indexes.size(); i++) {
    bool was_unique = false, is_unique = false;
    if (before) was_unique = entry(*build, i, before, primary_before, &old_key, &old_value);
    if (after) is_unique = entry(*build, i, after, primary_after, &key, &value);
    bool stays = before && after && key == old_key && primary_after == primary_before;
    if (stays && value == old_value) continue;
    if (before && !stays)
      if (Error error = build->remove(txn, i, old_key, primary_before, was_unique)) return ha_error(error);
    if (after)
      if (Error error = build->put(txn, i, key, value, primary_after, is_unique)) return ha_error(error);
  }
  return 0;
}

}  // namespace fron
