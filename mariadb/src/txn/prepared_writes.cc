/* SPDX-License-Identifier: GPL-2.0-only

   See txn/prepared_writes.h. */

#include "txn/prepared_writes.h"

#include <my_global.h>
#include <sql_class.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"

namespace fron {

int refuse_for_prepared() {
  return ha_internal("a prepared transaction (XA) has written to the table: commit it or roll it back first");
}

/** Whether a transaction that was prepared before the engine was opened may still exist. */
static std::atomic<bool> was_prepared{false};

void note_prepared() { was_prepared = true; }

bool may_have_prepared(frondb_tree *tree) {
  if (!was_prepared) return false;
  List list;
  if (Error error = frondb_db_prepared(db(), list.out())) return true;
  was_prepared = list.size() > 0;
  if (!was_prepared) return false;
  Snapshot snapshot;
  // Do not wait. The call also fails if a transaction that is not prepared has written to the tree.
  return bool(snapshot_behind_writers({tree}, 0, &snapshot));
}

int check_prepared(frondb_tree *rows) {
  Snapshot snapshot;
  // Do not wait. FRONDB_BUSY can only mean a prepared transaction: the server keeps other writers out, except the
  // transaction of this statement itself, if the statement fails.
  Error error = snapshot_behind_writers({rows}, 0, &snapshot);
  return error.kind() == FRONDB_BUSY ? refuse_for_prepared() : 0;
}

int check_prepared(const std::string &key) {
  // A temporary table is dropped with its connection, even if a transaction is prepared.
  if (key.empty() || key[0] == '/') return 0;
  std::vector<std::string> keys = {key};
  size_t partition = key.find(PARTITION);
  if (partition != std::string::npos) {
    keys.clear();
    if (Error error = dictionary().tables_of(key.substr(0, partition + strlen(PARTITION)), &keys)) return ha_error(error);
  }
  for (const std::string &one : keys) {
    TableRecord record;
    bool found;
    if (Error error = dictionary().find(one, &record, &found)) return ha_error(error);
    if (!found || record.indexes.empty()) continue;
    Tree rows;
    // Every change of a table changes its tree of rows too. A tree that cannot be opened has no writers.
    if (Error error = open_tree(Dictionary::tree_name(record.number, record.indexes[0].number), &rows)) continue;
    if (int error = check_prepared(rows.get())) return error;
  }
  return 0;
}

bool copies_tables(MYSQL_THD thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE: return true;
    default: return false;
  }
}

bool may_refuse_drop(MYSQL_THD thd, const std::string &key) {
  if (key.find(PARTITION) != std::string::npos) return false;
  switch (thd_sql_command(thd)) {
    case SQLCOM_DROP_TABLE:
    case SQLCOM_DROP_DB:
    case SQLCOM_CREATE_TABLE: return true;
    default: return false;
  }
}

}  // namespace fron
