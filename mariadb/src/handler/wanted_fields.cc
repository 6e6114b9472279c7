/* SPDX-License-Identifier: GPL-2.0-only

   See handler/wanted_fields.h. */

#include "handler/wanted_fields.h"

namespace fron {

void WantedFields::open(const RowEncoder *encoder) {
  encoder_ = encoder;
  tree_ = ~0u;
}

void WantedFields::find(uint tree, bool is_all, bool has_filter) {
  const TABLE *table = encoder_->table();
  // CHECKSUM TABLE sums up all stored fields, and does not mark stored generated columns.
  is_all = is_all || thd_sql_command(table->in_use) == SQLCOM_CHECKSUM;
  const MY_BITMAP *read = table->read_set, *written = table->write_set;
  uint words = no_words_in_map(read);
  bool is_same = tree_ == tree && is_all_ == is_all && has_filter_ == has_filter && marked_.size() == words;
  for (uint i = 0; is_same && i < words; i++) is_same = marked_[i] == (read->bitmap[i] | written->bitmap[i]);
  if (is_same) return;
  tree_ = tree;
  is_all_ = is_all;
  has_filter_ = has_filter;
  marked_.resize(words);
  for (uint i = 0; i < words; i++) marked_[i] = read->bitmap[i] | written->bitmap[i];
  plan();
}

void WantedFields::plan() {
  const TABLE *table = encoder_->table();
  wanted_ = {};
  const KEY *primary = primary_key_of(table);
  if (!is_all_) {
    for (uint i = 0; i < table->s->fields; i++)
      wanted_.fields.push_back(bitmap_is_set(table->read_set, i) || bitmap_is_set(table->write_set, i));
    // A row filter compares positions, which are made from the primary key.
    if (primary && has_filter_) want_key(primary);
    if (table->part_info) {
      // The server merges partitions by these keys, even in backward reads, which do not mark the fields.
      if (primary) want_key(primary);
      if (tree_ != 0) want_key(key_of_tree());
    }
    pass_others(table, encoder_->share().record.form.layout, &wanted_);
  }
  key_targets_.clear();
  primary_targets_.clear();
  wants_covered_ = false;
  if (tree_ == 0) return;
  const std::vector<Index> &indexes = encoder_->share().indexes;
  const Index &index = indexes[tree_];
  key_targets_ = index.codec.targets(table, key_of_tree(), wanted_);
  if (primary) primary_targets_ = indexes[0].codec.targets(table, primary, wanted_);
  for (uint field : index.covered) wants_covered_ = wants_covered_ || wanted_.has(field);
}

/** Returns the key of a tree other than the primary one. */
const KEY *WantedFields::key_of_tree() const {
  const TABLE *table = encoder_->table();
  uint number = table->s->keys;
  while (number-- > 0 && tree_of(table, number) != tree_) {}
  return &table->key_info[number];
}

void WantedFields::want_key(const KEY *key) {
  for (uint i = 0; i < key->user_defined_key_parts; i++) wanted_.fields[key->key_part[i].fieldnr - 1] = true;
}

bool WantedFields::decode_row(std::string_view row, uchar *record) const {
  return unpack_row(encoder_->table(), encoder_->share().record.form, row, record, wanted_);
}

bool WantedFields::decode_entry(const Index &index, frondb_slice key, frondb_slice primary, std::string_view covered,
                                uchar *record) const {
  if (index.is_clustering) {
    if (!decode_row(covered, record)) return false;
  } else if (wants_covered_ && !unpack_fields(encoder_->table(), index.covered, index.widened, covered, record)) {
    return false;
  }
  my_ptrdiff_t offset = record - encoder_->table()->record[0];
  return index.codec.decode(key_targets_, view(key), offset) &&
         encoder_->share().indexes[0].codec.decode(primary_targets_, view(primary), offset);
}

}  // namespace fron
