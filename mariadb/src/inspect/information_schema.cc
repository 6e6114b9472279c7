/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/information_schema.h. Here: transactions, locks and waits; the tables about storage are in
   inspect/schema_storage.cc. */

#include "inspect/information_schema.h"

#include <sql_i_s.h>

#include "inspect/lock_rows.h"
#include "inspect/schema_row.h"
#include "inspect/transactions.h"
#include "txn/session.h"

namespace fron {

struct st_mysql_information_schema information_schema = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

namespace {

using namespace Show;
// The server has another class named ULonglong.
using Number = Show::ULonglong;

constexpr uint NAME_CHARS = 64, KEY_CHARS = 1024, QUERY_CHARS = 1024;

ST_FIELD_INFO trx_fields[] = {Column("TRANSACTION", Number(), NOT_NULL),
                              Column("THREAD_ID", Number(), NULLABLE),
                              Column("STATE", Varchar(12), NOT_NULL),
                              Column("ISOLATION", Varchar(16), NOT_NULL),
                              Column("AGE_SECONDS", Double(22), NOT_NULL),
                              Column("MESSAGES", Number(), NOT_NULL),
                              Column("LOCKS", Number(), NOT_NULL),
                              Column("WAIT_SECONDS", Double(22), NULLABLE),
                              Column("XID", Varchar(300), NULLABLE),
                              Column("QUERY", Varchar(QUERY_CHARS), NULLABLE),
                              CEnd()};

ST_FIELD_INFO locks_fields[] = {Column("TRANSACTION", Number(), NOT_NULL),
                                Column("THREAD_ID", Number(), NULLABLE),
                                Column("STATE", Varchar(8), NOT_NULL),
                                Column("DATABASE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("TABLE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("PARTITION_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("INDEX_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("TREE", Number(), NOT_NULL),
                                Column("MODE", Varchar(9), NOT_NULL),
                                Column("AREA", Varchar(7), NOT_NULL),
                                Column("LOWER_KEY", Varchar(KEY_CHARS), NULLABLE),
                                Column("UPPER_KEY", Varchar(KEY_CHARS), NULLABLE),
                                CEnd()};

ST_FIELD_INFO lock_waits_fields[] = {Column("WAITING_TRANSACTION", Number(), NOT_NULL),
                                     Column("WAITING_THREAD_ID", Number(), NULLABLE),
                                     Column("WAITING_QUERY", Varchar(QUERY_CHARS), NULLABLE),
                                     Column("WAIT_SECONDS", Double(22), NOT_NULL),
                                     Column("DATABASE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                     Column("TABLE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                     Column("PARTITION_NAME", Varchar(NAME_CHARS), NULLABLE),
                                     Column("INDEX_NAME", Varchar(NAME_CHARS), NULLABLE),
                                     Column("MODE", Varchar(9), NOT_NULL),
                                     Column("AREA", Varchar(7), NOT_NULL),
                                     Column("LOWER_KEY", Varchar(KEY_CHARS), NULLABLE),
                                     Column("UPPER_KEY", Varchar(KEY_CHARS), NULLABLE),
                                     Column("BLOCKING_TRANSACTION", Number(), NOT_NULL),
                                     Column("BLOCKING_THREAD_ID", Number(), NULLABLE),
                                     Column("BLOCKING_QUERY", Varchar(QUERY_CHARS), NULLABLE),
                                     CEnd()};

using Owners = std::map<uint64_t, Owner>;

void add_thread(const Owners &owners, uint64_t transaction, SchemaRow *row) {
  auto owner = owners.find(transaction);
  if (owner == owners.end())
    row->null();
  else
    row->number(owner->second.thread);
}

void add_query(const Owners &owners, uint64_t transaction, SchemaRow *row) {
  auto owner = owners.find(transaction);
  bool has = owner != owners.end() && !owner->second.query.empty();
  row->text_or_null(has ? owner->second.query : "", has);
}

void add_names(const LockRow &lock, SchemaRow *row) {
  if (!lock.index) {
    row->null().null().null().null();
    return;
  }
  const IndexName &name = lock.index->name;
  row->text(name.database).text(name.table).text_or_null(name.partition, !name.partition.empty()).text(name.index);
}

void add_area(const LockRow &lock, SchemaRow *row) {
  row->text(lock.mode).text(lock.area);
  row->text_or_null(lock.lower, lock.has_lower).text_or_null(lock.upper, lock.has_upper);
}

int fill_trx(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  std::vector<TransactionRow> rows;
  if (Error error = transactions(&rows)) return schema_error(error);
  Owners all = owners();
  for (const TransactionRow &found : rows) {
    SchemaRow row(thd, tables->table);
    row.number(found.transaction);
    add_thread(all, found.transaction, &row);
    row.text(found.state).text(found.isolation).seconds(found.age_seconds);
    row.number(found.messages).number(found.locks);
    if (found.waits)
      row.seconds(found.waited_seconds);
    else
      row.null();
    row.text_or_null(found.xid, !found.xid.empty());
    add_query(all, found.transaction, &row);
    if (row.store()) return 1;
  }
  return 0;
}

bool store_lock(MYSQL_THD thd, TABLE *table, const LockRow &lock, const char *state, const Owners &owners) {
  SchemaRow row(thd, table);
  row.number(lock.transaction);
  add_thread(owners, lock.transaction, &row);
  row.text(state);
  add_names(lock, &row);
  row.number(lock.tree);
  add_area(lock, &row);
  return row.store();
}

int fill_locks(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  TreeNames names;
  std::vector<LockRow> held, waits;
  if (Error error = held_locks(&names, &held)) return schema_error(error);
  if (Error error = lock_waits(&names, &waits)) return schema_error(error);
  Owners all = owners();
  for (const LockRow &lock : held)
    if (store_lock(thd, tables->table, lock, "HELD", all)) return 1;
  for (const LockRow &lock : waits)
    if (store_lock(thd, tables->table, lock, "WAITING", all)) return 1;
  return 0;
}

int fill_lock_waits(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  TreeNames names;
  std::vector<LockRow> waits;
  if (Error error = lock_waits(&names, &waits)) return schema_error(error);
  Owners all = owners();
  for (const LockRow &wait : waits)
    for (uint64_t blocker : wait.blockers) {
      SchemaRow row(thd, tables->table);
      row.number(wait.transaction);
      add_thread(all, wait.transaction, &row);
      add_query(all, wait.transaction, &row);
      row.seconds(wait.waited_seconds);
      add_names(wait, &row);
      add_area(wait, &row);
      row.number(blocker);
      add_thread(all, blocker, &row);
      add_query(all, blocker, &row);
      if (row.store()) return 1;
    }
  return 0;
}

}  // namespace

int init_trx_table(void *place) { return init_schema_table(place, trx_fields, guarded<fill_trx>); }
int init_locks_table(void *place) { return init_schema_table(place, locks_fields, guarded<fill_locks>); }
int init_lock_waits_table(void *place) {
  return init_schema_table(place, lock_waits_fields, guarded<fill_lock_waits>);
}

}  // namespace fron
