/* SPDX-License-Identifier: GPL-2.0-only

   Tables of children that the server has not opened with the statement.

   The server opens the children's tables with the parent's table, but it keeps the list of tables with a prepared
   statement, a stored routine or a trigger. That list lacks a foreign key that is newer than the list, and the new
   name of a child. The server also skips a child that is renamed while the statement waits for its tables. Such a
   table is opened when an action needs it, as the server opens its own tables in the middle of a statement, and
   stays open until the statement ends. Its metadata lock stays until the transaction ends, like the metadata locks
   of the other tables.

   Used by the connection's thread. */

#ifndef FRONDB_FOREIGN_CHILD_TABLES_H
#define FRONDB_FOREIGN_CHILD_TABLES_H

#include <my_global.h>
#include <sql_class.h>

#include <memory>
#include <string>
#include <vector>

namespace fron {

class ChildTables {
 public:
  explicit ChildTables(THD *thd);
  ChildTables(const ChildTables &) = delete;
  /** Closes the tables. */
  ~ChildTables();
  /** Returns the table, open and locked for writes; null if that fails. Then `is_lost` says whether no table has
      this name; if not, the server has reported an error. */
  TABLE *open(const std::string &database, const std::string &name, bool *is_lost);

 private:
  struct Opened;
  TABLE *open_apart(Opened *child);
  void close(Opened *child);

  THD *thd_;
  std::vector<std::unique_ptr<Opened>> opened_;
};

}  // namespace fron

#endif
