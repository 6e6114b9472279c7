/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/bulk_load.h. */

#include "ddl/bulk_load.h"

#include "engine/db.h"

namespace fron {

Load::~Load() {
  // Freeing the writer alone does not end the bulk load.
  writer_.reset();
  bulk_.reset();
}

Error Load::begin(frondb_durability waits_for) {
  if (Error error = frondb_db_bulk_load(db(), 0, false, waits_for, bulk_.out())) return error;
  return frondb_bulk_writer_new(bulk_.get(), writer_.out());
}

Error Load::put(frondb_tree *tree, std::string_view key, std::string_view value) {
  return frondb_bulk_writer_put(writer_.get(), tree, slice(key), slice(value));
}

Error Load::finish(frondb_progress progress, void *user_data, bool *has_duplicates) {
  uint64_t duplicates;
  Stats report;
  if (Error error = frondb_bulk_writer_finish(writer_.take())) return error;
  if (Error error = frondb_bulk_finish(bulk_.get(), progress, user_data, report.out())) return error;
  if (Error error = frondb_stats_find(report.get(), "duplicates", &duplicates)) return error;
  *has_duplicates = duplicates > 0;
  return {};
}

Error Load::duplicate(uint64_t *tree, std::string *key) {
  Buffer buffer;
  bool found;
  if (Error error = buffer.make()) return error;
  if (Error error = frondb_bulk_duplicate(bulk_.get(), tree, buffer.get(), &found)) return error;
  if (found) key->assign(buffer.value());
  return {};
}

}  // namespace fron
