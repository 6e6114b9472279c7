/* SPDX-License-Identifier: GPL-2.0-only

   FULLTEXT and SPATIAL indexes, which FronDB does not support. The server's own errors do not say what to do instead.
   So the handler of a table that is being defined claims to support these indexes (ha_frondb::table_flags()), and the
   engine refuses them here. */

#ifndef FRONDB_DDL_REFUSED_INDEXES_H
#define FRONDB_DDL_REFUSED_INDEXES_H

#include <my_global.h>
#include <sql_class.h>

namespace fron {

/** Returns whether the table has an index that FronDB does not support. Raises the error for the user. */
bool refuses_indexes(const TABLE *table);

}  // namespace fron

#endif
