/* SPDX-License-Identifier: GPL-2.0-only

   Makes foreign keys from the clauses of one statement. */

#ifndef FRONDB_FOREIGN_DEFINER_H
#define FRONDB_FOREIGN_DEFINER_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_key.h"
#include "foreign/binding.h"

namespace fron {

class Definer {
 public:
  /** `own` is the key that the table has, or will have when it is complete. */
  Definer(THD *thd, const TABLE *form, const std::string &own, bool is_alter)
      : thd_(thd), form_(form), own_(own), is_alter_(is_alter) {}

  int define(const Foreign_key &clause, ForeignKey *key);
  void numbers_from(uint64_t number) { number_ = number; }

 private:
  int refuse(const std::string &label, const std::string &why, const char *with = "with ");
  int columns_of(const ::List<Key_part_spec> &list, const TABLE *table, const std::string &label,
                 std::vector<std::string> *names);
  int explain(const BindingFault &fault, const std::string &label, const ForeignKey &key, bool of_parent);
  int check_actions(const ForeignKey &key, const std::string &label);
  int bind_parent(const std::string &label, ForeignKey *key, const ::List<Key_part_spec> &columns);

  THD *thd_;
  const TABLE *form_;
  std::string own_;
  bool is_alter_;
  uint64_t number_ = 1;
};

}  // namespace fron

#endif
