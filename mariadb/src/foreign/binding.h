/* SPDX-License-Identifier: GPL-2.0-only

   Finds the index of a table that serves a foreign key. */

#ifndef FRONDB_FOREIGN_BINDING_H
#define FRONDB_FOREIGN_BINDING_H

#include <my_global.h>
#include <sql_class.h>

#include <memory>
#include <string>
#include <vector>

#include "dictionary/foreign_key.h"

namespace fron {

/** The reason why a table has no index for the columns of a foreign key. */
struct BindingFault {
  enum Reason { None, NoIndex, PrefixOnly, TypesDiffer, NoPrimaryKey } reason = NoIndex;
  /** The number of the column, if the reason is about a column. */
  size_t column = 0;
  /** The table's own spelling of the column. */
  std::string own_column;
};

/** Binds one side to an index whose first parts are the columns, completely and in their order: the index that the side
    is already bound to, or else the first one. For a parent, the columns of the primary key count as the last parts of
    an index that is not unique. `types`, if not null, are the parts of the other side, which must have the same types.
    Returns false with a reason if there is no such index. */
bool bind_side(const TABLE *table, bool is_parent, const std::vector<std::string> &columns,
               const std::vector<PartShape> *types, KeySide *side, BindingFault *fault);

/** Returns whether a row of the table is an old version. */
bool is_history(const TABLE *table, const uchar *record);

/** Returns the number of the index that a side uses in an open table; MAX_KEY if the table has no index of that
    name. */
uint index_of(const TABLE *table, const KeySide &side);

/** Returns the field of this name, or null. */
Field *field_of(const TABLE *table, const std::string &name);

/** A table's definition, opened without its engine. */
class Definition {
 public:
  ~Definition();
  /** Reads the definition of a table by its key in the dictionary. Returns false if it has no readable definition. */
  bool open(THD *thd, const std::string &key);
  const TABLE *table() const { return &table_; }

 private:
  std::string path_, database_, name_;
  TABLE_SHARE share_;
  TABLE table_;
  bool has_share_ = false, is_open_ = false;
};

}  // namespace fron

#endif
