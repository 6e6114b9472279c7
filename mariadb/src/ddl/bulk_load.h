/* SPDX-License-Identifier: GPL-2.0-only

   Loads rows with a bulk load of the engine, which sorts them outside of the trees and attaches all of them
   atomically: the rows of a new table, which a statement copies from another table or a query, or the entries of a new
   index.

   The load is not part of the connection's transaction. So it is used only for trees that no other connection reads and
   that are dropped if the statement fails. All partitions of a table share one load. Used by one thread at a time. */

#ifndef FRONDB_DDL_BULK_LOAD_H
#define FRONDB_DDL_BULK_LOAD_H

#include <string>
#include <string_view>
#include <vector>

#include "engine/api.h"

class ha_frondb;

namespace fron {

class Load {
 public:
  Load() = default;
  ~Load();

  /** Begins the load. `waits_for` is the durability of the rows when finish() returns. */
  Error begin(frondb_durability waits_for);
  /** Adds a handler that puts rows into this load. */
  void join(ha_frondb *handler) { handlers_.push_back(handler); }
  Error put(frondb_tree *tree, std::string_view key, std::string_view value);

  /** Called by a handler that has no more rows. Returns whether it was the last handler. */
  bool leave() { return ++left_ == handlers_.size(); }
  /** Attaches the rows to their trees. Sets `has_duplicates` if a key was put twice; its last value is stored. */
  Error finish(frondb_progress progress, void *user_data, bool *has_duplicates);
  /** Finds a key that was put twice, and the number of its tree. */
  Error duplicate(uint64_t *tree, std::string *key);
  const std::vector<ha_frondb *> &handlers() const { return handlers_; }

 private:
  Bulk bulk_;
  BulkWriter writer_;
  std::vector<ha_frondb *> handlers_;
  size_t left_ = 0;
};

}  // namespace fron

#endif
