/* SPDX-License-Identifier: GPL-2.0-only

   See txn/hooks.h. */

#include "txn/hooks.h"

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include "backup/meeting.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/server.h"
#include "txn/connection.h"
#include "txn/handlerton.h"

namespace fron {
namespace {

/** A savepoint, in the memory that the server keeps for the engine. */
struct Savepoint {
  uint64_t number;
};

int close_connection(HOOK_PARAMETER MYSQL_THD thd) {
  Connection *connection = Connection::find(thd);
  // Do this before the deletion, since kill_query() finds the connection under the lock that thd_set_ha_data() takes.
  thd_set_ha_data(thd, hton(), nullptr);
  delete connection;
  return 0;
}

void kill_query(handlerton *, MYSQL_THD thd, enum thd_kill_levels) {
  if (Connection *connection = Connection::find(thd)) connection->cancel();
}

int prepare(HOOK_PARAMETER MYSQL_THD thd, bool all) {
  Connection *connection = Connection::find(thd);
  return connection ? raise_at_commit(connection->prepare(thd, all)) : 0;
}

void commit_ordered(HOOK_PARAMETER MYSQL_THD thd, bool all) {
  if (Connection *connection = Connection::find(thd)) connection->commit_ordered(thd, all);
}

/** Frees what a connection holds until its statement ends. */
void release_statement(Connection *connection) {
  connection->child_tables.reset();
  connection->fence.reset();
}

int commit(HOOK_PARAMETER MYSQL_THD thd, bool all) {
  Connection *connection = Connection::find(thd);
  if (!connection) return 0;
  release_statement(connection);
  return raise_at_commit(connection->commit(thd, all));
}

int rollback(HOOK_PARAMETER MYSQL_THD thd, bool all) {
  Connection *connection = Connection::find(thd);
  if (!connection) return 0;
  release_statement(connection);
  return connection->rollback(thd, all);
}

int savepoint_set(HOOK_PARAMETER MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  if (!connection) return 0;
  return raise_bare(connection->set_savepoint(&static_cast<Savepoint *>(place)->number), "setting a savepoint");
}

int savepoint_rollback(HOOK_PARAMETER MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  return connection ? connection->roll_back_to(static_cast<Savepoint *>(place)->number) : 0;
}

int savepoint_release(HOOK_PARAMETER MYSQL_THD thd, void *place) {
  Connection *connection = Connection::find(thd);
  if (!connection) return 0;
  uint64_t number = static_cast<Savepoint *>(place)->number;
  // SAVEPOINT with a name that exists removes the older savepoint, and keeps the savepoints set between the two.
  bool is_replaced = thd_sql_command(thd) == SQLCOM_SAVEPOINT;
  return raise_bare(is_replaced ? connection->replace(number) : connection->release(number), "releasing a savepoint");
}

bool flush_logs(handlerton *) {
  meet_flush_of_logs(_current_thd());
  return bool(Error(frondb_db_sync(db())));
}

void prepare_for_backup() { meet_begin_of_stages(); }

void end_backup() { meet_end_of_stage(); }

/** Returns whether a rollback to a savepoint may release metadata locks. Row locks stay after such a rollback, so
    the metadata locks of their tables must stay. A transaction without row locks, such as a dump, leaves the tables
    that it has read since the savepoint to ALTER, as in InnoDB. If it reads such a table again,
    ha_frondb::begin_statement() checks that its snapshot has the table's rows. */
bool savepoint_rollback_can_release_mdl(HOOK_PARAMETER MYSQL_THD thd) {
  Connection *connection = Connection::find(thd);
  return !connection || connection->has_only_read();
}

int start_consistent_snapshot(HOOK_PARAMETER MYSQL_THD thd) {
  Connection *connection = Connection::of(thd);
  int error = connection ? connection->begin_at_snapshot(thd) : HA_ERR_OUT_OF_MEM;
  return raise_bare(error, "beginning a transaction");
}

}  // namespace

void set_transaction_hooks(handlerton *ht) {
  ht->flush_logs = flush_logs;
  ht->prepare_for_backup = prepare_for_backup;
  ht->end_backup = end_backup;
  ht->savepoint_offset = sizeof(Savepoint);
  ht->close_connection = close_connection;
  ht->kill_query = kill_query;
  ht->prepare = prepare;
  ht->commit_ordered = commit_ordered;
  ht->commit = commit;
  ht->rollback = rollback;
  ht->savepoint_set = savepoint_set;
  ht->savepoint_rollback = savepoint_rollback;
  ht->savepoint_rollback_can_release_mdl = savepoint_rollback_can_release_mdl;
  ht->savepoint_release = savepoint_release;
  ht->start_consistent_snapshot = start_consistent_snapshot;
}

}  // namespace fron
