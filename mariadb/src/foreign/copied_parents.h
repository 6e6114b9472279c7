/* SPDX-License-Identifier: GPL-2.0-only

   While an ALTER copies a table and adds a foreign key to the table itself, a row may be copied before its parent,
   which then is only in the old table. The server lets no other connection write to the old table meanwhile. */

#ifndef FRONDB_FOREIGN_COPIED_PARENTS_H
#define FRONDB_FOREIGN_COPIED_PARENTS_H

#include <my_global.h>
#include <sql_class.h>

#include <vector>

#include "dictionary/foreign_key.h"
#include "engine/api.h"
#include "foreign/column_key.h"

namespace fron {

class CopiedParents {
 public:
  /** Opens the index of the old table that has the parents. Leaves it closed if rows of the old table may be missing in
      the new one, or have other values there. */
  int open(THD *thd, const ForeignKey &key);
  explicit operator bool() const { return bool(tree_); }
  /** Sets `found` to whether the old table has the parent of a row with this key image. */
  int find(const ColumnKey &columns, const std::vector<uchar> &image, bool *found) const;

 private:
  Tree tree_;
  KeySide side_;
};

}  // namespace fron

#endif
