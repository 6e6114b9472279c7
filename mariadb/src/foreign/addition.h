/* SPDX-License-Identifier: GPL-2.0-only

   Foreign keys that an ALTER TABLE adds while other connections write both tables.

     begin      no statement uses the child: from now on its writers check the parent, and writers of the parent record
                keys that are removed
     validate   writers continue: at a snapshot that is taken when older transactions have ended, each row must have its
                parent
     finish     no statement uses the child, and no transaction that has written the parent is open: keys that were
                removed must have no child

   So every row is checked, by its writer or by validate(), and every removed parent by finish(). No lock is held during
   a long scan. The dictionary records nothing before the ALTER's commit, so a crash undoes the addition. */

#ifndef FRONDB_FOREIGN_ADDITION_H
#define FRONDB_FOREIGN_ADDITION_H

#include <my_global.h>
#include <sql_class.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dictionary/foreign_keys.h"
#include "engine/api.h"
#include "txn/fence.h"

namespace fron {

class Share;

class ForeignKeyAddition {
 public:
  explicit ForeignKeyAddition(const std::vector<ForeignKeyPtr> &keys);
  ~ForeignKeyAddition() { end(); }

  void begin();
  /** Checks the rows of `table`, whose first record it uses. Reports a row without a parent as an error. */
  int validate(THD *thd, TABLE *table, const Share &share);
  /** Takes the parents' fences (txn/fence.h), which this object holds until it is destroyed, and checks the recorded
      keys. `open` opens the tree of an index of the child, as the ALTER leaves it. */
  int finish(THD *thd, const std::function<Error(const std::string &, Tree *)> &open);
  /** Ends the checks by writers, except the checks of foreign keys in the dictionary. */
  void end();

 private:
  std::vector<ForeignKeyPtr> keys_;
  bool is_begun_ = false;
  FenceHolder fences_;
};

}  // namespace fron

#endif
