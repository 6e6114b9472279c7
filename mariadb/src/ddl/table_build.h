/* SPDX-License-Identifier: GPL-2.0-only

   The statement's side of a build: one ALTER of one table or partition loads the rows at a snapshot into the trees
   (ddl/index_build.h), applies the journal of writers, and reports rows that do not fit. */

#ifndef FRONDB_DDL_TABLE_BUILD_H
#define FRONDB_DDL_TABLE_BUILD_H

#include <my_global.h>
#include <sql_class.h>

#include <memory>
#include <string>
#include <vector>

#include "ddl/altered_rows.h"
#include "ddl/bulk_load.h"
#include "ddl/index_build.h"

namespace fron {

class TableBuild {
 public:
  TableBuild(THD *thd, Share *share, const TABLE *table, TABLE *altered, const AlterPlan &plan, const RowForm &form,
             uint32_t *next_index);
  ~TableBuild() { give_up(); }

  /** Returns the trees, with their records. */
  const std::vector<BuiltIndex> &indexes() const { return build_->indexes; }
  /** Returns the names of the trees of journals. */
  std::vector<std::string> journals() const { return build_->journal().names(); }

  // Each function returns an HA_ERR_ number. It has reported any error of the rows.

  /** Makes the trees, while no statement uses the table; from now on writers keep a journal. */
  int begin();
  /** Loads the rows, and applies the writers' changes, while writers continue. */
  int load();
  /** Applies the remaining changes, while no statement uses the table. */
  int finish();
  /** Ends the build for writers. */
  void give_up();

 private:
  int put_rows(Load *load);
  int report_loaded_twice(Load *load);

  THD *thd_;
  Share *share_;
  TABLE *altered_;
  std::shared_ptr<IndexBuild> build_;
  AlteredRows rows_;
  /** The snapshot at which rows are loaded; later writes are in the journal. */
  Snapshot snapshot_;
};

}  // namespace fron

#endif
