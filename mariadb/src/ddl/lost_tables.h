/* SPDX-License-Identifier: GPL-2.0-only

   Tables of FronDB of which the server has the definition and the engine no rows: what a backup restores that knows
   nothing of FronDB's files.

     data directory   db/table.frm   names the engine
     dictionary       db/table       names the trees with the rows

   The search runs beside the server on a thread of its own: it looks up every definition, and reads the first bytes
   of those that the dictionary lacks, which are the tables of other engines. */

#ifndef FRONDB_DDL_LOST_TABLES_H
#define FRONDB_DDL_LOST_TABLES_H

#include <string>

namespace fron {

/** Begins the search, whose result is a warning in the server's log. Once, when the dictionary is open and no DDL of
    before a crash is left to be finished. */
void look_for_lost_tables();

/** Ends the search if it is under way. Before the dictionary is closed. */
void stop_looking_for_lost_tables();

/** A table's key in the dictionary as statements name the table. */
std::string sql_name(const std::string &key);

/** Tells the user of a statement why a table has no rows, and what to do, as a warning beside the server's error. */
void explain_lost_table(const std::string &name);

/** Whether the definition in a file is that of a table of FronDB, with partitions or not. False for one that cannot
    be read. */
bool is_definition_of_ours(const char *path);

}  // namespace fron

#endif
