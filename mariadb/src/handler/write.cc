/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: the server's calls that write rows. handler/row_writer.h turns a row into writes of
   the engine. */

#include "handler/ha_frondb.h"

#include "ddl/index_build.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "engine/server.h"
#include "foreign/binding.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** Returns whether the server requests an update without having compared the old and the new row. */
bool leaves_comparing(MYSQL_THD thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_REPLACE || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_LOAD;
}

}  // namespace

int ha_frondb::write_row(const uchar *record) {
  if (is_sequence()) return guarded([&] { return write_sequence(record); });
  if (table->next_number_field && record == table->record[0])
    // The server reports every failure of update_auto_increment() with the same error; return the original error, for
    // example of a full disk.
    if (int error = update_auto_increment())
      return error == HA_ERR_AUTOINC_READ_FAILED && reservation_.error ? reservation_.error : error;
  int error = guarded([&] {
    if (copy_.takes_rows()) return load_row(record);
    return bulk_.is_active() ? bulk_row(record) : insert_row(record);
  });
  if (error) return error;
  count(1);
  return keep_auto_increment_of(record);
}

template <typename Write>
int ha_frondb::write_checked(const uchar *before, const uchar *after, const Cause &cause, Write write) {
  bool is_due;
  uint64_t generation = dictionary().foreign_keys().generation();
  auto write_then_recheck = [&] {
    int error = write();
    return error ? error : foreign_.recheck(ha_thd(), before, after, generation);
  };
  if (int error = foreign_.prepare(ha_thd(), &is_due)) return error;
  RowChecks checks;
  if (is_due) {
    if (!cause.before) use_.connection->failed_foreign_key = nullptr;
    if (int error = foreign_.plan(before, after, cause.by, &checks)) return error;
  }
  // The statement may continue after an error, so no part of the row may remain.
  if (checks.empty() && !use_.connection->has_overlay && !share_->build()) {
    uint64_t written = writer_.written();
    int error = write_then_recheck();
    // RowWriter::apply() handles writes that fail. A failure after them is too rare for a savepoint in each row.
    if (error && writer_.written() != written) use_.connection->must_roll_back = true;
    return error;
  }
  uint64_t savepoint;
  if (int error = use_.connection->set_savepoint(&savepoint)) return error;
  int error = write_then_recheck();
  if (error == HA_ERR_FOUND_DUPP_KEY)
    if (int earlier = foreign_.check_before_duplicate(use_.connection->duplicate_key, checks, after)) error = earlier;
  if (!error)
    error = checks.each([&](const Children &children) { return act_on_children(children, cause); },
                        [&](const RowChecks::Parent &parent) { return foreign_.check_parent(parent, after); });
  // A deadlock has rolled back the transaction, and its savepoints with it.
  if (error == HA_ERR_LOCK_DEADLOCK) return error;
  int undone = error ? use_.connection->roll_back_to(savepoint) : 0;
  int released = use_.connection->release(savepoint);
  return error ? (undone ? undone : error) : released;
}

int ha_frondb::insert_row(const uchar *record) {
  Cause cause{nullptr, &share_->name, false, nullptr};
  return write_checked(nullptr, record, cause, [&] {
    if (int error = writer_.insert(use_.connection, record)) return error;
    if (share_->has_hidden_key) current_ = writer_.primary();
    return notify_build(nullptr, {}, record);
  });
}

int ha_frondb::update_row(const uchar *before, const uchar *after) {
  if (is_sequence()) return guarded([&] { return write_sequence(after); });
  // For UPDATE the server has compared the rows. REPLACE and LOAD DATA leave the comparison to the engine, and count
  // affected rows by the engine's answer.
  if (leaves_comparing(ha_thd()) && is_same_row(table, before, after)) return HA_ERR_RECORD_IS_THE_SAME;
  // The server deletes a row of a system-versioned table by an update that makes it an old version.
  Cause cause{nullptr, &share_->name, !is_history(table, after), nullptr};
  int error = guarded([&] { return change_row(before, after, current_, cause); });
  return error ? error : keep_auto_increment_of(after);
}

int ha_frondb::change_row(const uchar *before, const uchar *after, const std::string &shown, const Cause &cause) {
  int error = write_checked(before, after, cause, [&] {
    if (int failed = writer_.change(use_.connection, before, after, shown)) return failed;
    return notify_build(before, writer_.primary_before(), after);
  });
  if (!error) count(0);
  return error;
}

int ha_frondb::delete_row(const uchar *record) {
  Cause cause{nullptr, &share_->name, false, nullptr};
  return guarded([&] { return remove_row(record, current_, cause); });
}

int ha_frondb::remove_row(const uchar *record, const std::string &shown, const Cause &cause) {
  int error = write_checked(record, nullptr, cause, [&] {
    if (int failed = writer_.remove(use_.connection, record, shown)) return failed;
    return notify_build(record, writer_.primary(), nullptr);
  });
  if (!error) count(-1);
  return error;
}

int ha_frondb::notify_build(const uchar *before, const std::string &primary_before, const uchar *after) {
  std::shared_ptr<IndexBuild> build = share_->build();
  if (!build) return 0;
  return build->note(use_.connection->txn(), table, share_->record.form.layout, before, primary_before, after, writer_.primary());
}

void ha_frondb::count(int64_t rows) {
  share_->rows->changed();
  use_.connection->counts().add(share_->rows, rows);
  use_.has_written = true;
}

/** The server calls this after it has marked the fields that a statement reads and writes. MariaDB 11.8 does not mark the
    virtual fields of keys whose base fields an UPDATE leaves alone, but the entries of these keys have the row's primary
    key, which may change. */
void ha_frondb::column_bitmaps_signal(SIGNAL_PARAMETER) {
  if (!FRONDB_SERVER_11_8 || !table->vfield || table->current_lock != F_WRLCK) return;
  for (uint i = 0; i < table->s->virtual_fields; i++) {
    Field *field = table->vfield[i];
    if (!field->stored_in_db() && field->flags & PART_KEY_FLAG) table->mark_virtual_column_with_deps(field);
  }
}
