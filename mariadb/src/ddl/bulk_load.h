/* SPDX-License-Identifier: GPL-2.0-only

   The rows of a table that is being made, by a copy of another or of a query: to the engine's bulk loader, which
   sorts them outside of the trees and gives them to the table all at once.

   Only a table that nobody else has seen is loaded so, and that goes if the statement fails: what is loaded is no
   part of the connection's transaction. The partitions of a table have one load. For one thread at a time. */

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

  /** `waits_for`: how durable the rows are when finish() is done. */
  Error begin(frondb_durability waits_for);
  /** A handler that puts rows here. */
  void join(ha_frondb *handler) { handlers_.push_back(handler); }
  Error put(frondb_tree *tree, std::string_view key, std::string_view value);

  /** A handler has no more rows; whether it was the last of them. */
  bool leave() { return ++left_ == handlers_.size(); }
  /** Gives the rows to their trees. `has_duplicates`: a key was put twice, and the last one counts. */
  Error finish(frondb_progress progress, void *user_data, bool *has_duplicates);
  /** A key that was put twice, and the number of its tree. */
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
