/* SPDX-License-Identifier: GPL-2.0-only

   Fills rows of information schema tables, field by field. */

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

/** A row to which fields are added in their order. */
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

  /** Stores the row. Returns true if that failed. */
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

/** Returns whether the user has the PROCESS privilege and the database is open. */
bool may_see(MYSQL_THD thd);

/** Raises an error of the engine while a table is filled, and returns 1; returns 0 if the engine is being closed. */
int schema_error(const Error &error);

using SchemaFill = int (*)(MYSQL_THD, TABLE_LIST *, Item *);

/** Turns std::bad_alloc into the server's error: no exception may reach the server. */
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
