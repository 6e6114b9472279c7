/* SPDX-License-Identifier: GPL-2.0-only

   See engine/db.h. */

#include "engine/db.h"

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

}  // namespace fron
