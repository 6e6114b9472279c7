/* SPDX-License-Identifier: GPL-2.0-only

   The engine's one database: opened when the plugin is loaded, closed when it is unloaded. Functions that need no
   handle but the database's are here, so that callers need not pass it. */

#ifndef FRONDB_ENGINE_DB_H
#define FRONDB_ENGINE_DB_H

#include <string>

#include "engine/api.h"

namespace fron {

/** Returns the open database; null before open_db() and after close_db(). */
frondb_db *db();

Error open_db(const Options &options);
/** Closes the database and frees the handle, also after an error. */
Error close_db();

// Trees by their names.

Error open_tree(const std::string &name, Tree *tree);
Error create_tree(const std::string &name, frondb_tree_options *options, Tree *tree);
Error drop_tree(const std::string &name);
/** Lists the names of all trees. They point into `list`. */
Error list_trees(List *list, std::vector<frondb_slice> *names);

/** Commits a batch outside of any transaction. */
Error write_batch(const Batch &batch, frondb_durability durability);

/** Waits, for at most `wait_millis` per tree, until every transaction that has written to one of the trees has ended;
    then takes a snapshot that sees their commits. If a transaction has not ended in time: FRONDB_BUSY if it is
    prepared, otherwise FRONDB_LOCK_TIMEOUT or FRONDB_DEADLOCK. */
Error snapshot_behind_writers(const std::vector<frondb_tree *> &trees, uint64_t wait_millis, Snapshot *snapshot);

}  // namespace fron

#endif
