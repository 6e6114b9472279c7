/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: ALTER TABLE without a copy of the table.

     check     decides whether the change needs a copy, and whether writers may go on
     prepare   no statement uses the table: makes the trees of new indexes; from now on writers keep journals
     main      writers go on: loads the rows into the new indexes (handler/build.cc)
     commit    no statement uses the table: applies the last journals, then writes one batch of records for all
               partitions

   The table is unchanged until the records are written. After a crash the server calls check_version() to learn which
   of its two definitions is valid. */

#include "handler/ha_frondb.h"

#include <algorithm>

#include "ddl/columns.h"
#include "ddl/index_build.h"
#include "ddl/refused_indexes.h"
#include "dictionary/dictionary.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "foreign/addition.h"
#include "foreign/define.h"
#include "table/options.h"
#include "txn/connection.h"
#include "txn/prepared_writes.h"

using namespace fron;

namespace {

/** Changes that need no new trees or rows: only the table's record in the dictionary changes. */
constexpr alter_table_operations OF_DEFINITION =
    ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_CHANGE_COLUMN_DEFAULT | ALTER_COLUMN_OPTION | ALTER_OPTIONS |
    ALTER_DROP_CHECK_CONSTRAINT | ALTER_RENAME | ALTER_RENAME_INDEX | ALTER_CHANGE_INDEX_COMMENT |
    ALTER_INDEX_IGNORABILITY | ALTER_INDEX_ORDER | ALTER_PARTITIONED | ALTER_ADD_FOREIGN_KEY |
    ALTER_DROP_FOREIGN_KEY;
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
    ALTER_COLUMN_NOT_NULLABLE | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_COLUMN_COLUMN_FORMAT | ALTER_COLUMN_INDEX_LENGTH |
    ALTER_COLUMN_UNVERSIONED | ALTER_CONVERT_TO | OF_VIRTUAL_COLUMNS;

}  // namespace

/** The state of an ALTER of one table or partition. Freed by the server. */
class fron::Alteration : public inplace_alter_handler_ctx {
 public:
  explicit Alteration(Share *of) : share(of), change{of->name, of->record} {}

  Share *share;
  TableChange change;
  /** Trees of dropped indexes. */
  std::vector<std::string> dropped;
  std::shared_ptr<IndexBuild> build;
  /** Foreign keys that existing rows must have parents for; null if there are none. */
  std::unique_ptr<ForeignKeyAddition> addition;
  /** The rows that are loaded into new indexes; later writes are in the journals. */
  Snapshot snapshot;
};

namespace {

/** Number of a TABLE's index of this name; MAX_KEY if there is none. */
uint index_of_name(const TABLE *table, const char *name) {
  for (uint k = 0; k < table->s->keys; k++)
    if (!my_strcasecmp(system_charset_info, table->key_info[k].name.str, name)) return k;
  return MAX_KEY;
}

/** The old name of an index of the new definition. */
const char *old_name(const Alter_inplace_info *info, const char *name) {
  for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
    if (!my_strcasecmp(system_charset_info, pair.new_key->name.str, name)) return pair.old_key->name.str;
  return name;
}

bool is_added(const Alter_inplace_info *info, const char *name) {
  for (uint i = 0; i < info->index_add_count; i++)
    if (!my_strcasecmp(system_charset_info, info->key_info_buffer[info->index_add_buffer[i]].name.str, name)) return true;
  return false;
}

/** Whether records of both tables have the same bytes. */
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

/** Whether both tables have the same primary key. */
bool same_primary(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info) {
  if (has_hidden_key(table) != has_hidden_key(altered)) return false;
  if (has_hidden_key(table)) return true;
  const char *name = altered->key_info[altered->s->primary_key].name.str;
  return !is_added(info, name) && index_of_name(table, old_name(info, name)) == table->s->primary_key;
}

/** The virtual fields of indexes that are added. */
std::vector<const Field *> added_virtual(const TABLE *altered, const Alter_inplace_info *info) {
  std::vector<const Field *> all;
  for (uint k = 0; k < altered->s->keys; k++) {
    const KEY &key = altered->key_info[k];
    if (!is_added(info, key.name.str)) continue;
    for (uint i = 0; i < key.user_defined_key_parts; i++) {
      const Field *field = altered->field[key.key_part[i].fieldnr - 1];
      if (!field->stored_in_db()) all.push_back(field);
    }
  }
  return all;
}

/** Whether new indexes can be built from stored fields: rows do not have the values of virtual ones. */
bool can_build(const TABLE *altered, const Alter_inplace_info *info) { return added_virtual(altered, info).empty(); }

/** Whether the new table has exactly the stored values of the old one: no column is converted, and no new date is
    computed. */
bool keeps_values(const TABLE *altered, const Alter_inplace_info *info) {
  if (info->handler_flags & ~KEEPS_VALUES) return false;
  // InnoDB copies too if the statement asks for a copy and changes a virtual column.
  if (info->handler_flags & ALTER_RECREATE && info->handler_flags & OF_VIRTUAL_COLUMNS) return false;
  // Rows that lose their primary key are written as new rows.
  if ((info->handler_flags & (ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX)) == ALTER_DROP_PK_INDEX) return false;
  for (const Field *field : added_virtual(altered, info))
    if (field->cmp_type() == TIME_RESULT) return false;
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

}  // namespace

// --- Check ---

enum_alter_inplace_result ha_frondb::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) {
  if (refuses_indexes(altered)) return HA_ALTER_ERROR;
  // The server shows the reason to a statement with ALGORITHM=INPLACE or LOCK=NONE.
  if ((info->unsupported_reason = why_copied(altered, info))) {
    Connection *connection = Connection::of(ha_thd());
    if (connection) connection->copies_dates = keeps_values(altered, info) ? ha_thd()->query_id : 0;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  bool reads_rows = info->handler_flags & (OF_ADDED_INDEX | ALTER_ADD_FOREIGN_KEY);
  return reads_rows ? HA_ALTER_INPLACE_NOCOPY_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}

/** Why an ALTER must copy the rows; null if it need not. */
const char *ha_frondb::why_copied(TABLE *altered, const Alter_inplace_info *info) const {
  alter_table_operations wanted = info->handler_flags;
  const HA_CREATE_INFO *create = info->create_info;
  // The row of a sequence has a fixed hidden key, which a table might give to another row.
  if (create->sequence || is_sequence()) return "SEQUENCE";
  if (altered->versioned() || table->versioned()) return "SYSTEM VERSIONING";
  if (wanted & ~(OF_DEFINITION | OF_DROPPED_INDEX | OF_ADDED_INDEX | OF_COLUMNS)) return "rows must be rewritten";
  if (wanted & OF_COLUMNS) {
    if (wanted & OF_ADDED_INDEX) return "the statement changes columns and adds indexes";
    if (info->error_if_not_empty || !keeps_rows(table, altered, info, share_->record.form.layout))
      return "rows must be rewritten";
  } else if (!same_records(table, altered)) {
    return "rows must be rewritten";
  }
  if (!same_primary(table, altered, info)) return "the primary key changes";
  // New options apply only to trees that are written anew.
  if (!same_tree_options(table->s->option_struct, altered->s->option_struct)) return "rows must be rewritten with other storage options";
  // The least value that the counter may be lowered to depends on the rows. All partitions must give the same answer:
  // the server uses the smallest of their answers, and a copy is not the smallest.
  bool is_partition = share_->name.find(PARTITION) != std::string::npos;
  if (create->used_fields & HA_CREATE_USED_AUTO &&
      (is_partition || create->auto_increment_value < share_->auto_increment))
    return "AUTO_INCREMENT becomes lower";
  // A copy calls create(), which refuses the option.
  if (asks_for_encryption(altered->s)) return "ENCRYPTED=YES";
  if (wanted & ALTER_ADD_FOREIGN_KEY) {
    if (wanted & OF_COLUMNS) return "the statement changes columns and adds foreign keys";
    // The parent's index must exist while rows are checked.
    if (wanted & (OF_ADDED_INDEX | ALTER_RENAME_INDEX | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN) && refers_to_itself(info->alter_info, share_->name))
      return "a foreign key refers to the table itself, which gets a new index";
  }
  if (!(wanted & OF_ADDED_INDEX)) return nullptr;
  if (info->ignore && wanted & ALTER_ADD_UNIQUE_INDEX) return "IGNORE may remove rows";
  return can_build(altered, info) ? nullptr : "a new index contains a virtual column";
}

bool ha_frondb::can_convert_nocopy(const Field &field, const Column_definition &wanted) const {
  return is_widened(field, wanted);
}

// --- Prepare ---

namespace {

/** Whether an error has been reported where it was found, in words that say more. */
bool is_reported(int error) {
  return error == HA_ERR_FOUND_DUPP_KEY || error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_DROP_INDEX_FK ||
         error == HA_ERR_CANNOT_ADD_FOREIGN;
}

}  // namespace

bool ha_frondb::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  int error = guarded([&] { return prepare_alter(altered, info); });
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}

int ha_frondb::prepare_alter(TABLE *altered, Alter_inplace_info *info) {
  warn_of_options(ha_thd(), info->create_info, altered->s, table->s);
  auto alteration = new Alteration(share_);
  if (!alteration) return HA_ERR_OUT_OF_MEM;
  info->handler_ctx = alteration;
  TableRecord &record = alteration->change.record;
  record.definition.assign(reinterpret_cast<const char *>(altered->s->tabledef_version.str),
                           altered->s->tabledef_version.length);
  if (info->handler_flags & OF_COLUMNS && !change_form(table, altered, info, &record.form)) return encoder_.damaged(0);
  if (int error = prepare_foreign_keys(altered, info, alteration)) return error;
  std::vector<IndexRecord> before;
  before.swap(record.indexes);
  std::vector<bool> stays(before.size());
  auto keep = [&](size_t place, const char *name) {
    record.indexes.push_back({before[place].number, name});
    stays[place] = true;
  };
  if (has_hidden_key(altered)) keep(0, "");
  else keep(0, altered->key_info[altered->s->primary_key].name.str);
  auto build = std::make_shared<IndexBuild>(record.number, &record.next_index);
  std::vector<size_t> places;
  for (uint k = 0; k < altered->s->keys; k++) {
    if (k == altered->s->primary_key) continue;
    const KEY &key = altered->key_info[k];
    if (is_added(info, key.name.str)) {
      places.push_back(record.indexes.size());
      record.indexes.push_back({0, key.name.str});
      build->add(altered, k, *share_);
      continue;
    }
    uint old = index_of_name(table, old_name(info, key.name.str));
    if (old == MAX_KEY) return ha_internal("ALTER TABLE keeps an index that FronDB's dictionary does not have");
    keep(tree_of(old), key.name.str);
  }
  for (size_t i = 0; i < before.size(); i++)
    if (!stays[i]) alteration->dropped.push_back(Dictionary::tree_name(record.number, before[i].number));
  if (places.empty()) return 0;
  alteration->build = build;
  return begin_build(altered, build, places, &record, &alteration->snapshot);
}

int ha_frondb::prepare_foreign_keys(TABLE *altered, Alter_inplace_info *info, Alteration *alteration) {
  if (int error = hold_parents(ha_thd(), altered, info->alter_info, share_->name)) return error;
  // For its refusals: made again at the commit, when the statement is alone with the table.
  ForeignKeyChange ignored;
  std::vector<ForeignKeyPtr> added;
  if (int error = define_in_place(ha_thd(), altered, info, share_->name, &ignored, &added)) return error;
  if (added.empty() || !checks_foreign_keys(ha_thd())) return 0;
  // A prepared transaction without a connection has written rows that nobody has checked.
  if (int error = check_prepared(share_->indexes[0].tree.get())) return error;
  alteration->addition = std::make_unique<ForeignKeyAddition>(added);
  alteration->addition->begin();
  return 0;
}

// --- Main ---

bool ha_frondb::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  auto alteration = static_cast<Alteration *>(info->handler_ctx);
  if (!alteration) return false;
  int error = guarded([&] {
    int failed = alteration->build ? build_indexes(alteration->build, alteration->snapshot.get(), altered) : 0;
    if (failed || !alteration->addition) return failed;
    may_crash_at("foreign key: begun");
    return alteration->addition->validate(ha_thd(), table, *share_);
  });
  alteration->snapshot.reset();
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}

// --- Commit ---

namespace {

/** All alterations of the statement: one, or one for each partition. */
std::vector<Alteration *> all_of(const Alter_inplace_info *info) {
  std::vector<Alteration *> all;
  if (!info->group_commit_ctx) {
    if (info->handler_ctx) all.push_back(static_cast<Alteration *>(info->handler_ctx));
    return all;
  }
  for (inplace_alter_handler_ctx **at = info->group_commit_ctx; *at; at++) all.push_back(static_cast<Alteration *>(*at));
  return all;
}

/** Opens the tree of an index as the ALTER leaves it. */
Error open_index_of(const TableRecord &record, const std::string &name, Tree *tree) {
  for (const IndexRecord &index : record.indexes)
    if (is_same_name(index.name, name)) return open_tree(Dictionary::tree_name(record.number, index.number), tree);
  return {};
}

/** Ends the journals of writers and retires them. With `all` retires the trees of dropped indexes too, otherwise
    those of new indexes. */
void end_build(Alteration *alteration, bool all) {
  alteration->addition.reset();
  std::vector<std::string> names = alteration->dropped;
  if (!all) names.clear();
  if (alteration->build) {
    alteration->build->give_up();
    alteration->share->set_build(nullptr);
    for (const std::string &journal : alteration->build->journals()) names.push_back(journal);
    if (!all)
      for (const BuiltIndex &built : alteration->build->indexes)
        if (built.index.tree) names.push_back(Dictionary::tree_name(alteration->change.record.number, built.record.number));
  }
  dictionary().retire(names);
}

}  // namespace

bool ha_frondb::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  int error = guarded([&] {
    if (!commit) {
      // Called for each partition, even for one that was not prepared.
      if (auto alteration = static_cast<Alteration *>(info->handler_ctx)) end_build(alteration, false);
      return 0;
    }
    std::vector<Alteration *> all = all_of(info);
    std::vector<TableChange> changes;
    for (Alteration *alteration : all) {
      if (alteration->build)
        if (int failed = finish_build(*alteration->build, altered)) return failed;
      changes.push_back(alteration->change);
      if (!alteration->addition) continue;
      const TableRecord &record = alteration->change.record;
      auto open = [&record](const std::string &index, Tree *tree) { return open_index_of(record, index, tree); };
      if (int failed = alteration->addition->finish(ha_thd(), open)) return failed;
    }
    if (info->create_info->used_fields & HA_CREATE_USED_AUTO)
      for (Alteration *alteration : all)
        if (int failed = alteration->share->raise_auto_increment(info->create_info->auto_increment_value)) return failed;
    ForeignKeyChange foreign;
    FenceHolder fence;
    if (int failed = define_in_place(ha_thd(), altered, info, share_->name, &foreign, nullptr)) return failed;
    if (moves_parents(share_->name, foreign))
      if (int failed = fence.take(ha_thd(), {share_->name})) return failed;
    std::lock_guard<std::mutex> changing(dictionary().foreign_keys().changing());
    foreign = {};
    if (int failed = define_in_place(ha_thd(), altered, info, share_->name, &foreign, nullptr)) return failed;
    if (Error failed = dictionary().alter(changes, foreign)) return ha_error(failed);
    // The change is done for all partitions; later errors cannot undo it.
    info->group_commit_ctx = nullptr;
    for (Alteration *alteration : all) end_build(alteration, true);
    may_crash_at("alter: trees dropped");
    return 0;
  });
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}
