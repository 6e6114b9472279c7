/* SPDX-License-Identifier: GPL-2.0-only

   See handler/profile.h. */

#include "handler/profile.h"

#include <sql_class.h>

namespace fron {

void Profiled::add() {
  frondb_read_profile profile;
  frondb_profile_end(&profile);
  stats_->pages_accessed += profile.cached_blocks + profile.blocks;
  stats_->pages_read_count += profile.reads;
  stats_->pages_read_time += ulonglong(double(profile.read_nanos) * timer_tracker_frequency() / 1e9);
}

}  // namespace fron
