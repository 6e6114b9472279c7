/* SPDX-License-Identifier: GPL-2.0-only

   Creates foreign keys from the clauses of one statement. */

#ifndef FRONDB_FOREIGN_DEFINER_H
#define FRONDB_FOREIGN_DEFINER_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_key.h"
#include "foreign/binding.h"

namespace fron {

/** Pushes a warning with the reason why a foreign key of the table `own` is refused, in InnoDB's words, and keeps it as
    the latest error. `label` is the name of the foreign key, quoted, or its columns. */
void warn_of_refusal(THD *thd, bool is_create, const std::string &own, const char *with, const std::string &label,
                     const std::string &why);

/** Returns why a side of a foreign key has no index. */
std::string reason_of(const BindingFault &fault, const ForeignKey &key, bool of_parent);
std::string reason_of_null(const std::string &column);

class Definer {
 public:
  enum class Statement { Create, AlterByCopy, AlterInPlace };

  /** `own` is the table's name in the dictionary, now or when the statement is complete. */
  Definer(THD *thd, const TABLE *form, const std::string &own, Statement statement)
      : thd_(thd), form_(form), own_(own), statement_(statement) {}

  /** Defines a foreign key. A refusal pushes a warning with its reason. For an ALTER in place without checks the result
      may be ALTER_ERROR_REPORTED: InnoDB adds foreign keys in place only without checks, and then has other errors. */
  int define(const Foreign_key &clause, ForeignKey *key);
  /** Refuses a defined foreign key by which an UPDATE of a parent could write NULL into a NOT NULL column. InnoDB
      checks this only after it has accepted all clauses of the statement. */
  int check_nulls(const Foreign_key &clause, const ForeignKey &key);
  /** Returns whether InnoDB would add the foreign key in place. */
  bool is_unchecked_in_place() const;
  void numbers_from(uint64_t number) { number_ = number; }

 private:
  int refuse(const std::string &why, uint number = 0, const char *with = "with ");
  int columns_of(const ::List<Key_part_spec> &list, const TABLE *table, bool of_parent, std::vector<std::string> *names);
  int explain(const BindingFault &fault, bool of_parent);
  int check_actions();
  int bind_parent();
  int bind_parent_in(const TABLE *parent);
  bool had_index();

  THD *thd_;
  const TABLE *form_;
  std::string own_;
  Statement statement_;
  uint64_t number_ = 1;
  /** The clause that define() is processing. */
  const Foreign_key *clause_ = nullptr;
  ForeignKey *key_ = nullptr;
};

}  // namespace fron

#endif
