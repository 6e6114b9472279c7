/* SPDX-License-Identifier: GPL-2.0-only

   See engine/db.h. */

#include "engine/db.h"

#include "engine/folder.h"

namespace fron {
namespace {

Db the_db;

}  // namespace

frondb_db *db() { return the_db.get(); }

Error open_db(const Options &options) { return frondb_db_open(DATABASE_DIR, options.get(), the_db.out()); }

Error close_db() {
  Error error = frondb_db_close(the_db.get());
  the_db.reset();
  return error;
}

Error open_tree(const std::string &name, Tree *tree) { return frondb_db_open_tree(db(), name.c_str(), tree->out()); }

Error create_tree(const std::string &name, frondb_tree_options *options, Tree *tree) {
  return frondb_db_create_tree(db(), name.c_str(), options, tree->out());
}

Error drop_tree(const std::string &name) { return frondb_db_drop_tree(db(), name.c_str()); }

Error list_trees(List *list, std::vector<frondb_slice> *names) {
  if (Error error = frondb_db_list_trees(db(), list->out())) return error;
  return list->read(names);
}

Error write_batch(const Batch &batch, frondb_durability durability) {
  return frondb_db_write(db(), batch.get(), durability);
}

Error snapshot_behind_writers(const std::vector<frondb_tree *> &trees, uint64_t wait_millis, Snapshot *snapshot) {
  return frondb_db_snapshot_behind_writers(db(), trees.data(), trees.size(), wait_millis, snapshot->out());
}

}  // namespace fron
