/* SPDX-License-Identifier: GPL-2.0-only

   What a table's reads cost, for ANALYZE FORMAT=JSON and the slow query log. The server's names are InnoDB's: a page is a
   block here. */

#ifndef FRONDB_HANDLER_PROFILE_H
#define FRONDB_HANDLER_PROFILE_H

#include <my_global.h>
#include <handler.h>

#include "engine/api.h"

namespace fron {

/** Lives during one call of the engine, and adds its cost to the table's. Costs nothing unless the statement asks. Calls
    that are profiled must not contain each other. */
class Profiled {
 public:
  explicit Profiled(ha_handler_stats *stats) : stats_(stats) {
    if (stats_) frondb_profile_begin();
  }
  ~Profiled() {
    if (stats_) add();
  }
  Profiled(const Profiled &) = delete;
  Profiled &operator=(const Profiled &) = delete;

 private:
  void add();

  ha_handler_stats *stats_;
};

}  // namespace fron

#endif
