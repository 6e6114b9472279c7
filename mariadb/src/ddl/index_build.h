/* SPDX-License-Identifier: GPL-2.0-only

   Indexes that are being built while others write the table: how what they write meets what is there.

     ALTER      snapshot of the rows, all of them --bulk load--> tree of the index
     writers    journal: for each key of the index what became of it, in the writer's own transaction
     ALTER      journal --> tree; again while writers go on, the last time when they are kept out

   Why a journal: what a bulk load brings is newer than what was written before it, so a row deleted during the
   load would come back. A journal has one entry a key:

     | flags | length of the key's row, its primary key: if an entry was removed | the new value: if there is one |

   Of a unique key the flags are enough to tell a duplicate from a key that moved from one row to another. A
   generation of journals is closed with all writers' next row in the next one, and read when the
   transactions that wrote to it have ended. No tree of a build is in the dictionary: a crash leaves
   nothing but orphans. */

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
  /** Its definition; fields are those of the altered TABLE, for their numbers. */
  KEY key;
  std::vector<KEY_PART_INFO> parts;
  /** Number in the altered TABLE. */
  uint number = 0;
};

/** A key of two rows, which a unique index cannot have. */
struct Duplicate {
  size_t index = 0;
  /** Primary key of one of the rows. */
  std::string primary;
};

class IndexBuild {
 public:
  /** Whether to stop, with nothing said; asked every now and then. */
  using Killed = std::function<bool()>;

  IndexBuild(uint64_t table, uint32_t *next_index) : table_(table), next_index_(next_index) {}

  std::vector<BuiltIndex> indexes;

  /** Adds an index of the altered TABLE. */
  void add(TABLE *altered, uint number, const Share &share);
  /** Makes the trees of the indexes and the first journals. */
  Error make_trees(const std::vector<TreeOptions> &options);

  // Writers.

  /** A row has a key now. `is_unique`: no other row may have it. */
  Error put(frondb_txn *txn, size_t index, std::string_view key, std::string_view value,
            std::string_view primary, bool is_unique);
  /** A row does not have it any more. */
  Error remove(frondb_txn *txn, size_t index, std::string_view key, std::string_view primary, bool is_unique);

  // The thread that builds.

  /** Brings what was written meanwhile into the trees, until little is left. `duplicate` is filled and
      `found` set if that cannot be. */
  Error catch_up(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found);
  /** The rest, when writers are kept out. FRONDB_BUSY if a prepared transaction has not ended after `wait_millis`. */
  Error finish(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found);
  /** Writers write no more for it. Its trees go when no transaction needs them. */
  void give_up();
  /** Names of the journals that are there. */
  std::vector<std::string> journals() const;

 private:
  struct Journals {
    std::vector<std::string> names;
    std::vector<Tree> trees;
  };
  Error make_tree(frondb_tree_options *options, std::string *name, uint32_t *number, Tree *tree);
  Error make_journals(Journals *made);
  Error close_generation();
  /** What a pass over a generation of journals is told, and finds out. */
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
  /** Shared by writers, for a write to a journal; alone by who closes a generation. */
  mutable std::shared_mutex gate_;
  bool is_over_ = false;
  /** The last one is open. */
  std::vector<Journals> generations_;
  /** So many are in the trees. */
  size_t done_ = 0;
  /** Journals of a generation that could not be made whole. */
  std::vector<std::string> spare_;
};

}  // namespace fron

#endif
