/* SPDX-License-Identifier: GPL-2.0-only

   Encodes the keys, rows and index entries of one TABLE, as its handler reads and writes them. */

#ifndef FRONDB_TABLE_ROW_ENCODER_H
#define FRONDB_TABLE_ROW_ENCODER_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "table/share.h"

namespace fron {

class RowEncoder {
 public:
  void open(TABLE *table, const Share *share);

  TABLE *table() const { return table_; }
  const Share &share() const { return *share_; }
  /** Returns the number of trees of the table: one for each index, and one for rows with a hidden key. */
  size_t trees() const { return share_->indexes.size(); }
  bool is_primary(uint index) const { return !share_->has_hidden_key && index == table_->s->primary_key; }
  const Index &index(uint number) const { return share_->indexes[tree_of(table_, number)]; }
  frondb_tree *tree(uint index) const { return this->index(index).tree.get(); }
  frondb_tree *rows() const { return share_->indexes[0].tree.get(); }

  /** Appends the key of a row in an index. Returns whether a part of the key is NULL. */
  bool append_key(uint index, const uchar *record, std::string *to);
  /** Appends the encoding of the first `length` bytes of a key image: the beginning of a search for it. */
  void append_image(uint index, const uchar *image, uint length, std::string *to) const;
  /** Replaces `to` by the encoded row. */
  void encode_row(const uchar *record, std::string *to) const;
  /** Makes the key and the value of a row's entry in an index other than the primary one. Returns whether no other
      row may have the key. */
  bool entry(uint index, const uchar *record, const std::string &primary, std::string *key, std::string *value);
  /** Returns the error for a row or entry that cannot be decoded, and names its tree in the server's log. */
  int damaged(uint tree) const;

 private:
  TABLE *table_ = nullptr;
  const Share *share_ = nullptr;
  /** Scratch memory for the server's key image. */
  std::vector<uchar> image_;
};

}  // namespace fron

#endif
