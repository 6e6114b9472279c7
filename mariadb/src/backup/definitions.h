/* SPDX-License-Identifier: GPL-2.0-only

   The server's definitions of FronDB's tables, which a backup needs and the engine does not have: table.frm, the list
   of partitions table.par, and db.opt of the tables' databases. */

#ifndef FRONDB_BACKUP_DEFINITIONS_H
#define FRONDB_BACKUP_DEFINITIONS_H

#include "backup/order.h"

namespace fron {

/** Reads the definitions, as "definitions/db/table.frm" and so on. No statement may change them meanwhile. */
Failure read_definitions(std::vector<AttachedFile> *files);

}  // namespace fron

#endif
