/* SPDX-License-Identifier: GPL-2.0-only

   The cost of a table's reads, for ANALYZE FORMAT=JSON and the slow query log. The names are InnoDB's: a page is a
   block here. */

#ifndef FRONDB_HANDLER_PROFILE_H
#define FRONDB_HANDLER_PROFILE_H

#include <my_global.h>
#include <handler.h>

#include "engine/api.h"

namespace fron {

/** Exists during one call of the engine, and adds the cost of the call to the table's statistics. Costs nothing
    unless the statement requests them. Profiled calls must not be nested. */
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
