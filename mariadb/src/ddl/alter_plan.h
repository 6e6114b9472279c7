/* SPDX-License-Identifier: GPL-2.0-only

   The steps that an ALTER TABLE needs: copy the rows, rewrite them while writers continue, build indexes, check
   columns, or change only the definition. Decides only; handler/alter.cc acts. */

#ifndef FRONDB_DDL_ALTER_PLAN_H
#define FRONDB_DDL_ALTER_PLAN_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include <vector>

#include "ddl/columns.h"
#include "table/share.h"

namespace fron {

struct AlterPlan {
  /** Why the server must copy the rows; null if it need not. */
  const char *copied_because = nullptr;
  OldNumbers old;
  /** Whether rows are rewritten and all indexes built. */
  bool rebuilds = false;
  /** Whether existing trees get another codec or block size. */
  bool changes_packing = false;
  /** Numbers of the altered table's indexes to build, except the tree of rows. */
  std::vector<uint> built;
  /** Numbers, in the altered table, of columns that become NOT NULL. */
  std::vector<uint> not_null;
  /** Whether NULLs of these columns become the zero value of the column's type, with a warning; otherwise they are an
      error. */
  bool converts_null = false;

  /** Returns whether rows are read, so that writers must keep a journal. */
  bool reads_rows() const { return rebuilds || !built.empty() || !not_null.empty(); }
};

/** Determines the steps of an ALTER of `table`. Uses record[0] of `altered`. */
AlterPlan plan_alter(THD *thd, const TABLE *table, TABLE *altered, const Alter_inplace_info *info, const Share &share);

/** For a statement that copies: returns whether the new table has exactly the stored values of the old one, with no
    column converted and no new date computed. */
bool copies_values(const TABLE *altered, const Alter_inplace_info *info);

/** Returns the number of a TABLE's index of this name; MAX_KEY if there is none. */
uint index_of_name(const TABLE *table, const char *name);

/** Returns the old name of an index of the new definition. */
const char *old_name(const Alter_inplace_info *info, const char *name);

/** Returns whether a part of a key is a virtual column. */
bool has_virtual_part(const TABLE *altered, const KEY &key);

/** Returns whether the statement adds an index of this name, perhaps replacing another one. */
bool is_added(const Alter_inplace_info *info, const char *name);

}  // namespace fron

#endif
