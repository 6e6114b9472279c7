/* SPDX-License-Identifier: GPL-2.0-only

   The foreign keys that a statement adds to a table.

   Like InnoDB, NewKeys first checks every clause by itself. Then, in the order of the constraints' names, it checks
   NULLs and whether the names are free. This order decides which of several faults is reported. */

#ifndef FRONDB_FOREIGN_NEW_KEYS_H
#define FRONDB_FOREIGN_NEW_KEYS_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_keys.h"
#include "foreign/definer.h"

class Alter_info;

namespace fron {

class NewKeys {
 public:
  /** `own` is the key that the table has, or will have when the statement is complete. */
  NewKeys(THD *thd, const TABLE *form, const std::string &own, Definer::Statement statement, ForeignKeyChange *change)
      : thd_(thd), own_(own), statement_(statement), definer_(thd, form, own, statement), change_(change) {}

  /** Adds the foreign keys of the statement's clauses to the change, as records of the table `below`: `own`, or the
      name that the new table of an ALTER by copy has until it replaces the old one. Returns an error if a foreign key
      is refused. A warning has the reason, except that for a repeated name only the status page has it; some errors of
      an ALTER in place are reported already. */
  int add(const Alter_info *info, const std::string &below);

 private:
  struct NewKey {
    const Foreign_key *clause;
    std::shared_ptr<ForeignKey> key;
  };
  int refuse_repeated(const std::string &name) const;
  int refuse_taken(const ForeignKey &key) const;
  int report_taken(const std::string &name) const;
  bool is_taken(const Alter_info *info, const ForeignKey &key) const;
  int admit(const Alter_info *info, const std::string &below, const NewKey &made);

  THD *thd_;
  std::string own_;
  Definer::Statement statement_;
  Definer definer_;
  ForeignKeyChange *change_;
};

}  // namespace fron

#endif
