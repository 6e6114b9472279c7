/* SPDX-License-Identifier: GPL-2.0-only

   The trees of the tables of a foreign key, which one side opens and searches without a handler of the other side. */

#ifndef FRONDB_FOREIGN_TREES_H
#define FRONDB_FOREIGN_TREES_H

#include <string>

#include "dictionary/foreign_key.h"
#include "engine/api.h"

namespace fron {

/** Opens the tree of a table's index, or of its rows. Leaves it closed if it does not exist. */
int open_index(const std::string &table, const std::string &index, Tree *tree);
int open_rows(const std::string &table, Tree *tree);

/** Called when no child was found. A transaction that was prepared before the server's last start holds the locks of
    its writes, but not the locks of the parents that it checked. Waits for such a transaction if it has written
    children of the parent, and then sets `found` to whether a child exists, in a current row of `side` if that is
    given. */
int wait_for_prepared(frondb_txn *txn, frondb_tree *children, const std::string &prefix, const KeySide *side, bool *found);

/** Returns whether an entry of a side's index belongs to a current row. */
bool is_current(const KeySide &side, frondb_slice key, frondb_slice value);

/** Locks all keys that begin with `prefix`, existing or not, in shared mode. */
Error lock_prefix(frondb_txn *txn, frondb_tree *tree, const std::string &prefix);

/** Locks a key, existing or not; `found` says whether it exists. */
Error lock_key(frondb_txn *txn, frondb_tree *tree, const std::string &key, frondb_lock mode, bool *found);

/** Sets `found` to whether an entry of a current row begins with `prefix`; locks the entries that it reads, in
    shared mode. Locks no gap: a writer that adds an entry locks the parent's key, as the caller has done. */
Error find_prefix(frondb_txn *txn, frondb_tree *tree, const std::string &prefix, const KeySide &side, bool *found);

}  // namespace fron

#endif
