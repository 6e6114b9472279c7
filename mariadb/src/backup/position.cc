/* SPDX-License-Identifier: GPL-2.0-only

   See backup/position.h. */

#include "backup/position.h"

#include <my_global.h>
#include <sql_class.h>
#include <log.h>
#include <sql_repl.h>

namespace fron {

std::string replication_position() {
  std::string text;
  if (mysql_bin_log.is_open()) {
    LOG_INFO at;
    mysql_bin_log.get_current_log(&at);
    const char *name = at.log_file_name + dirname_length(at.log_file_name);
    text += "file " + std::string(name) + "\nposition " + std::to_string(at.pos) + "\n";
  }
  String gtid;
  if (!rpl_append_gtid_state(&gtid, true) && gtid.length())
    text += "gtid " + std::string(gtid.ptr(), gtid.length()) + "\n";
  return text;
}

}  // namespace fron
