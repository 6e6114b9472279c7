/* SPDX-License-Identifier: GPL-2.0-only

   Filling a row of an information schema table, field after field. */

#ifndef FRONDB_INSPECT_SCHEMA_ROW_H
#define FRONDB_INSPECT_SCHEMA_ROW_H

#include <my_global.h>
#include <sql_class.h>
#include <sql_i_s.h>
#include <sql_show.h>

#include <new>

#include <string>

#include "engine/api.h"

namespace fron {

/** A row in the making. */
class SchemaRow {
 public:
  SchemaRow(MYSQL_THD thd, TABLE *table) : thd_(thd), table_(table) { restore_record(table_, s->default_values); }

  SchemaRow &number(ulonglong value) {
    next()->store(longlong(value), true);
    return *this;
  }
  SchemaRow &seconds(double value) {
    next()->store(value);
    return *this;
  }
  SchemaRow &text(const std::string &value) {
    next()->store(value.data(), value.size(), &my_charset_utf8mb3_general_ci);
    return *this;
  }
  /** Leaves a field NULL. */
  SchemaRow &null() {
    field_++;
    return *this;
  }
  SchemaRow &text_or_null(const std::string &value, bool has) { return has ? text(value) : null(); }

  /** Whether it failed. */
  bool store() { return schema_table_store_record(thd_, table_); }

 private:
  Field *next() {
    Field *field = table_->field[field_++];
    field->set_notnull();
    return field;
  }

  MYSQL_THD thd_;
  TABLE *table_;
  uint field_ = 0;
};

/** Whether this user may look, and there is something to look at. */
bool may_look(MYSQL_THD thd);

/** An error of the engine while a table is filled: 1, or 0 if the engine is just closed. */
int schema_error(const Error &error);

using SchemaFill = int (*)(MYSQL_THD, TABLE_LIST *, Item *);

/** Out of memory is the server's error; nothing is thrown into it. */
template <SchemaFill Fill>
int guarded(MYSQL_THD thd, TABLE_LIST *tables, Item *condition) {
  try {
    return Fill(thd, tables, condition);
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
    return 1;
  }
}

inline int init_schema_table(void *place, ST_FIELD_INFO *fields, SchemaFill fill) {
  auto schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = fields;
  schema->fill_table = fill;
  return 0;
}

}  // namespace fron

#endif
