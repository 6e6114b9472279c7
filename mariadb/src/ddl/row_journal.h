/* SPDX-License-Identifier: GPL-2.0-only

   The journal of the writes of other connections to a table while an ALTER reads its rows: each row before and after
   each write, recorded in the writer's own transaction. The ALTER applies the journal to its trees.

     key     the row's primary key (never a prefix of another); number of the write; 0 before or 1 after
     value   the row, with the fields that the ALTER wants

   The number is taken while the writer holds the row's lock, so the images of a row are in the order of its writes,
   and the image before a write equals the image after the previous write. The first and the last image together are
   the change of the row.

   Journals form generations. When a generation is closed, writers continue in the next one; the closed one is read when
   the transactions that wrote to it have ended. The dictionary lists no tree of a journal, so a crash leaves only
   orphaned trees. */

#ifndef FRONDB_DDL_ROW_JOURNAL_H
#define FRONDB_DDL_ROW_JOURNAL_H

#include <atomic>
#include <functional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api.h"

namespace fron {

/** The change of a row, by one write or between two generations. */
struct RowChange {
  std::string_view primary;
  /** The encoded row before and after the change. Null if there was no row before, or if there is none after. */
  const std::string *before, *after;
};

class RowJournal {
 public:
  /** Makes a tree for a journal and returns its name. */
  using MakeTree = std::function<Error(std::string *name, Tree *tree)>;

  explicit RowJournal(MakeTree make_tree) : make_tree_(std::move(make_tree)) {}
  /** Makes the first generation. */
  Error begin() { return add_generation(); }

  // For writers, any number of threads.

  /** Records that a row has been written. */
  Error note(frondb_txn *txn, const RowChange &change);

  // For the thread of the ALTER.

  /** Closes the open generation. */
  Error close();
  /** Returns the tree of the oldest generation that the ALTER has not applied yet. */
  frondb_tree *oldest() const { return generations_[done_].tree.get(); }
  void oldest_is_done() { done_++; }
  bool all_are_done() const { return done_ == generations_.size(); }
  /** Calls `visit` for each row that changed in the oldest generation, at a snapshot, until `visit` returns an
      HA_ERR_ number. */
  int each(frondb_snapshot *at, const std::function<int(const RowChange &)> &visit) const;

  /** Ends the journal: writers record no more. */
  void end();
  /** Returns the names of all trees. */
  std::vector<std::string> names() const;

 private:
  struct Generation {
    std::string name;
    Tree tree;
  };
  Error add_generation();
  Error put(frondb_txn *txn, std::string *key, char which, std::string_view row);

  MakeTree make_tree_;
  std::atomic<uint64_t> writes_{0};
  /** Held shared during a write to the journal, exclusively to close a generation or to end the journal. */
  std::shared_mutex latch_;
  bool is_over_ = false;
  /** The last generation is open. */
  std::vector<Generation> generations_;
  size_t done_ = 0;
};

}  // namespace fron

#endif
