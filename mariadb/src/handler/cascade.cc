/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h and foreign/checks.h. Here: the actions of foreign keys. The server has opened the
   children's table for the statement, since get_parent_foreign_key_list() names it, or foreign/child_tables.h opens
   it. Its handler finds the children and writes them, without triggers, and without the binary log, because a
   replica runs the action itself.

   A child's own children are processed before the next child, as in InnoDB, and may belong to the same table. So no
   record of a TABLE keeps a row while another row is processed. */

#include "handler/ha_frondb.h"

#include <key.h>
#include <sql_error.h>

#include "codec/entry.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "foreign/binding.h"
#include "foreign/child_tables.h"
#include "foreign/text.h"
#include "foreign/trees.h"
#include "txn/connection.h"
#include "txn/handlerton.h"

TABLE *find_fk_open_table(THD *thd, const char *db, size_t db_length, const char *table, size_t table_length);

using namespace fron;

namespace {

/** Maximum length of a chain of actions; as in InnoDB. */
constexpr size_t DEPTH_MAX = 15;
/** Number of children found at a time. */
constexpr size_t ROWS_A_STEP = 128;
constexpr size_t BYTES_A_STEP = 64 << 10;

/** Maximum number of times that the children's table may be renamed while it is opened. */
constexpr int RENAMES_MAX = 10;

/** Returns the present foreign key of the children; null if it does not exist any more. Their table and the foreign
    key may have been renamed, but the tree of the table's index is the same. */
ForeignKeyPtr renewed(const Children &children, const std::string &parent) {
  uint64_t id = 0, other;
  if (!children.side->other || Error(frondb_tree_id(children.side->other.get(), &id))) return nullptr;
  const ForeignKey &old = *children.side->key;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().of(parent)->referencing) {
    Tree tree;
    if (key->columns != old.columns || key->referenced != old.referenced || !key->child_side.is_bound) continue;
    if (open_index(key->child, key->child_side.index, &tree) || !tree || Error(frondb_tree_id(tree.get(), &other))) continue;
    if (other == id) return key;
  }
  return nullptr;
}

/** Finds the handler of the children's table, which the server has usually opened for the statement; otherwise opens
    the table. */
int open_child(THD *thd, Connection *connection, const Children &children, const std::string &parent, handler **handler) {
  ForeignKeyPtr key = children.side->key;
  for (int attempt = 0; key && attempt <= RENAMES_MAX; attempt++) {
    std::string database = shown_database(key->child), name = shown_table(key->child);
    TABLE *child = find_fk_open_table(thd, database.data(), database.size(), name.data(), name.size());
    bool is_lost = false;
    if (!child) {
      if (!connection->child_tables) connection->child_tables = std::make_shared<ChildTables>(thd);
      child = connection->child_tables->open(database, name, &is_lost);
    }
    if (child && child->file->ht == hton()) {
      *handler = child->file;
      return 0;
    }
    // The server has reported the reason.
    if (!child && !is_lost) return is_killed(thd) ? HA_ERR_ABORTED_BY_USER : HA_ERR_GENERIC;
    key = renewed(children, parent);
  }
  return ha_internal("the table of the children of a foreign key cannot be found");
}

int refuse_depth(THD *thd) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_ROW_IS_REFERENCED,
                      "FronDB: Cannot delete/update rows with cascading foreign key constraints that exceed max depth of "
                      "%zu. Please drop extra constraints and try again", DEPTH_MAX);
  return HA_ERR_FK_DEPTH_EXCEEDED;
}

/** Returns the text of a part in a key image. */
std::string_view text_in(const KEY_PART_INFO &part, const uchar *data) {
  auto chars = reinterpret_cast<const char *>(data);
  if (part.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART)) return {chars + HA_KEY_BLOB_LENGTH, uint2korr(data)};
  // CHAR(n) is filled with spaces.
  CHARSET_INFO *cs = part.field->charset();
  size_t length = part.length;
  if (part.field->type() == MYSQL_TYPE_STRING && cs != &my_charset_bin) length = cs->lengthsp(chars, length);
  return {chars, length};
}

/** Stores a part of a parent's key image in the child's field. Returns false if it does not fit. A CHAR or BINARY is
    filled up; has_key_of_parent() then checks whether it equals the parent's value. */
bool store(const KEY_PART_INFO &part, const uchar *data, uint8_t kind, Field *field) {
  constexpr uint8_t TEXT = 2;
  if (kind != TEXT) {
    field->set_key_image(data, part.length);
    return true;
  }
  std::string_view text = text_in(part, data);
  // Check this first, because in a strict mode the server would report a longer text as its own error.
  if (field->charset()->numchars(text.data(), text.data() + text.size()) > field->char_length()) return false;
  return field->store(text.data(), text.size(), part.field->charset()) == 0;
}

}  // namespace

int ha_frondb::act_on_children(const Children &children, const Cause &cause) {
  if (!changes_children(children.action)) return foreign_.refuse_children(children);
  const ForeignKeyPtr &key = children.side->key;
  handler *child = nullptr;
  if (int error = open_child(ha_thd(), use_.connection, children, share_->name, &child)) return error;
  Cause next{&cause, &key->child, children.action != Action::Cascade || !children.image.empty(), key.get()};
  int error = static_cast<ha_frondb *>(child)->act(children, next);
  if (error && !use_.connection->failed_foreign_key) use_.connection->failed_foreign_key = key;
  return error;
}

/** Deletes or changes all children of a row. */
int ha_frondb::act(const Children &children, const Cause &cause) {
  if (!use_.connection) return ha_internal("the table of the children of a foreign key is not locked in this statement");
  uint index = index_of(table, children.side->key->child_side);
  if (index == MAX_KEY) return HA_ERR_ROW_IS_REFERENCED;
  std::string lo = children.prefix;
  PrefixRange range(children.prefix);
  bool has_waited = false;
  for (;;) {
    // Children are read before any of them is changed, because their own actions may use this handler.
    std::vector<std::string> found;
    bool is_last = true;
    {
      fron::Cursor cursor;
      if (Error error = frondb_txn_cursor(use_.connection->txn(), encoder_.tree(index), slice(lo), range.to(),
                                          FRONDB_LOCK_EXCLUSIVE_ENTRIES, FRONDB_WAIT, cursor.out()))
        return ha_error(error);
      frondb_rows rows;
      if (Error error = cursor.read(ROWS_A_STEP, BYTES_A_STEP, &rows)) return ha_error(error);
      for (size_t i = 0; i < rows.count; i++) {
        frondb_slice primary = rows.entries[i].key;
        std::string_view covered;
        if (!is_primary(index) && !split_entry(rows.entries[i].key, rows.entries[i].value, &primary, &covered))
          return encoder_.damaged(tree_of(index));
        lo = view(rows.entries[i].key);
        is_last = false;
        if (is_current(children.side->key->child_side, rows.entries[i].key, rows.entries[i].value)) found.emplace_back(view(primary));
      }
    }
    if (is_last) {
      bool is_there;
      if (int error = wait_for_prepared(use_.connection->txn(), encoder_.tree(index), children.prefix,
                                        &children.side->key->child_side, &is_there))
        return error;
      // A transaction that was prepared has left a child: search again from the beginning. All keys with the prefix are
      // locked now, so no further child can appear.
      if (!is_there || has_waited) return 0;
      has_waited = true;
      lo = children.prefix;
      continue;
    }
    // Continue after the last entry.
    lo.push_back(0);
    for (const std::string &primary : found) {
      if (is_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
      int error = guarded([&] { return act_on_row(children, primary, cause); });
      // The user has not written the duplicate row, so the error names the foreign key.
      if (error == HA_ERR_FOUND_DUPP_KEY) {
        uint duplicate = use_.connection->duplicate_key;
        use_.connection->duplicate_foreign_index = duplicate < table->s->keys ? table->key_info[duplicate].name.str : "";
        use_.connection->failed_foreign_key = children.side->key;
        return HA_ERR_FOREIGN_DUPLICATE_KEY;
      }
      if (error) return error;
    }
  }
}

int ha_frondb::act_on_row(const Children &children, const std::string &primary, const Cause &cause) {
  bool found;
  if (int error = load_child(primary, &found)) return error;
  // An earlier action may have deleted the child, or given it another parent: rows may refer to each other in a cycle.
  if (!found) return 0;
  child_key_.clear();
  encoder_.append_key(index_of(table, children.side->key->child_side), table->record[0], &child_key_);
  if (child_key_.compare(0, children.prefix.size(), children.prefix) != 0) return 0;
  use_.connection->note_action(share_);
  if (cause.is_update && cause.before->updates(share_->name)) {
    note_foreign_error(ha_thd(), "Trying an update, possibly causing a cyclic cascaded update in the child table: " +
                                     failure_of(ha_thd(), *children.side->key));
    return HA_ERR_ROW_IS_REFERENCED;
  }
  if (cause.depth() >= DEPTH_MAX) return refuse_depth(ha_thd());
  bool keeps_history = table->versioned(VERS_TIMESTAMP) && table->vers_write;
  if (!cause.is_update && !keeps_history) return remove_row(table->record[0], primary, cause);
  store_record(table, record[1]);
  if (!cause.is_update) {
    end_version();
    return change_row(table->record[1], table->record[0], primary, cause);
  }
  bool is_changed;
  if (int error = set_columns(children, &is_changed)) return error;
  if (!is_changed) return 0;
  if (!keeps_history) return change_row(table->record[1], table->record[0], primary, cause);
  // Actions of the row's own children may use the records, and the memory of the blobs.
  std::vector<uchar> old(table->record[1], table->record[1] + table->s->reclength);
  std::vector<char> blobs = std::move(child_row_);
  table->vers_update_fields();
  renew_virtual_fields();
  if (int error = change_row(table->record[1], table->record[0], primary, cause)) return error;
  memcpy(table->record[0], old.data(), old.size());
  return insert_history();
}

/** Makes the row in the first record an old version that ends now. */
void ha_frondb::end_version() {
  table->vers_update_end();
  renew_virtual_fields();
}

/** Inserts the row in the first record as an old version, which ends now. */
int ha_frondb::insert_history() {
  end_version();
  const Field *begin = table->vers_start_field(), *end = table->vers_end_field();
  // The row has changed twice at this moment: only the last state counts.
  if (begin->cmp(begin->ptr, end->ptr) >= 0) return 0;
  if (int error = insert_row(table->record[0])) return error;
  count(1);
  return 0;
}

/** Reads a row into the first record and locks it. */
int ha_frondb::load_child(const std::string &primary, bool *found) {
  if (Error error = frondb_txn_get(use_.connection->txn(), encoder_.rows(), slice(primary), FRONDB_LOCK_EXCLUSIVE,
                                   FRONDB_WAIT, buffer_.get(), found))
    return ha_error(error);
  if (!*found) return 0;
  std::string_view row = buffer_.value();
  child_row_.assign(row.begin(), row.end());
  row = {child_row_.data(), child_row_.size()};
  if (!unpack_row(table, share_->record.form, row, table->record[0])) return encoder_.damaged(0);
  compute_virtual_fields();
  return 0;
}

void ha_frondb::compute_virtual_fields() {
  if (!table->vfield) return;
  MY_BITMAP *columns = tmp_use_all_columns(table, &table->read_set);
  table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
  tmp_restore_column_map(&table->read_set, columns);
}

/** Computes the virtual fields of the first record again, after a change of its columns. The end of a version, too, is
    part of virtual fields: of the hidden columns with hashes of unique keys. */
void ha_frondb::renew_virtual_fields() {
  for (Field **field = table->vfield; field && *field; field++)
    if (!(*field)->stored_in_db()) table->update_virtual_field(*field, true);
}

/** Returns whether the new key of the parent finds the child in the first record, or a column is NULL. */
bool ha_frondb::has_key_of_parent(const Children &children) {
  const ForeignSide &side = *children.side;
  if (side.columns->has_null(children.image)) return true;
  std::string wanted;
  if (!side.columns->encode_as(children.image, side.key->child_side.parts, &wanted)) return false;
  child_key_.clear();
  encoder_.append_key(index_of(table, side.key->child_side), table->record[0], &child_key_);
  return child_key_.compare(0, wanted.size(), wanted) == 0;
}

/** Gives the columns of the foreign key in the first record their new values. */
int ha_frondb::set_columns(const Children &children, bool *is_changed) {
  const KEY &key = table->key_info[index_of(table, children.side->key->child_side)];
  const uchar *image = children.image.data(), *image_before = children.image_before.data();
  MY_BITMAP *columns = tmp_use_all_columns(table, &table->write_set);
  bool fits = true;
  for (size_t i = 0; i < children.side->key->columns.size() && fits; i++) {
    Field *field = table->field[key.key_part[i].fieldnr - 1];
    const KEY_PART_INFO *part = &children.side->columns->part(i);
    bool is_null = children.action == Action::SetNull || (part->null_bit && *image);
    // As in InnoDB: if the parent's column has not changed, the child keeps its own bytes, for example another case.
    bool stays = !is_null && memcmp(image, image_before, part->store_length) == 0;
    if (is_null) {
      fits = field->real_maybe_null();
      field->set_null();
    } else if (!stays) {
      field->set_notnull();
      fits = store(*part, image + (part->null_bit ? 1 : 0), children.side->key->parent_side.parts[i].kind, field);
    }
    if (!image) continue;
    image += part->store_length;
    image_before += part->store_length;
  }
  tmp_restore_column_map(&table->write_set, columns);
  if (fits && children.action == Action::Cascade) fits = has_key_of_parent(children);
  if (!fits) {
    note_foreign_error(ha_thd(), "The new value does not fit in the column of the child table, or is another one or NULL there: " +
                                     failure_of(ha_thd(), *children.side->key));
    return HA_ERR_ROW_IS_REFERENCED;
  }
  renew_virtual_fields();
  *is_changed = memcmp(table->record[0], table->record[1], table->s->reclength) != 0;
  return 0;
}
