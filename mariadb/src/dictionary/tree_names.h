/* SPDX-License-Identifier: GPL-2.0-only

   Maps trees of the engine to tables and indexes, and shows their keys, for status pages and the information schema.
   Open tables are listed with the readers of their keys. For other tables the dictionary has the names, and keys are
   shown as bytes. */

#ifndef FRONDB_DICTIONARY_TREE_NAMES_H
#define FRONDB_DICTIONARY_TREE_NAMES_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/key_text.h"
#include "engine/api.h"

namespace fron {

/** The names of an index. The partition is empty if the table has none. */
struct IndexName {
  /** Takes the names from the table's key in the dictionary, "db/t#P#p0". */
  IndexName(const std::string &key, const std::string &index);
  /** Returns "db.t.index", with the partition after the table: "db.t(p).index". */
  std::string text() const;

  std::string database, table, partition, index;
};

/** The names of an index, and the reader of its keys. */
struct IndexShape {
  IndexName name;
  KeyReader reader;
};

/** Indexes by the numbers of their trees. */
using TreeShapes = std::map<uint64_t, std::shared_ptr<const IndexShape>>;

/** Lists an open table while the object exists. */
class Listing {
 public:
  explicit Listing(TreeShapes shapes);
  ~Listing();
  Listing(const Listing &) = delete;
  Listing &operator=(const Listing &) = delete;

 private:
  std::vector<uint64_t> trees_;
};

/** Names trees by their numbers: trees of tables that were open when this object was made, and trees of other tables
    from the dictionary. Used by one thread. */
class TreeNames {
 public:
  TreeNames();
  /** Finds the index of a tree; null for a tree that belongs to no table. Reads the dictionary once, for the first
      tree that belongs to no open table. */
  std::shared_ptr<const IndexShape> find(uint64_t tree);
  /** Returns the names of a table's AUTO_INCREMENT counter, as if it were an index. Null for a table that was
      dropped. */
  std::shared_ptr<const IndexShape> counter_of(uint64_t table);

 private:
  Error read_dictionary();

  TreeShapes shapes_;
  bool has_read_ = false;
};

}  // namespace fron

#endif
