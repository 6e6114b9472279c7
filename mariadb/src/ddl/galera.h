/* SPDX-License-Identifier: GPL-2.0-only

   Galera's clusters: they replicate the definition of a table of any engine, and the rows of InnoDB's alone. */

#ifndef FRONDB_DDL_GALERA_H
#define FRONDB_DDL_GALERA_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

namespace fron {

/** Whether a statement would make a table whose definition all nodes of a cluster get, and whose rows none but
    this. The user has been told so. */
bool is_refused_in_cluster(MYSQL_THD thd, const HA_CREATE_INFO *info);

}  // namespace fron

#endif
