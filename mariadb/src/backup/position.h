/* SPDX-License-Identifier: GPL-2.0-only

   The server's position in its binary log. */

#ifndef FRONDB_BACKUP_POSITION_H
#define FRONDB_BACKUP_POSITION_H

#include <string>

namespace fron {

/** Returns the present position, one line each: "file binlog.000002", "position 342", "gtid 0-1-77"
    (@@gtid_current_pos). Without a binary log the first two lines are missing, without GTIDs the last one. */
std::string replication_position();

}  // namespace fron

#endif
