/* SPDX-License-Identifier: GPL-2.0-only

   Keeps a table's share valid for all connections after OPTIMIZE TABLE, or CHECK TABLE of a damaged table.

   At the end of these statements mysql_admin_table() marks the share as outdated, which is safe only with a metadata
   lock that excludes all others. OPTIMIZE of an engine with HA_CONCURRENT_OPTIMIZE has no such lock, and neither has
   CHECK. The mark then has these effects:
   - new statements on the table wait until all older ones have ended (ER_LOCK_WAIT_TIMEOUT), or fail with
     ER_LOCK_DEADLOCK;
   - an UPDATE of several tables that must open the table once more, for a trigger or a foreign key, closes its tables and
     opens them again, but its columns still refer to the closed ones: the server crashes
     (Multiupdate_prelocking_strategy::handle_end() does not resolve them again; in 10.11.19).
   Nothing that FronDB changes needs the mark. mysql_admin_table() omits it for a view, so the statement's table
   reference has a view until the table is unlocked. In between, that function reads the view only for results that
   ask for an upgrade, which FronDB does not return after begin(). */

#ifndef FRONDB_HANDLER_SHARE_KEEPER_H
#define FRONDB_HANDLER_SHARE_KEEPER_H

#include <my_global.h>
#include <sql_class.h>
#include <table.h>

namespace fron {

class ShareKeeper {
 public:
  /** Called by the operation. The handlers of partitions share one table reference. A temporary table is not marked. */
  void begin(TABLE *table) {
    TABLE_LIST *reference = table->pos_in_table_list;
    if (!reference || reference->table != table || reference->view || table->s->tmp_table != NO_TMP_TABLE) return;
    reference->view = table->in_use->lex;
    reference_ = reference;
  }

  /** Called when the statement unlocks the table, or within LOCK TABLES when the statement ends. The reference loses
      the table too, as with the mark: if the result cannot be sent, the server uses the table of the reference, which
      is closed by then. */
  void end() {
    if (!reference_) return;
    reference_->view = nullptr;
    reference_->table = nullptr;
    reference_ = nullptr;
  }

 private:
  TABLE_LIST *reference_ = nullptr;
};

}  // namespace fron

#endif
