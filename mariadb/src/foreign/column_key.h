/* SPDX-License-Identifier: GPL-2.0-only

   The columns of a foreign key in one TABLE, as a key in the server's form, whether or not an index has it: the index
   may still have to be built. */

#ifndef FRONDB_FOREIGN_COLUMN_KEY_H
#define FRONDB_FOREIGN_COLUMN_KEY_H

#include <my_global.h>
#include <sql_class.h>

#include <memory>
#include <string>
#include <vector>

#include "codec/key.h"

namespace fron {

class ColumnKey {
 public:
  /** Makes the key; null if the table lacks one of the columns. */
  static std::shared_ptr<ColumnKey> make(TABLE *table, const std::vector<std::string> &columns);

  /** Puts the key image of a row into `image`. Two rows have the same image only if all columns have the same bytes. */
  void image_of(const uchar *record, std::vector<uchar> *image);
  bool has_null(const std::vector<uchar> &image) const { return KeyCodec::has_null(&key_, image.data(), key_.key_length); }
  /** Appends the encoding of an index with parts of these shapes. Returns false if the values cannot be in such an
      index. */
  bool encode_as(const std::vector<uchar> &image, const std::vector<PartShape> &shapes, std::string *to) const {
    return codec_.encode_as(&key_, image.data(), shapes, to);
  }
  const KEY_PART_INFO &part(size_t number) const { return parts_[number]; }

 private:
  ColumnKey(TABLE *table, std::vector<KEY_PART_INFO> parts);

  TABLE *table_;
  std::vector<KEY_PART_INFO> parts_;
  KEY key_{};
  KeyCodec codec_;
};

}  // namespace fron

#endif
