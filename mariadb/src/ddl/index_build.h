/* SPDX-License-Identifier: GPL-2.0-only

   Indexes that are built while other connections write the table: how their writes are merged with the loaded rows.

     ALTER      snapshot of the rows, all of them --bulk load--> tree of the index
     writers    journal: for each key of the index its last change, in the writer's own transaction
     ALTER      journal --> tree; repeated while writers go on, and once more when they are locked out

   Why a journal: attached rows are newer than everything written before the load ends, so a row that was deleted
   during the load would come back. A journal has one entry for each key:

     | flags | length of the key's row, its primary key: if an entry was removed | the new value: if there is one |

   For a unique key the flags tell a duplicate from a key that has moved from one row to another. Journals form
   generations. When a generation is closed, writers continue in the next one, and the closed one is read when the
   transactions that have written to it have ended. The dictionary has no tree of a build, so a crash leaves only
   orphaned trees. */

#ifndef FRONDB_DDL_INDEX_BUILD_H
#define FRONDB_DDL_INDEX_BUILD_H

#include <my_global.h>
#include <sql_class.h>

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "dictionary/dictionary.h"
#include "engine/api.h"
#include "table/share.h"

namespace fron {

/** An index being built. */
struct BuiltIndex {
  IndexRecord record;
  Index index;
  /** The definition; its fields belong to the altered TABLE and give their numbers. */
  KEY key;
  std::vector<KEY_PART_INFO> parts;
  /** Number in the altered TABLE. */
  uint number = 0;
};

/** A key that two rows have, in a unique index. */
struct Duplicate {
  size_t index = 0;
  /** Primary key of one of the rows. */
  std::string primary;
};

class IndexBuild {
 public:
  /** Whether the statement was killed; called from time to time. */
  using Killed = std::function<bool()>;

  IndexBuild(uint64_t table, uint32_t *next_index) : table_(table), next_index_(next_index) {}

  std::vector<BuiltIndex> indexes;

  /** Adds an index of the altered TABLE. */
  void add(TABLE *altered, uint number, const Share &share);
  /** Makes the trees of the indexes and the first journals. */
  Error make_trees(const std::vector<TreeOptions> &options);

  // Writers.

  /** Records that a row now has the key. `is_unique`: no other row may have the key. */
  Error put(frondb_txn *txn, size_t index, std::string_view key, std::string_view value,
            std::string_view primary, bool is_unique);
  /** Records that a row no longer has the key. */
  Error remove(frondb_txn *txn, size_t index, std::string_view key, std::string_view primary, bool is_unique);

  // The thread that builds.

  /** Applies the journals to the trees until few changes are left. If a key is a duplicate, fills `duplicate` and sets
      `found`. */
  Error catch_up(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found);
  /** Applies the rest while writers are locked out. FRONDB_BUSY if a prepared transaction has not ended after
      `wait_millis`. */
  Error finish(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found);
  /** Ends the build for writers. Its trees are dropped when no transaction needs them. */
  void give_up();
  /** Names of all journals. */
  std::vector<std::string> journals() const;

 private:
  struct Journals {
    std::vector<std::string> names;
    std::vector<Tree> trees;
  };
  Error make_tree(frondb_tree_options *options, std::string *name, uint32_t *number, Tree *tree);
  Error make_journals(Journals *made);
  Error close_generation();
  /** Arguments and results of a pass over a generation of journals. */
  struct Pass {
    const Killed &killed;
    Duplicate *duplicate;
    bool *found;
    uint64_t entries = 0;
  };
  Error snapshot_of(const Journals &of, uint64_t wait_millis, Snapshot *snapshot);
  Error apply(const Journals &of, frondb_snapshot *at, Pass *pass);
  Error apply_to(size_t index, frondb_tree *journal, frondb_snapshot *at, Pass *pass);
  Error change(frondb_txn *txn, size_t index, std::string_view key, std::string_view primary,
               const std::string_view *value);

  uint64_t table_;
  uint32_t *next_index_;
  /** Held shared for a write to a journal, exclusively to close a generation. */
  mutable std::shared_mutex journal_latch_;
  bool is_over_ = false;
  /** The last generation is open. */
  std::vector<Journals> generations_;
  /** Number of generations that were applied to the trees. */
  size_t done_ = 0;
  /** Journals of an incomplete generation, whose creation has failed. */
  std::vector<std::string> spare_;
};

}  // namespace fron

#endif
