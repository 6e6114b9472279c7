/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/schema_row.h. */

#include "inspect/schema_row.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "engine/db.h"

namespace fron {

bool may_see(MYSQL_THD thd) { return db() && !check_global_access(thd, PROCESS_ACL, true); }

int schema_error(const Error &error) {
  if (error.kind() == FRONDB_CLOSED) return 0;
  my_printf_error(ER_UNKNOWN_ERROR, "FronDB: %s", MYF(0), error.message());
  return 1;
}

}  // namespace fron
