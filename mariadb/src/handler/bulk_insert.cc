/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h and handler/gathered_rows.h. Here: rows of INSERT .. SELECT, LOAD DATA and INSERT with many
   rows, which become sorted runs of the connection's transaction if the table is empty. The engine locks the trees of
   the table as a whole, and finds duplicates when it sorts the entries.

   The server calls start_bulk_insert() only if neither a trigger nor a stored function of the statement may read the
   table. Rows of a table that the statement creates are loaded by handler/load.cc. */

#include "handler/ha_frondb.h"

#include <sql_lex.h>

#include "dictionary/dictionary.h"
#include "engine/crash_points.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "engine/progress.h"
#include "txn/connection.h"
#include "txn/session_variables.h"

using namespace fron;

namespace {

/** Bytes of gathered rows at which they are written in bulk, even if there are few rows: the commit would sort single
    writes into runs, too. The limit applies to all partitions together, because each gathers its own rows. */
constexpr size_t GATHERED_BYTES_MAX = 4 << 20;

/** A table with at least this many rows, by its approximate count, is not empty; no row is read to check it. */
constexpr int64_t ROWS_MANY = 1000;

/** Returns whether the statement only inserts, and ends at the first duplicate. Partitions need this function,
    because the server does not notify them of IGNORE. LOAD DATA LOCAL also ignores duplicates. */
bool ends_at_duplicate(MYSQL_THD thd) {
  const LEX *lex = thd->lex;
  switch (thd_sql_command(thd)) {
    case SQLCOM_LOAD:
      if (lex->local_file) return false;
      [[fallthrough]];
    case SQLCOM_INSERT:
    case SQLCOM_INSERT_SELECT: return !lex->ignore && lex->duplicates == DUP_ERROR;
    default: return false;
  }
}

}  // namespace

void ha_frondb::announce_rows(ha_rows rows) {
  if (bulk_.has_rows()) return;
  size_t enough = session_bulk_rows(ha_thd());
  // The server knows the number of rows only for INSERT .. VALUES.
  if (enough == 0 || (rows != 0 && rows < enough)) return;
  bulk_.rows_min = enough;
  bulk_.phase = BulkInsert::Phase::Announced;
}

/** Sets `can` to whether rows may be gathered before they are written. The table may turn out not to be empty, but
    must look empty, also to the transaction itself. */
int ha_frondb::can_gather(bool *can) {
  *can = false;
  if (bulk_.expects_duplicates || !ends_at_duplicate(ha_thd()) || is_sequence() || !never_reads_rows()) return 0;
  // A build of an index must be notified of each row.
  if (share_->build() || share_->rows->rows() >= ROWS_MANY) return 0;
  bool is_due;
  if (int error = foreign_.prepare(ha_thd(), &is_due)) return error;
  // Rows of a child are checked one by one, when they are written.
  if (is_due && !dictionary().foreign_keys().of(share_->name)->own.empty()) return 0;
  frondb_tree *tree = share_->indexes[0].tree.get();
  uint64_t own;
  if (Error error = frondb_txn_own_messages(use_.connection->txn(), tree, {}, nullptr, &own)) return ha_error(error);
  if (own != 0) return 0;
  Cursor cursor;
  frondb_rows rows;
  if (Error error = cursor.open(tree, "", nullptr)) return ha_error(error);
  if (Error error = cursor.read(1, 1, &rows)) return ha_error(error);
  *can = rows.count == 0;
  return 0;
}

int ha_frondb::bulk_row(const uchar *record) {
  if (bulk_.phase == BulkInsert::Phase::Announced) {
    bool can;
    if (int error = can_gather(&can)) return error;
    bulk_.phase = can ? BulkInsert::Phase::Gathering : BulkInsert::Phase::None;
    if (!can) return insert_row(record);
    bulk_.undone = use_.connection->undone;
  }
  int error = writer_.encode_insert(record);
  if (!error && bulk_.phase == BulkInsert::Phase::Writing) error = write_in_bulk(writer_.writes());
  if (!error && bulk_.phase == BulkInsert::Phase::Gathering) {
    size_t *gathered = &use_.connection->gathered_bytes;
    bulk_.rows.add(writer_.writes(), gathered);
    if (bulk_.rows.count() >= bulk_.rows_min || *gathered >= GATHERED_BYTES_MAX) error = begin_bulk();
  }
  if (!error && share_->has_hidden_key) current_ = writer_.primary();
  if (error) fail_bulk();
  return error;
}

/** Called when enough rows have been gathered: writes them in bulk if the table is empty, or else one by one. */
int ha_frondb::begin_bulk() {
  std::vector<frondb_tree *> trees;
  for (const Index &index : share_->indexes) trees.push_back(index.tree.get());
  frondb_txn *txn = use_.connection->txn();
  if (Error error = frondb_txn_begin_bulk(txn, trees.data(), trees.size(), bulk_.statement.out()))
    return ha_error(error);
  if (!bulk_.statement) return write_gathered();
  bulk_.phase = BulkInsert::Phase::Writing;
  for (size_t i = 0; i < bulk_.rows.count(); i++)
    if (int error = write_in_bulk(bulk_.rows.row(i))) return error;
  bulk_.rows.clear();
  return 0;
}

int ha_frondb::write_in_bulk(const std::vector<frondb_write> &writes) {
  return ha_error(frondb_bulk_statement_write(bulk_.statement.get(), writes.data(), writes.size()));
}

/** Writes the gathered rows one by one, and from now on all other rows too. */
int ha_frondb::write_gathered() {
  bulk_.phase = BulkInsert::Phase::None;
  for (size_t i = 0; i < bulk_.rows.count(); i++) {
    int error = writer_.insert(use_.connection, bulk_.rows.row(i));
    if (error == HA_ERR_FOUND_DUPP_KEY && !show_row(view(bulk_.rows.row(i)[0].value))) return damaged();
    if (error) return error;
  }
  bulk_.rows.clear();
  return 0;
}

/** Decodes a row into the first record, from which the server takes the values of its error message. */
bool ha_frondb::show_row(std::string_view row) {
  if (!unpack_row(table, share_->record.form, row, table->record[0])) return false;
  compute_virtual_fields();
  return true;
}

/** Called when the statement has no more rows, or needs to read the table. */
int ha_frondb::end_bulk() {
  int error = 0;
  if (bulk_.phase == BulkInsert::Phase::Gathering) error = write_gathered();
  if (bulk_.phase == BulkInsert::Phase::Writing) error = finish_bulk();
  bulk_.phase = BulkInsert::Phase::None;
  if (!error) return 0;
  fail_bulk();
  // Some callers in the server take the error from here.
  return my_errno = error;
}

int ha_frondb::finish_bulk() {
  THD *thd = ha_thd();
  if (is_killed(thd)) return HA_ERR_ABORTED_BY_USER;
  Stats report;
  uint64_t duplicates, number;
  Error error(frondb_bulk_statement_finish(bulk_.statement.get(), report_progress, thd, report.out()));
  if (error && is_killed(thd)) return HA_ERR_ABORTED_BY_USER;
  if (error) return ha_error(error);
  bulk_.phase = BulkInsert::Phase::None;
  may_crash_at("bulk statement: finished");
  BulkStatement finished = std::move(bulk_.statement);
  if (Error failed = frondb_stats_find(report.get(), "duplicates", &duplicates)) return ha_error(failed);
  if (duplicates == 0) return 0;
  bool found;
  Error failed(frondb_bulk_statement_duplicate(finished.get(), &number, buffer_.get(), &found));
  if (failed) return ha_error(failed);
  std::string key(buffer_.value());
  if (int duplicate = show_duplicate(use_.connection->txn(), number, key)) {
    compute_virtual_fields();
    return duplicate;
  }
  return ha_internal("a key was written twice to a tree that the table does not have");
}

/** Writes all rows before a read. No statement that writes in bulk reads its table through this handler; if one did,
    it would have to find its own rows. */
int ha_frondb::end_bulk_before_read() { return bulk_.has_rows() ? end_bulk_insert() : 0; }

/** Called when the statement has failed: drops rows that were not written. The server then rolls the statement back; if
    it did not, the commit would have to fail, because rows are missing. */
void ha_frondb::fail_bulk() {
  Connection *connection = use_.connection;
  if (connection && connection->undone == bulk_.undone) connection->must_roll_back = true;
  bulk_.phase = BulkInsert::Phase::None;
  bulk_.rows.clear();
  bulk_.statement.reset();
}

/** Called at the end of the statement. If there are rows left, end_bulk_insert() was not called. */
void ha_frondb::give_up_bulk() {
  if (bulk_.has_rows()) fail_bulk();
  bulk_.phase = BulkInsert::Phase::None;
}
