/* SPDX-License-Identifier: GPL-2.0-only

   Trees that an ALTER builds while other connections write the table: new indexes, and with a rebuild the rows.

     ALTER      snapshot of the rows, all of them --bulk load--> trees
     writers    journal of their writes (ddl/row_journal.h)
     ALTER      journal --> trees; repeated while writers continue, and once more when they are locked out

   Why a journal (rules 13 and 23 of docs/design/rules.md): attached rows are newer than everything written before the
   load ends, so a row that was deleted during the load would come back.

   After each generation of the journal, the trees match the table at that generation's snapshot. First the old entries
   of all changed rows are removed, then the new ones are put; so a key that already exists belongs to another row. */

#ifndef FRONDB_DDL_INDEX_BUILD_H
#define FRONDB_DDL_INDEX_BUILD_H

#include <my_global.h>
#include <sql_class.h>

#include <functional>
#include <string>
#include <vector>

#include "ddl/alter_plan.h"
#include "ddl/row_journal.h"
#include "dictionary/dictionary.h"
#include "engine/api.h"
#include "table/share.h"

namespace fron {

/** A tree being built. */
struct BuiltIndex {
  IndexRecord record;
  Index index;
  /** Number of the index in the altered TABLE; MAX_KEY for rows with a hidden key. */
  uint number = 0;
  bool is_rows = false;
};

/** Provides the entries of rows in the trees that are built; see ddl/altered_rows.h. */
class BuiltRows {
 public:
  virtual ~BuiltRows() = default;
  /** Decodes an image of a row. `is_first`: the present image of this row has not been decoded before, so its
      warnings count. Returns an HA_ERR_ number. */
  virtual int decode(std::string_view primary, std::string_view row, bool is_first) = 0;
  /** Makes the key and the value of the decoded row's entry. Returns whether no other row may have the key. */
  virtual bool entry(size_t index, std::string *key, std::string *value) = 0;
  /** Reports that another row has the key of the decoded row; returns the HA_ERR_ number. */
  virtual int report_duplicate(size_t index) = 0;
};

class IndexBuild {
 public:
  /** Whether the statement was killed; called from time to time. */
  using Killed = std::function<bool()>;

  /** `form` reads the rows of the table with the altered definition. `next_index` numbers the trees. */
  IndexBuild(const Share &share, const TABLE *table, const TABLE *altered, const AlterPlan &plan, const RowForm &form,
             uint32_t *next_index);

  /** The trees to build. If the tree of rows is built, it comes first. */
  std::vector<BuiltIndex> indexes;

  /** Makes the trees and the first journal. */
  Error make_trees(const TABLE *altered);
  const RowJournal &journal() const { return journal_; }
  /** Returns the layout of rows in the new trees. */
  const Layout &layout() const { return layout_; }
  /** Returns the form in which the ALTER reads rows. */
  const RowForm &form() const { return form_; }
  /** Returns the form before the ALTER. */
  const RowForm &form_before() const { return form_before_; }
  /** Returns the fields of rows that the ALTER wants. */
  const Wanted &wanted() const { return wanted_; }

  // For writers.

  /** Records a write to a row, from the two records and primary keys of a writer's TABLE. `before` is null for an
      insert, `after` for a delete. Returns an HA_ERR_ number. */
  int note(frondb_txn *txn, const TABLE *table, const Layout &layout, const uchar *before,
           const std::string &primary_before, const uchar *after, const std::string &primary_after);

  // For the thread that builds. Each function returns an HA_ERR_ number.

  /** Applies the journal, generation by generation, until few changes are left, or until a writer has not ended after
      `wait_millis`; at most ROUNDS_MAX generations. */
  int catch_up(const Killed &killed, uint64_t wait_millis, BuiltRows *rows);
  /** Applies the remaining changes while writers are locked out. Waits at most `wait_millis` for a commit in
      progress. */
  int finish(const Killed &killed, uint64_t wait_millis, BuiltRows *rows);
  /** Ends the build for writers. The caller drops the trees. */
  void give_up() { journal_.end(); }

 private:
  void add(const TABLE *altered, uint number, bool is_rows);
  void want(const TABLE *table, const TABLE *altered, const AlterPlan &plan);
  Error make_tree(frondb_tree_options *options, std::string *name, uint32_t *number, Tree *tree);
  Error make_journal_tree(std::string *name, Tree *tree);
  int apply(frondb_snapshot *at, const Killed &killed, BuiltRows *rows, uint64_t *changes);

  uint64_t table_;
  uint32_t *next_index_;
  RowForm form_, form_before_;
  Layout layout_;
  /** The wanted fields of rows, by their numbers in the altered table, and by their numbers in the table before the
      ALTER. */
  Wanted wanted_, wanted_of_writers_;
  RowJournal journal_;
};

}  // namespace fron

#endif
