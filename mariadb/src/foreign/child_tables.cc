/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/child_tables.h. */

#include "foreign/child_tables.h"

#include <sql_base.h>
#include <lock.h>
#include <table.h>

#include <utility>

namespace fron {
namespace {

/** Opens no further tables: actions run no triggers, and open the children of children themselves. */
class Alone : public Prelocking_strategy {
 public:
  bool handle_routine(THD *, Query_tables_list *, Sroutine_hash_entry *, sp_head *, bool *) override { return false; }
  bool handle_table(THD *, Query_tables_list *, TABLE_LIST *, bool *) override { return false; }
  bool handle_view(THD *, Query_tables_list *, TABLE_LIST *, bool *) override { return false; }
};

/** Flags to open a table of children. Actions are not in the binary log, so its format does not matter. A read of the
    server's statistics tables would begin a transaction. */
constexpr uint FLAGS = MYSQL_OPEN_IGNORE_LOGGING_FORMAT | MYSQL_OPEN_IGNORE_ENGINE_STATS | MYSQL_LOCK_NOT_TEMPORARY;

/** While the object exists, the statement's tables are put aside, with their locks and the statement's locking mode. */
class Aside {
 public:
  Aside(THD *thd, Open_tables_state *instead) : thd_(thd), instead_(instead) {
    tables_.set_open_tables_state(thd);
    thd->set_open_tables_state(instead);
  }
  ~Aside() {
    instead_->set_open_tables_state(thd_);
    thd_->set_open_tables_state(&tables_);
  }
  Aside(const Aside &) = delete;

 private:
  THD *thd_;
  Open_tables_state *instead_;
  Open_tables_state tables_;
};

}  // namespace

struct ChildTables::Opened {
  Opened(const std::string &of_database, const std::string &of_name) : database(of_database), name(of_name) {
    tables.reset_open_tables_state();
    LEX_CSTRING db{database.data(), database.size()}, table{name.data(), name.size()};
    list.init_one_table(&db, &table, nullptr, TL_WRITE);
    list.required_type = TABLE_TYPE_NORMAL;
  }

  std::string database, name;
  /** The table refers to this description while it is open. */
  TABLE_LIST list;
  Open_tables_state tables;
};

ChildTables::ChildTables(THD *thd) : thd_(thd) {}

TABLE *ChildTables::open_apart(Opened *child) {
  Alone alone;
  Query_tables_list of_statement;
  thd_->lex->reset_n_backup_query_tables_list(&of_statement);
  TABLE_LIST *list = &child->list;
  uint count;
  bool is_open;
  {
    Aside aside(thd_, &child->tables);
    // Do not use open_and_lock_tables(): if it fails, it rolls back the statement, which has not ended.
    is_open = !open_tables(thd_, &list, &count, FLAGS, &alone) && !lock_tables(thd_, list, count, FLAGS);
  }
  thd_->lex->restore_backup_query_tables_list(&of_statement);
  return is_open ? child->list.table : nullptr;
}

TABLE *ChildTables::open(const std::string &database, const std::string &name, bool *is_lost) {
  *is_lost = false;
  for (const std::unique_ptr<Opened> &child : opened_)
    if (child->database == database && child->name == name) return child->list.table;
  auto child = std::make_unique<Opened>(database, name);
  MDL_savepoint before = thd_->mdl_context.mdl_savepoint();
  No_such_table_error_handler missing;
  thd_->push_internal_handler(&missing);
  TABLE *table = open_apart(child.get());
  thd_->pop_internal_handler();
  if (table) {
    opened_.push_back(std::move(child));
    return table;
  }
  close(child.get());
  thd_->mdl_context.rollback_to_savepoint(before);
  *is_lost = missing.safely_trapped_errors();
  return nullptr;
}

void ChildTables::close(Opened *child) {
  Aside aside(thd_, &child->tables);
  if (thd_->lock) mysql_unlock_tables(thd_, std::exchange(thd_->lock, nullptr));
  while (thd_->open_tables) close_thread_table(thd_, &thd_->open_tables);
}

ChildTables::~ChildTables() {
  while (!opened_.empty()) {
    close(opened_.back().get());
    opened_.pop_back();
  }
}

}  // namespace fron
