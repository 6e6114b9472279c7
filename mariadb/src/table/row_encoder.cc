/* SPDX-License-Identifier: GPL-2.0-only

   See table/row_encoder.h. */

#include "table/row_encoder.h"

#include <algorithm>

#include "engine/errors.h"

namespace fron {

void RowEncoder::open(TABLE *table, const Share *share) {
  table_ = table;
  share_ = share;
  uint longest = 0;
  for (uint k = 0; k < table->s->keys; k++) longest = std::max(longest, table->key_info[k].key_length);
  image_.resize(longest + 8);
}

bool RowEncoder::append_key(uint index, const uchar *record, std::string *to) {
  KEY *key = &table_->key_info[index];
  copy_key(table_, index, record, key->key_length, image_.data());
  append_image(index, image_.data(), key->key_length, to);
  return KeyCodec::has_null(key, image_.data(), key->key_length);
}

void RowEncoder::append_image(uint index, const uchar *image, uint length, std::string *to) const {
  this->index(index).codec.encode(&table_->key_info[index], image, length, to);
}

void RowEncoder::encode_row(const uchar *record, std::string *to) const {
  to->clear();
  pack_row(table_, share_->record.form.layout, record, to);
}

bool RowEncoder::entry(uint number, const uchar *record, const std::string &primary, std::string *key,
                       std::string *value) {
  const Index &in = index(number);
  key->clear();
  bool is_unique = !append_key(number, record, key) && in.is_unique;
  in.finish_entry(table_, share_->record.form.layout, record, primary, is_unique, key, value);
  return is_unique;
}

int RowEncoder::damaged(uint tree) const {
  const char *index = "(rows)";
  for (uint k = 0; k < table_->s->keys; k++)
    if (tree_of(table_, k) == tree) index = table_->key_info[k].name.str;
  return ha_damaged(table_->s->normalized_path.str, index);
}

}  // namespace fron
