/* SPDX-License-Identifier: GPL-2.0-only

   The fields that a statement wants of the rows and entries it reads, and how they are decoded; other fields are
   skipped. */

#ifndef FRONDB_HANDLER_WANTED_FIELDS_H
#define FRONDB_HANDLER_WANTED_FIELDS_H

#include <my_global.h>
#include <sql_class.h>

#include <string_view>
#include <vector>

#include "table/row_encoder.h"

namespace fron {

class WantedFields {
 public:
  void open(const RowEncoder *encoder);

  /** Determines the fields of a tree that the statement wants: all fields, or the fields that the server has marked
      and the fields that a row filter needs. Cheap if the arguments and the marked fields are the same as in the
      last call, even of an earlier statement. All other inputs are fixed while the table is open. */
  void find(uint tree, bool is_all, bool has_filter);

  /** Decodes the wanted fields of a row. Returns false if the row is damaged. */
  bool decode_row(std::string_view row, uchar *record) const;
  /** Decodes the wanted fields that an entry of the index has: the fields of its key and of the primary key, and the
      fields that the entry stores because they cannot be decoded from the keys. Returns false if the entry is
      damaged. */
  bool decode_entry(const Index &index, frondb_slice key, frondb_slice primary, std::string_view covered,
                    uchar *record) const;

 private:
  void plan();
  const KEY *key_of_tree() const;
  void want_key(const KEY *key);

  const RowEncoder *encoder_ = nullptr;
  Wanted wanted_;
  KeyCodec::Targets key_targets_, primary_targets_;
  bool wants_covered_ = false;

  // The arguments of the call of find() that has set the fields above.
  uint tree_ = ~0u;
  bool is_all_ = false;
  bool has_filter_ = false;
  std::vector<my_bitmap_map> marked_;
};

}  // namespace fron

#endif
