/* SPDX-License-Identifier: GPL-2.0-only

   The engine's one database: opened when the plugin is loaded, closed when the server shuts down. */

#ifndef FRONDB_ENGINE_DB_H
#define FRONDB_ENGINE_DB_H

#include "engine/api.h"

namespace fron {

/** The folder of the database, below the server's data directory. */
constexpr const char *DATABASE_DIR = "#frondb";

/** The open database; null before open_db() and after close_db(). */
frondb_db *db();

Error open_db(const Options &options);
/** Closes the database and frees the handle, also after an error. */
Error close_db();

}  // namespace fron

#endif
