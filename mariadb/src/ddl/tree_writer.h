/* SPDX-License-Identifier: GPL-2.0-only

   Writes to a tree that no other thread uses, in batches that each commit separately. */

#ifndef FRONDB_DDL_TREE_WRITER_H
#define FRONDB_DDL_TREE_WRITER_H

#include <string>
#include <string_view>
#include <unordered_set>

#include "engine/api.h"

namespace fron {

class TreeWriter {
 public:
  explicit TreeWriter(frondb_tree *tree) : tree_(tree) {}
  Error begin();
  /** Puts an entry into the batch. `is_known`: has() must find the key even before the batch is written. */
  Error put(const std::string &key, std::string_view value, bool is_known);
  Error remove(const std::string &key);
  /** Finds out whether the tree, or a put with `is_known` that is not yet written, has the key. Not for keys whose
      removal is not yet written. */
  Error has(const std::string &key, bool *found);
  /** Writes the open batch. */
  Error finish();

 private:
  Error wrote(size_t bytes);

  frondb_tree *tree_;
  Batch batch_;
  Buffer buffer_;
  uint64_t bytes_ = 0;
  size_t entries_ = 0;
  std::unordered_set<std::string> known_;
};

}  // namespace fron

#endif
