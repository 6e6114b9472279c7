/* SPDX-License-Identifier: GPL-2.0-only

   Locks on tables for foreign keys. A statement that writes to a child has no lock of the server on the parent, and a
   check reads trees of the parent that a change of the parent's definition replaces. So each transaction holds the
   parent's fence in shared mode from its first check on, and a statement that replaces the trees, or adds a foreign
   key, holds it exclusively meanwhile.

   The fences are row locks on the tables' names in a tree without rows, so that deadlocks with other locks are
   found. */

#ifndef FRONDB_TXN_FENCE_H
#define FRONDB_TXN_FENCE_H

#include <my_global.h>
#include <mysql/plugin.h>

#include <set>
#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

class Connection;

/** Takes the fence of a table in shared mode, until the transaction ends. Returns an HA_ERR_ number. */
int hold_fence(Connection *connection, const std::string &parent);

/** Fences that a change of definitions holds, until the object is destroyed. */
class FenceHolder {
 public:
  /** Takes the fences of these tables exclusively: waits for every transaction that holds one of them. Skips tables of
      an earlier call, also if that call failed, so that a statement can undo what it has done without a wait and after
      a KILL. */
  int take(MYSQL_THD thd, const std::vector<std::string> &tables);

 private:
  int begin(MYSQL_THD thd);

  Txn txn_;
  /** The tables of all calls. */
  std::set<std::string> tables_;
};

}  // namespace fron

#endif
