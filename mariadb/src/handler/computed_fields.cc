/* SPDX-License-Identifier: GPL-2.0-only

   See handler/computed_fields.h. */

#include "handler/computed_fields.h"

#include <algorithm>

namespace fron {

void ComputedFields::fill(TABLE *table, const Index &index, uchar *record) {
  blobs_.resize(index.computed.size());
  // An expression may use any field.
  my_ptrdiff_t offset = record - table->record[0];
  for (Field **field = table->field; *field; field++) (*field)->move_field_offset(offset);
  for (size_t i = 0; i < index.computed.size(); i++) {
    Field *field = table->field[index.computed[i].field];
    // Ignore warnings of the expression: they were raised when the row was written.
    table->update_virtual_field(field, true);
    if (!table->part_info || !(field->flags & BLOB_FLAG) || field->is_real_null()) continue;
    // The field keeps the bytes of a blob only until its next computation, and other partitions use the same field.
    auto blob = static_cast<Field_blob *>(field);
    size_t length = std::min<size_t>(blob->get_length(), index.computed[i].length);
    blobs_[i].assign(reinterpret_cast<const char *>(blob->get_ptr()), length);
    blob->set_ptr(uint32(length), reinterpret_cast<uchar *>(blobs_[i].data()));
  }
  for (Field **field = table->field; *field; field++) (*field)->move_field_offset(-offset);
}

}  // namespace fron
