/* SPDX-License-Identifier: GPL-2.0-only

   The folder of the database, in the server's data directory.

   The server takes each folder there for a database, and leaves out only names that begin like those of its temporary
   tables, and names in `ignore_db_dirs`, to which a running server (INSTALL SONAME) cannot add and which is empty without the
   plugin. Hence the prefix `#sql`: the folder is never listed or dumped as a database, with the plugin or without it. */

#ifndef FRONDB_ENGINE_FOLDER_H
#define FRONDB_ENGINE_FOLDER_H

#include <string>

namespace fron {

constexpr const char *DATABASE_DIR = "#sql-frondb";

/** Its name in earlier versions. */
constexpr const char *EARLIER_DATABASE_DIR = "#frondb";

/** Gives a folder of an earlier version its present name, before the database is opened. Returns why that is impossible; an
    empty string if the folder has its name, or there is none. */
std::string take_earlier_folder();

/** Why `path` cannot be the folder of the log; an empty string if it can. A folder in the data directory would be listed and
    dumped as a database. One that has a log already is only warned of, so that an upgrade does not stop a server. */
std::string refuse_log_dir(const char *path);

}  // namespace fron

#endif
