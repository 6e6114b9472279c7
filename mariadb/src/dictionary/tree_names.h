/* SPDX-License-Identifier: GPL-2.0-only

   Which table and index a tree of the engine is, and how its keys are read: for status pages and the
   information schema. Open tables are listed with all that their keys need; of others the dictionary knows
   the names, and their keys are shown as bytes. */

#ifndef FRONDB_DICTIONARY_TREE_NAMES_H
#define FRONDB_DICTIONARY_TREE_NAMES_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/key_text.h"
#include "engine/api.h"

namespace fron {

/** An index by its names. The partition is empty where there is none. */
struct IndexName {
  /** From the table's key in the dictionary, "db/t#P#p0". */
  IndexName(const std::string &key, const std::string &index);
  /** "db.t.index", with the partition behind the table. */
  std::string text() const;

  std::string database, table, partition, index;
};

/** A tree that is an index. */
struct IndexShape {
  IndexName name;
  KeyReader reader;
};

/** Indexes by the numbers of their trees. */
using TreeShapes = std::map<uint64_t, std::shared_ptr<const IndexShape>>;

/** An open table in the list, for as long as this lives. */
class Listing {
 public:
  explicit Listing(TreeShapes shapes);
  ~Listing();
  Listing(const Listing &) = delete;
  Listing &operator=(const Listing &) = delete;

 private:
  std::vector<uint64_t> trees_;
};

/** The trees of tables by their numbers, as of when it was made. Used by one thread. */
class TreeNames {
 public:
  TreeNames();
  /** Null for a tree that is no table's. The dictionary is looked through once, for the first tree that no
      open table has. */
  std::shared_ptr<const IndexShape> find(uint64_t tree);

 private:
  Error look();

  TreeShapes shapes_;
  bool has_looked_ = false;
};

}  // namespace fron

#endif
