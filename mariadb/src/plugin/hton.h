/* SPDX-License-Identifier: GPL-2.0-only

   The engine's one database and the server's view of it: opened when the plugin is loaded, closed
   when the server shuts down. */

#ifndef FRONDB_PLUGIN_HTON_H
#define FRONDB_PLUGIN_HTON_H

#include "engine/api.h"

struct handlerton;

namespace fron {

class Dictionary;

/** The server's handle of this engine. Set before anything else of the plugin is called. */
handlerton *hton();

/** The open database. */
frondb_db *db();

/** The tables there are. */
Dictionary &dictionary();

}  // namespace fron

#endif
