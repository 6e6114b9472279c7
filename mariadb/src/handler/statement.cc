/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: the beginning of statements, table locks, hints of the server, error messages. */

#include "engine/server.h"
#include "handler/ha_frondb.h"

#include <key.h>

#include "ddl/exchange.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/text.h"
#include "txn/fence.h"
#include "txn/connection.h"

using namespace fron;

namespace {

bool is_write(thr_lock_type type) { return type >= TL_WRITE_ALLOW_WRITE; }

bool skips_locked(thr_lock_type type) { return type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED; }

/** Returns whether a statement may copy the rows of a table, or of some of its partitions. */
bool rebuilds(int command) {
  return command == SQLCOM_ALTER_TABLE || command == SQLCOM_CREATE_INDEX || command == SQLCOM_DROP_INDEX ||
         command == SQLCOM_OPTIMIZE;
}

/** Returns whether the rows that a statement reads determine what it writes to other tables. */
bool writes_what_it_reads(int command) {
  switch (command) {
    case SQLCOM_INSERT:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_UPDATE_MULTI:
    case SQLCOM_DELETE:
    case SQLCOM_DELETE_MULTI:
    case SQLCOM_LOAD:
    case SQLCOM_CREATE_TABLE: return true;
    default: return false;
  }
}

/** Returns whether a statement requests TL_READ_NO_INSERT although it writes nothing that depends on the rows: it
    copies or checks them, while the server keeps writers out. */
bool reads_for_itself(int command) {
  switch (command) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE:
    case SQLCOM_ANALYZE:
    case SQLCOM_CHECK:
    case SQLCOM_CHECKSUM:
    case SQLCOM_REPAIR:
    case SQLCOM_FLUSH: return true;
    default: return false;
  }
}

/** Returns whether a replica that repeats the statement from the binary log must read the same rows of a table.
    Called when the table is locked, so `command` is the statement that the client has sent. For the tables of its
    triggers and stored functions the server asks for TL_READ_NO_INSERT if the statement, or one of these, writes and
    is logged as text. A table that is locked for writing, or by LOCK TABLES, may be read by any statement of a
    trigger. */
bool is_repeated(int command, thr_lock_type type) {
  if (is_write(type) || command == SQLCOM_LOCK_TABLES) return true;
  return writes_what_it_reads(command) || (type == TL_READ_NO_INSERT && !reads_for_itself(command));
}

}  // namespace

/** Returns how a statement with this table lock locks rows, at the transaction's isolation level. */
frondb_lock ha_frondb::row_lock_of(THD *thd, thr_lock_type type) const {
  if (is_write(type)) return FRONDB_LOCK_EXCLUSIVE;
  if (type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED) return FRONDB_LOCK_SHARED;
  frondb_isolation isolation = use_.connection->isolation();
  if (isolation == FRONDB_SERIALIZABLE) return FRONDB_LOCK_SHARED;
  // A plain SELECT, also in a stored function, reads the snapshot. Any other statement has the lock that the client's
  // statement needs, because the statements of triggers and functions show only their own command here.
  bool is_plain = type == TL_READ && thd_sql_command(thd) == SQLCOM_SELECT;
  bool repeats = isolation == FRONDB_REPEATABLE_READ && use_.is_repeated && !is_plain;
  return repeats ? FRONDB_LOCK_SHARED : FRONDB_LOCK_NONE;
}

int ha_frondb::begin_statement(THD *thd, thr_lock_type type) {
  // The server does not notify partitions that a HANDLER statement begins.
  use_.is_sql_handler = thd_sql_command(thd) == SQLCOM_HA_READ;
  if (use_.is_sql_handler) position_.park();
  use_.connection = Connection::of(thd);
  if (!use_.connection) return HA_ERR_OUT_OF_MEM;
  if (table->part_info && thd_sql_command(thd) == SQLCOM_ALTER_TABLE) {
    // The statement may be EXCHANGE PARTITION; keep the description for check_if_incompatible_data().
    auto note = [&] {
      use_.connection->partitioned = tree_contents(table);
      return 0;
    };
    if (int error = guarded(note)) return error;
  }
  bool may_lock = type != TL_READ || thd_sql_command(thd) != SQLCOM_SELECT;
  if (int error = use_.connection->begin_statement(thd, may_lock, is_write(type))) return error;
  use_.seen_trees.clear();
  foreign_.begin_statement();
  read_free_.begin_statement();
  // The server announces REPLACE and LOAD DATA .. REPLACE (HA_EXTRA_WRITE_CAN_REPLACE) only if no trigger is involved.
  if (thd->lex->duplicates == DUP_REPLACE) use_.writes_duplicates = true;
  use_.type = type;
  use_.row_lock = row_lock_of(thd, type);
  use_.row_wait = skips_locked(type) ? FRONDB_SKIP_LOCKED : FRONDB_WAIT;
  bool is_new = is_put_aside(share_->name) || (table->part_info && thd_sql_command(thd) == SQLCOM_ALTER_TABLE);
  if (is_new && is_write(type) && rebuilds(thd_sql_command(thd))) {
    auto note = [&] {
      use_.connection->fills(share_->record.number);
      return 0;
    };
    if (int error = guarded(note)) return error;
  }
  // A locking read sees the newest rows, and the row of a sequence is never read at a snapshot.
  if (use_.row_lock != FRONDB_LOCK_NONE || is_sequence()) return 0;
  return share_->changed_at > use_.connection->begun_at() ? check_definition(thd) : 0;
}

/** Called if the definition has changed since the transaction began. Fails if the transaction's snapshot lacks the
    table's rows; otherwise notes which indexes the snapshot lacks, so that index_init() refuses them. */
int ha_frondb::check_definition(THD *thd) {
  if (use_.connection->isolation() != FRONDB_REPEATABLE_READ || table->s->tmp_table != NO_TMP_TABLE) return 0;
  // A statement that creates a table fills it in the same transaction, which may have read the old table before.
  int command = thd_sql_command(thd);
  if (rebuilds(command) || command == SQLCOM_CREATE_TABLE || command == SQLCOM_TRUNCATE) return 0;
  return guarded([&]() -> int {
    if (dictionary().filled_at(share_->record.number) > use_.connection->begun_at()) return HA_ERR_TABLE_DEF_CHANGED;
    if (Error error = dictionary().seen_trees(use_.connection->txn(), share_->name, share_->record, &use_.seen_trees))
      return ha_error(error);
    return !use_.seen_trees.empty() && use_.seen_trees[0] ? 0 : HA_ERR_TABLE_DEF_CHANGED;
  });
}

int ha_frondb::external_lock(THD *thd, int type) {
  if (type == F_UNLCK) {
    share_keeper_.end();
    use_.asked_lock = TL_UNLOCK;
    return 0;
  }
  // If store_lock() was not called before, as for the new table of an ALTER, only `type` is known.
  bool is_known = use_.asked_lock != TL_UNLOCK && is_write(use_.asked_lock) == (type == F_WRLCK);
  // A clone reads entries for another handler, which reads their rows. It must lock as that handler does: entries at
  // the snapshot do not match the newest rows.
  if (use_.is_clone) return begin_statement(thd, use_.type);
  thr_lock_type lock = is_known ? use_.asked_lock : type == F_WRLCK ? TL_WRITE : TL_READ;
  if (!is_known) use_.is_repeated = is_repeated(thd_sql_command(thd), lock);
  return begin_statement(thd, lock);
}

int ha_frondb::start_stmt(THD *thd, thr_lock_type type) { return begin_statement(thd, type); }

THR_LOCK_DATA **ha_frondb::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) {
  if (type == TL_IGNORE) return to;
  use_.asked_lock = type;
  use_.is_repeated = is_repeated(thd_sql_command(thd), type);
  return to;
}

/** Called when the row read last is not in the result: at read committed its lock can be released. */
void ha_frondb::unlock_row() {
  if (use_.row_lock == FRONDB_LOCK_NONE || !use_.connection || use_.connection->isolation() > FRONDB_READ_COMMITTED) return;
  if (position_.is_unlocked()) return position_.forget_unlocked();
  // Ignore errors: they only mean that the lock is held longer.
  if (position_.has_cursor()) Error ignored = position_.unlock();
  Error ignored = frondb_txn_unlock(use_.connection->txn(), share_->indexes[0].tree.get(), slice(current_));
}

/** Prepares reads for UPDATE, which wants locked rows as they were last committed. If such a row matches, the server
    calls was_semi_consistent_read() and reads on, and the next step waits for the row; otherwise it calls
    unlock_row(). */
void ha_frondb::try_semi_consistent_read(bool yes) {
  bool waits = use_.row_lock == FRONDB_LOCK_EXCLUSIVE && use_.row_wait == FRONDB_WAIT;
  use_.is_semi_consistent =
      yes && waits && use_.connection && use_.connection->isolation() <= FRONDB_READ_COMMITTED;
}

bool ha_frondb::was_semi_consistent_read() { return position_.is_unlocked(); }

int ha_frondb::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_KEYREAD: use_.key_read = true; break;
    case HA_EXTRA_NO_KEYREAD: use_.key_read = false; break;
    case HA_EXTRA_PREPARE_FOR_ALTER_TABLE: keep_dates(); break;
    case HA_EXTRA_WRITE_CAN_REPLACE:
    case HA_EXTRA_INSERT_WITH_UPDATE: use_.writes_duplicates = true; [[fallthrough]];
    case HA_EXTRA_IGNORE_DUP_KEY: bulk_.expects_duplicates = true; break;
    case BEGIN_COPY: copy_.is_copy = can_load(); break;
    case END_COPY: return guarded([&] { return end_load(); });
    case ABORT_COPY: give_up_load(); break;
    default: break;
  }
  return 0;
}

void ha_frondb::print_error(int error, myf flags) {
  // The function that refuses an option has named it; the server's additional warning says less.
  if (error == HA_WRONG_CREATE_OPTION && flags & ME_WARNING) return;
  // The server has a number for this error, but no text.
  if (error != HA_ERR_TO_BIG_ROW) return handler::print_error(error, flags);
  my_printf_error(ER_TOO_BIG_ROWSIZE, "Row size too large. The maximum row size of FronDB, BLOBs included, is %llu bytes",
                  flags, ulonglong(ROW_BYTES_MAX));
}

bool ha_frondb::get_error_message(int error, String *text) {
  message(error, text);
  if (error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_FK_DEPTH_EXCEEDED) {
    Connection *connection = Connection::find(ha_thd());
    if (connection && connection->failed_foreign_key) {
      std::string failure = failure_of(ha_thd(), *connection->failed_foreign_key);
      text->append(failure.data(), failure.size());
      connection->failed_foreign_key = nullptr;
    }
  }
  return error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT;
}
