/* SPDX-License-Identifier: GPL-2.0-only

   Finds FronDB tables whose definition the server has and whose rows the engine lacks, as after a restore of a backup
   without FronDB's files.

     data directory   db/table.frm   names the engine
     dictionary       db/table       names the trees with the rows

   The search runs in its own thread while the server works. It looks up every definition in the dictionary. If
   the dictionary lacks a definition, the search reads the first bytes of the file, which name the engine; most such
   definitions belong to other engines. */

#ifndef FRONDB_DDL_LOST_TABLES_H
#define FRONDB_DDL_LOST_TABLES_H

#include <string>

namespace fron {

/** Begins the search, which writes a warning to the server's log if it finds tables. Called once, when the dictionary
    is open and DDL that a crash interrupted is finished. */
void search_for_lost_tables();

/** Stops the search if it is running. Called before the dictionary is closed. */
void stop_search_for_lost_tables();

/** Returns the name of a table in SQL, from its key in the dictionary. */
std::string sql_name(const std::string &key);

/** Adds a warning to the server's error that explains why a table has no rows and what to do. */
void explain_lost_table(const std::string &name);

/** Returns whether the file is the definition of a FronDB table, partitioned or not. False if it cannot be read. */
bool is_definition_of_ours(const char *path);

}  // namespace fron

#endif
