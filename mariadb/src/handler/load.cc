/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h and ddl/bulk_load.h. Here: rows of a table that ALTER TABLE by copy or CREATE TABLE .. SELECT
   creates.

     start_bulk_insert()          \  both, in any order: the statement makes the table, and passes its rows to
     extra(HA_EXTRA_BEGIN_COPY)   /  this handler
     write_row()                  puts a row into the load
     extra(HA_EXTRA_END_COPY)     finishes the load; duplicates are found only here
     extra(HA_EXTRA_ABORT_COPY)   abandons the load

   The rows of other statements with start_bulk_insert() go through handler/bulk_insert.cc.

   Without start_bulk_insert() the statement adds partitions; then the server ignores the error of HA_EXTRA_END_COPY,
   so rows are not loaded. */

#include "handler/ha_frondb.h"

#include <key.h>

#include "codec/entry.h"
#include "ddl/bulk_load.h"
#include "engine/crash_points.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "foreign/clauses.h"
#include "foreign/define.h"
#include "engine/progress.h"
#include "txn/connection.h"
#include "txn/session_variables.h"

using namespace fron;

/** Called before rows are copied to this table: lets the copy keep zero dates. NO_ZERO_DATE is meant for dates that
    the session writes. A copy that changes no value, which InnoDB would do in place, must keep dates that a session
    with another mode stored. The server restores the mode after the copy (copy_data_between_tables()). */
void ha_frondb::keep_dates() {
  THD *thd = ha_thd();
  const Connection *connection = Connection::find(thd);
  if (connection && connection->copies_dates == thd->query_id)
    thd->variables.sql_mode &= ~(MODE_NO_ZERO_DATE | MODE_NO_ZERO_IN_DATE);
}

void ha_frondb::start_bulk_insert(ha_rows rows, uint) {
  copy_.is_bulk = true;
  announce_rows(rows);
}

int ha_frondb::end_bulk_insert() {
  copy_.is_bulk = false;
  return guarded([&] { return end_bulk(); });
}

/** Returns whether a statement that only inserts never reads the rows that it has written. The server itself
    searches for overlapping periods, for equal long keys, and for the last AUTO_INCREMENT number of a group. The
    rows of a temporary table belong to the transaction, whose snapshot may be older than a load. */
bool ha_frondb::never_reads_rows() const {
  bool is_temporary = !share_->name.empty() && share_->name[0] == '/';
  return !is_temporary && !table->s->long_unique_table && !table->s->period.unique_keys &&
         !table->s->next_number_keypart;
}

bool ha_frondb::can_load() const {
  // Rows of a child are checked one by one, when they are written.
  bool is_checked = checks_foreign_keys(ha_thd()) && !dictionary().foreign_keys().of(share_->name)->own.empty();
  return !is_checked && never_reads_rows();
}

int ha_frondb::begin_load() {
  std::shared_ptr<Load> load = use_.connection->load.lock();
  if (!load) {
    load = std::make_shared<Load>();
    if (Error error = load->begin(session_durability(ha_thd()))) return ha_error(error);
    use_.connection->load = load;
  }
  load->join(this);
  copy_.load = std::move(load);
  return 0;
}

int ha_frondb::load_row(const uchar *record) {
  if (!copy_.load)
    if (int error = begin_load()) return error;
  if (int error = writer_.encode_new_row(record)) return error;
  const std::string &primary = writer_.primary();
  if (Error error = copy_.load->put(encoder_.rows(), primary, writer_.row())) return ha_error(error);
  for (uint k = 0; k < table->s->keys; k++) {
    if (is_primary(k)) continue;
    encoder_.entry(k, record, primary, &copy_.key, &copy_.value);
    if (copy_.value.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
    if (Error error = copy_.load->put(encoder_.tree(k), copy_.key, copy_.value)) return ha_error(error);
  }
  return 0;
}

int ha_frondb::end_load() {
  std::shared_ptr<Load> load = std::move(copy_.load);
  copy_.is_copy = false;
  // The handler of the last partition finishes the load of all partitions.
  if (!load || !load->leave()) return 0;
  THD *thd = ha_thd();
  bool has_duplicates;
  Error error = load->finish(report_progress, thd, &has_duplicates);
  if (error && is_killed(thd)) return HA_ERR_ABORTED_BY_USER;
  if (error) return ha_error(error);
  may_crash_at("load: finished");
  if (!has_duplicates) return 0;
  uint64_t number;
  std::string key;
  if (Error failed = load->duplicate(&number, &key)) return ha_error(failed);
  for (ha_frondb *handler : load->handlers())
    if (int found = handler->show_duplicate(nullptr, number, key)) return found;
  return ha_internal("a key was loaded twice into a tree that the table does not have");
}

void ha_frondb::give_up_load() {
  copy_.is_copy = copy_.is_bulk = false;
  copy_.load.reset();
}

/** Called when a key was loaded twice into the tree with this number. If the tree belongs to this handler, decodes the
    row of the key, for the server's message, and returns the error; otherwise returns 0. `txn` is the transaction that
    has the rows; null if they are committed. */
int ha_frondb::show_duplicate(frondb_txn *txn, uint64_t number, std::string_view key) {
  auto read = [&](frondb_tree *tree, std::string_view key, bool *found) {
    return txn ? Error(frondb_txn_get(txn, tree, slice(key), FRONDB_LOCK_NONE, FRONDB_WAIT, buffer_.get(), found))
               : read_key(tree, key, nullptr, buffer_, found);
  };
  for (size_t i = 0; i < share_->indexes.size(); i++) {
    frondb_tree *tree = share_->indexes[i].tree.get();
    uint64_t id;
    if (Error error = frondb_tree_id(tree, &id)) return ha_error(error);
    if (id != number) continue;
    bool found;
    uint place = uint(i);
    std::string primary(key);
    if (Error error = read(tree, key, &found)) return ha_error(error);
    if (found && place != 0) {
      frondb_slice row;
      std::string_view covered;
      frondb_slice value = buffer_.slice();
      if (!split_entry(slice(key), value, &row, &covered)) return encoder_.damaged(place);
      primary.assign(view(row));
      // If the key contains the primary key, both rows have the same primary key: report that index.
      if (!share_->indexes[place].is_unique || view(row).data() + row.len == key.data() + key.size()) place = 0;
      if (Error error = read(share_->indexes[0].tree.get(), primary, &found)) return ha_error(error);
    }
    if (!found) return ha_internal("a row of a duplicate key is missing after the load");
    frondb_slice row = buffer_.slice();
    if (!unpack_row(table, share_->record.form, view(row), table->record[0])) return encoder_.damaged(place);
    for (uint k = 0; k < table->s->keys; k++)
      if (tree_of(k) == place) use_.connection->duplicate_key = k;
    return HA_ERR_FOUND_DUPP_KEY;
  }
  return 0;
}
