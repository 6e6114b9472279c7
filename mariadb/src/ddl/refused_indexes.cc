/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/refused_indexes.h. */

#include "ddl/refused_indexes.h"

#include <mysqld_error.h>

#include "engine/server.h"

namespace fron {
namespace {

/** Raises an error whose text begins with the server's own message. */
void refuse(uint number, const char *kind, const char *what) {
  my_printf_error(number,
                  "The storage engine FronDB doesn't support %s indexes: keep the %s in a second table with "
                  "ENGINE=InnoDB and the same primary key, index it there, and join the two tables",
                  MYF(0), kind, what);
}

}  // namespace

bool refuses_indexes(const TABLE *table) {
  for (uint k = 0; k < table->s->keys; k++) {
    const KEY &key = table->key_info[k];
    if (is_fulltext(key))
      refuse(ER_TABLE_CANT_HANDLE_FT, "FULLTEXT", "text");
    else if (is_spatial(key))
      refuse(ER_TABLE_CANT_HANDLE_SPKEYS, "SPATIAL", "geometry");
    else
      continue;
    return true;
  }
  return false;
}

}  // namespace fron
