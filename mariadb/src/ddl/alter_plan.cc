/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/alter_plan.h. */

#include "ddl/alter_plan.h"

#include <my_sys.h>
#include <mysqld_error.h>
#include <partition_info.h>

#include <algorithm>

#include "engine/server.h"
#include "foreign/clauses.h"
#include "table/auto_increment.h"
#include "table/index.h"
#include "table/options.h"

namespace fron {
namespace {

/** Changes that need no new trees or rows: only the table's record in the dictionary changes. */
constexpr alter_table_operations OF_DEFINITION =
    ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_CHANGE_COLUMN_DEFAULT | ALTER_COLUMN_OPTION | ALTER_OPTIONS |
    ALTER_DROP_CHECK_CONSTRAINT | ALTER_RENAME | ALTER_RENAME_INDEX | ALTER_CHANGE_INDEX_COMMENT |
    ALTER_INDEX_IGNORABILITY | ALTER_INDEX_ORDER | ALTER_PARTITIONED | ALTER_ADD_FOREIGN_KEY |
    ALTER_DROP_FOREIGN_KEY | ALTER_COLUMN_INDEX_LENGTH | ALTER_COLUMN_UNVERSIONED |
    ALTER_COLUMN_COLUMN_FORMAT | ALTER_CONVERT_TO;
constexpr alter_table_operations OF_DROPPED_INDEX =
    ALTER_DROP_INDEX | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;
constexpr alter_table_operations OF_ADDED_INDEX =
    ALTER_ADD_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
constexpr alter_table_operations OF_VIRTUAL_COLUMNS =
    ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN | ALTER_VIRTUAL_COLUMN_ORDER;
/** Changes that keep all stored values, for which InnoDB needs no copy. */
constexpr alter_table_operations KEEPS_VALUES =
    OF_DEFINITION | OF_DROPPED_INDEX | OF_ADDED_INDEX | ALTER_RECREATE | ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX |
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_NULLABLE |
    ALTER_COLUMN_NOT_NULLABLE | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | OF_VIRTUAL_COLUMNS;
constexpr alter_table_operations OF_REBUILD = ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX | ALTER_RECREATE;
/** Changes of a virtual column's expression. Only indexes contain its values. */
constexpr alter_table_operations OF_EXPRESSIONS = ALTER_VIRTUAL_GCOL_EXPR | ALTER_COLUMN_VCOL;
constexpr alter_table_operations IN_PLACE =
    OF_DEFINITION | OF_DROPPED_INDEX | OF_ADDED_INDEX | OF_COLUMNS | OF_REBUILD | OF_EXPRESSIONS;

/** Returns whether records of both tables have the same form: fields of the same types and lengths at the same places.
    */
bool same_records(const TABLE *a, const TABLE *b) {
  if (a->s->fields != b->s->fields || a->s->reclength != b->s->reclength || a->s->null_bytes != b->s->null_bytes)
    return false;
  for (uint i = 0; i < a->s->fields; i++) {
    const Field *x = a->field[i], *y = b->field[i];
    if (x->ptr - a->record[0] != y->ptr - b->record[0] || x->null_bit != y->null_bit ||
        x->real_type() != y->real_type() || x->pack_length() != y->pack_length() ||
        x->stored_in_db() != y->stored_in_db())
      return false;
  }
  return true;
}

bool same_primary(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info) {
  if (has_hidden_key(table) != has_hidden_key(altered)) return false;
  if (has_hidden_key(table)) return true;
  const char *name = altered->key_info[altered->s->primary_key].name.str;
  return !is_added(info, name) && index_of_name(table, old_name(info, name)) == table->s->primary_key;
}

/** Returns whether an added index has a virtual column with a date or a time. */
bool adds_virtual_time(const TABLE *altered, const Alter_inplace_info *info) {
  for (uint k = 0; k < altered->s->keys; k++) {
    const KEY &key = altered->key_info[k];
    if (!is_added(info, key.name.str)) continue;
    for (uint i = 0; i < key.user_defined_key_parts; i++) {
      const Field *field = altered->field[key.key_part[i].fieldnr - 1];
      if (!field->stored_in_db() && field->cmp_type() == TIME_RESULT) return true;
    }
  }
  return false;
}

/** Returns whether an existing index must be rebuilt because its entries change. */
bool changes_index(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const OldNumbers &old,
                   const KEY &key) {
  if (info->handler_flags & OF_EXPRESSIONS && has_virtual_part(altered, key)) return true;
  for (uint i = 0; i < key.user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key.key_part[i];
    uint number = part.fieldnr - 1;
    if (old[number] == Slot::GONE) continue;
    const Field *before = table->field[old[number]], *after = altered->field[number];
    bool may_change = is_whole_field(part) || before->real_maybe_null() != after->real_maybe_null() ||
                      before->charset() != after->charset();
    if (may_change && changes_entries(before, after)) return true;
  }
  return false;
}

/** Returns whether a changed value may change other values: of a stored generated column, or the partition. */
bool has_derived_values(const TABLE *altered) {
  for (Field **field = altered->vfield; field && *field; field++)
    if ((*field)->stored_in_db()) return true;
  return altered->part_info;
}

/** Returns whether the partition of a row, or a generated column, depends on how a column compares. */
bool depends_on(const TABLE *table, uint field) {
  if (table->part_info && bitmap_is_set(&table->part_info->full_part_field_set, field)) return true;
  std::vector<my_bitmap_map> bits(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map) + 1);
  for (Field **at = table->vfield; at && *at; at++) {
    MY_BITMAP used;
    if (my_bitmap_init(&used, bits.data(), table->s->fields)) return true;
    (*at)->vcol_info->expr->walk(&Item::register_field_in_bitmap, 1, &used);
    if (bitmap_is_set(&used, field)) return true;
  }
  return false;
}

/** Returns why the columns of existing rows cannot be read with the new definition; null if they can. Collects the
    columns that become NOT NULL. */
const char *plan_columns(THD *thd, const TABLE *table, TABLE *altered, const Alter_inplace_info *info, AlterPlan *plan) {
  plan->converts_null = info->ignore || !thd->is_strict_mode();
  for (uint i = 0; i < altered->s->fields; i++) {
    Field *after = altered->field[i];
    if (plan->old[i] == Slot::GONE) {
      if (after->unireg_check == Field::NEXT_NUMBER) return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_AUTOINC);
      if (!has_one_default(after)) return "a new column has another value in each row";
      continue;
    }
    const Field *before = table->field[plan->old[i]];
    if (!keeps_bytes(before, after)) return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
    if (before->charset() != after->charset() && depends_on(table, plan->old[i]))
      return "a generated column or the partition depends on the column";
    // A column that becomes AUTO_INCREMENT: the next number depends on the rows.
    if (after->unireg_check == Field::NEXT_NUMBER && before->unireg_check != Field::NEXT_NUMBER)
      return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_AUTOINC);
    if (!before->real_maybe_null() || after->real_maybe_null() || !after->stored_in_db()) continue;
    // In a TIMESTAMP, the time of the statement replaces NULL, also in strict mode. In other types, a converted NULL
    // needs a copy if the column has a default expression, or if other values may derive from the new value.
    bool is_time = after->type() == MYSQL_TYPE_TIMESTAMP || after->type() == MYSQL_TYPE_TIMESTAMP2;
    if (is_time || (plan->converts_null && (after->default_value || has_derived_values(altered))))
      return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOT_NULL);
    plan->not_null.push_back(i);
  }
  return nullptr;
}

/** Returns whether all rows must be written again. */
bool needs_rebuild(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const Share &share,
                   const AlterPlan &plan) {
  if (info->handler_flags & ALTER_RECREATE) return true;
  if (!same_fixed_options(table->s->option_struct, altered->s->option_struct)) return true;
  if (!same_primary(table, altered, info)) return true;
  const KEY *primary = primary_key_of(altered);
  if (primary && changes_index(table, altered, info, plan.old, *primary)) return true;
  if (plan.converts_null && !plan.not_null.empty()) return true;
  return has_too_many_slots(table, altered, plan.old, share.record.form.layout);
}

/** Returns why foreign keys cannot be added in place; null if they can. */
const char *plan_foreign_keys(THD *thd, const Alter_inplace_info *info, const Share &share, const AlterPlan &plan) {
  if (!(info->handler_flags & ALTER_ADD_FOREIGN_KEY) || !checks_foreign_keys(thd)) return nullptr;
  bool changes_columns = info->handler_flags & OF_COLUMNS || plan.rebuilds;
  // A new foreign key of a table to itself looks up parents in one of its indexes while rows are checked, so the
  // statement must not drop or rename an index or a column.
  constexpr alter_table_operations OF_PARENT = OF_DROPPED_INDEX | ALTER_RENAME_INDEX | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN;
  bool changes_parent = info->handler_flags & OF_PARENT && refers_to_itself(info->alter_info, share.name);
  return changes_columns || changes_parent ? my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_FK_CHECK) : nullptr;
}

/** Returns why the statement must copy the rows, whatever happens to the columns; null if it need not. */
const char *refuse(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const Share &share) {
  alter_table_operations wanted = info->handler_flags;
  const HA_CREATE_INFO *create = info->create_info;
  // The row of a sequence has a fixed hidden key, which a table might give to another row.
  if (create->sequence || table->s->sequence) return "the table is or becomes a sequence";
  if (altered->versioned() != table->versioned()) return "system versioning is added or dropped";
  // A unique key that is too long for an index has a hidden column, whose values the server computes and checks.
  if ((has_hash_column(table) || has_hash_column(altered)) && wanted & ~OF_DEFINITION)
    return "a unique key of the table is too long for an index";
  if (wanted & (ALTER_ADD_STORED_GENERATED_COLUMN | ALTER_STORED_GCOL_EXPR)) return "a stored generated column is computed";
  if (wanted & ALTER_ADD_CHECK_CONSTRAINT) return "rows must be checked against a constraint";
  if (wanted & (ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE))
    return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
  if (wanted & ~IN_PLACE || info->error_if_not_empty) return "rows must be rewritten";
  // The partition of a row may depend on the expression.
  if (wanted & ALTER_VIRTUAL_GCOL_EXPR && table->part_info) return "the expression of a generated column changes";
  if ((wanted & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX ||
      (has_hidden_key(altered) && !has_hidden_key(table)))
    return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK);
  if (info->ignore && wanted & (ALTER_ADD_PK_INDEX | ALTER_ADD_UNIQUE_INDEX))
    return my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE);
  if (!(wanted & OF_COLUMNS) && !same_records(table, altered)) return "rows must be rewritten";
  // The minimum to which the counter may be lowered depends on the rows. All partitions must give the same answer: the
  // server uses the smallest of their answers, and the answer for a copy is not the smallest.
  bool is_partition = share.name.find(PARTITION) != std::string::npos;
  // HA_CREATE_USED_AUTO is also set if the statement drops the AUTO_INCREMENT column.
  if (create->used_fields & HA_CREATE_USED_AUTO && altered->found_next_number_field &&
      (is_partition || may_lower_counter(table, share, create->auto_increment_value)))
    return "AUTO_INCREMENT becomes lower";
  // A copy calls create(), which refuses the option.
  if (const char *refused = refused_option(altered->s)) return refused;
  return nullptr;
}

}  // namespace

uint index_of_name(const TABLE *table, const char *name) {
  for (uint k = 0; k < table->s->keys; k++)
    if (is_same_identifier(table->key_info[k].name.str, name)) return k;
  return MAX_KEY;
}

const char *old_name(const Alter_inplace_info *info, const char *name) {
  for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
    if (is_same_identifier(pair.new_key->name.str, name)) return pair.old_key->name.str;
  return name;
}

bool is_added(const Alter_inplace_info *info, const char *name) {
  for (uint i = 0; i < info->index_add_count; i++)
    if (is_same_identifier(info->key_info_buffer[info->index_add_buffer[i]].name.str, name)) return true;
  return false;
}

bool has_virtual_part(const TABLE *altered, const KEY &key) {
  for (uint i = 0; i < key.user_defined_key_parts; i++)
    if (!altered->field[key.key_part[i].fieldnr - 1]->stored_in_db()) return true;
  return false;
}

AlterPlan plan_alter(THD *thd, const TABLE *table, TABLE *altered, const Alter_inplace_info *info, const Share &share) {
  AlterPlan plan;
  if ((plan.copied_because = refuse(table, altered, info, share))) return plan;
  if (!match_columns(table, altered, info, &plan.old)) {
    plan.copied_because = "rows must be rewritten";
    return plan;
  }
  if ((plan.copied_because = plan_columns(thd, table, altered, info, &plan))) return plan;
  plan.rebuilds = needs_rebuild(table, altered, info, share, plan);
  // The flag is also true if the statement repeats the options: an earlier ALTER may have ended after it changed the
  // trees and before it changed the definition, so that the two differ.
  plan.changes_packing = !plan.rebuilds && (info->handler_flags & ALTER_CHANGE_CREATE_OPTION ||
                                            !same_packing(table->s, altered->s));
  for (uint k = 0; k < altered->s->keys; k++) {
    const KEY &key = altered->key_info[k];
    if (k == altered->s->primary_key) continue;
    if (!plan.rebuilds && !is_added(info, key.name.str) && !changes_index(table, altered, info, plan.old, key)) continue;
    plan.built.push_back(k);
    // With IGNORE, rows with equal keys would have to be removed, which only a copy does.
    bool may_be_equal = !plan.not_null.empty() || !is_added(info, key.name.str);
    if (info->ignore && key.flags & HA_NOSAME && may_be_equal && (!plan.rebuilds || !plan.not_null.empty()))
      plan.copied_because = my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE);
  }
  if (!plan.copied_because) plan.copied_because = plan_foreign_keys(thd, info, share, plan);
  return plan;
}

bool copies_values(const TABLE *altered, const Alter_inplace_info *info) {
  if (info->handler_flags & ~KEEPS_VALUES) return false;
  // If the statement asks for a rebuild (FORCE) and changes a virtual column, InnoDB copies the table too, and checks
  // all dates.
  if (info->handler_flags & ALTER_RECREATE && info->handler_flags & OF_VIRTUAL_COLUMNS) return false;
  // Rows that lose their primary key are written as new rows.
  if ((info->handler_flags & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX) return false;
  if (adds_virtual_time(altered, info)) return false;
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  for (Field **at = altered->field; *at; at++) {
    const Create_field *column = columns++;
    if (!column) return false;
    // A constant was checked when the column was defined, and the time of the statement is a valid date.
    const Virtual_column_info *value = (*at)->default_value;
    if (!column->field && value && value->flags & ~(VCOL_SESSION_FUNC | VCOL_TIME_FUNC)) return false;
  }
  return true;
}

}  // namespace fron
