/* SPDX-License-Identifier: GPL-2.0-only

   See ha_frondb.h. Here: statements begin, locks and hints of the server, errors. */

#include "ha_frondb.h"

#include <key.h>

#include "frondb_error.h"
#include "frondb_txn.h"

using namespace fron;

int ha_frondb::begin_statement(THD *thd, bool writes) {
  if (is_sql_handler_) park();
  connection_ = Connection::of(thd);
  return connection_->begin_statement(thd, writes);
}

int ha_frondb::external_lock(THD *thd, int type) {
  return type == F_UNLCK ? 0 : begin_statement(thd, type == F_WRLCK);
}

int ha_frondb::start_stmt(THD *thd, thr_lock_type type) {
  return begin_statement(thd, type >= TL_WRITE_ALLOW_WRITE);
}

THR_LOCK_DATA **ha_frondb::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) {
  if (type != TL_IGNORE) {
    bool writes = type >= TL_WRITE_ALLOW_WRITE;
    row_lock_ = writes ? FRONDB_LOCK_EXCLUSIVE
                : type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED ? FRONDB_LOCK_SHARED
                                                                                   : FRONDB_LOCK_NONE;
    row_wait_ = type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED ? FRONDB_SKIP_LOCKED : FRONDB_WAIT;
    if (lock_.type == TL_UNLOCK) {
      // Rows are locked, not tables, but where the user asked for that.
      bool keeps = thd_in_lock_tables(thd) && thd_sql_command(thd) == SQLCOM_LOCK_TABLES;
      if (writes && type <= TL_WRITE && !keeps) type = TL_WRITE_ALLOW_WRITE;
      if (type == TL_READ_NO_INSERT && !keeps) type = TL_READ;
      lock_.type = type;
    }
  }
  *to++ = &lock_;
  return to;
}

int ha_frondb::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_KEYREAD: key_read_ = true; break;
    case HA_EXTRA_NO_KEYREAD: key_read_ = false; break;
    default: break;
  }
  return 0;
}

void ha_frondb::print_error(int error, myf flag) {
  // The engine has rolled all of it back, so the server must not go on with the rest.
  if (error == HA_ERR_LOCK_DEADLOCK) ha_thd()->mark_transaction_to_rollback(true);
  handler::print_error(error, flag);
}

bool ha_frondb::get_error_message(int error, String *text) {
  message(error, text);
  return error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT;
}
