/* SPDX-License-Identifier: GPL-2.0-only

   The folder of the database, in the server's data directory.

   The server treats each folder there as a database. It ignores only names that begin like its temporary
   tables, and names in `ignore_db_dirs`, to which a running server (INSTALL SONAME) cannot add and which is empty
   without the plugin. Hence the prefix `#sql`: the folder is never listed or dumped as a database, with or without the
   plugin. */

#ifndef FRONDB_ENGINE_FOLDER_H
#define FRONDB_ENGINE_FOLDER_H

#include <string>

namespace fron {

constexpr const char *DATABASE_DIR = "#sql-frondb";

/** The folder's name in earlier versions. */
constexpr const char *EARLIER_DATABASE_DIR = "#frondb";

/** Renames the folder of an earlier version, if there is one, to its present name, before the database is opened.
    Returns why that failed; an empty string if there is no such folder any more. */
std::string take_earlier_folder();

/** Returns why `path` cannot be the folder of the log; an empty string if it can. A folder in the data directory
    would be listed and dumped as a database. If it already has a log, this function only writes a warning, so that the
    server still starts after an upgrade. */
std::string refuse_log_dir(const char *path);

}  // namespace fron

#endif
