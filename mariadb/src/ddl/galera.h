/* SPDX-License-Identifier: GPL-2.0-only

   Galera replicates the definitions of tables of all engines, but only the rows of InnoDB. */

#ifndef FRONDB_DDL_GALERA_H
#define FRONDB_DDL_GALERA_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

namespace fron {

/** Returns whether a statement would make a table whose definition reaches all nodes of a cluster, but whose rows
    stay on this node. Raises the error for the user. */
bool is_refused_in_cluster(MYSQL_THD thd, const HA_CREATE_INFO *info);

}  // namespace fron

#endif
