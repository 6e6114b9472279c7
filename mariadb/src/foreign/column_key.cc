/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/column_key.h. */

#include "foreign/column_key.h"

#include "codec/row.h"
#include "foreign/binding.h"

namespace fron {
namespace {

/** Returns a key part for a whole field, as the server makes it for an index. */
KEY_PART_INFO part_of(TABLE *table, Field *field) {
  KEY_PART_INFO part{};
  part.field = field;
  part.fieldnr = uint16(field->field_index + 1);
  part.offset = uint(field->ptr - table->record[0]);
  part.length = uint16(field->key_length());
  part.key_part_flag = uint16(field->key_part_flag());
  part.type = uint8(field->key_type());
  part.store_length = part.length;
  if (field->real_maybe_null()) {
    part.null_bit = field->null_bit;
    part.null_offset = uint(field->null_ptr - table->record[0]);
    part.store_length += HA_KEY_NULL_LENGTH;
  }
  if (part.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART)) part.store_length += HA_KEY_BLOB_LENGTH;
  return part;
}

}  // namespace

std::shared_ptr<ColumnKey> ColumnKey::make(TABLE *table, const std::vector<std::string> &columns) {
  std::vector<KEY_PART_INFO> parts;
  for (const std::string &column : columns) {
    Field *field = field_of(table, column);
    if (!field) return nullptr;
    parts.push_back(part_of(table, field));
  }
  return std::shared_ptr<ColumnKey>(new ColumnKey(table, std::move(parts)));
}

ColumnKey::ColumnKey(TABLE *table, std::vector<KEY_PART_INFO> parts) : table_(table), parts_(std::move(parts)) {
  key_.table = table;
  key_.key_part = parts_.data();
  key_.user_defined_key_parts = key_.usable_key_parts = key_.ext_key_parts = uint(parts_.size());
  for (const KEY_PART_INFO &part : parts_) key_.key_length += part.store_length;
  codec_ = KeyCodec(&key_);
}

void ColumnKey::image_of(const uchar *record, std::vector<uchar> *image) {
  image->assign(key_.key_length, 0);
  copy_columns(table_, &key_, record, key_.key_length, image->data());
}

}  // namespace fron
