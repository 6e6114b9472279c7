/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/binding.h. */

#include "foreign/binding.h"

#include <key.h>
#include <sql_error.h>
#include <table.h>

#include <algorithm>

#include "engine/server.h"
#include "table/index.h"

namespace fron {
namespace {

using Parts = std::vector<const KEY_PART_INFO *>;

Parts own_parts_of(const KEY &key) {
  Parts parts;
  for (uint i = 0; i < key.user_defined_key_parts; i++) parts.push_back(&key.key_part[i]);
  return parts;
}

/** Returns the parts of an index, followed by the parts of the primary key, by which the entries are sorted too. The
    entries of a unique index have the primary key in their values, so it is not among their parts. */
Parts extended_parts_of(const TABLE *table, const KEY &key) {
  Parts parts = own_parts_of(key);
  const KEY *primary = primary_key_of(table);
  if (!primary || key.flags & HA_NOSAME) return parts;
  for (const KEY_PART_INFO *part : own_parts_of(*primary)) {
    // InnoDB omits a column of the primary key that the index already has. An entry of FronDB has the column twice, so
    // the next column does not directly follow the index's own columns.
    auto is_same = [part](const KEY_PART_INFO *own) { return own->fieldnr == part->fieldnr; };
    if (std::any_of(parts.begin(), parts.end(), is_same)) break;
    parts.push_back(part);
  }
  return parts;
}

/** Returns whether an index whose entries are sorted by these parts can be used: its first parts must be the
    columns. */
bool qualifies(const TABLE *table, const Parts &parts, const std::vector<std::string> &columns,
               const std::vector<PartShape> *types, BindingFault *fault) {
  if (parts.size() < columns.size()) return false;
  for (size_t i = 0; i < columns.size(); i++) {
    const Field *field = table->field[parts[i]->fieldnr - 1];
    if (!is_same_name({field->field_name.str, field->field_name.length}, columns[i])) return false;
    if (!is_whole_field(*parts[i])) {
      *fault = {BindingFault::PrefixOnly, i, field->field_name.str};
      return false;
    }
    if (types && !shape_of(*parts[i]).matches((*types)[i])) {
      *fault = {BindingFault::TypesDiffer, i, field->field_name.str};
      return false;
    }
  }
  return true;
}

/** Returns whether the last part of a key is the row end of a versioned table, which the server adds to unique keys. */
bool ends_with_time(const TABLE *table, const KEY &key) {
  return key.key_part[key.user_defined_key_parts - 1].fieldnr - 1 == table->vers_end_field()->field_index;
}

/** Returns the bytes with which the primary keys of current rows end; empty if they have no such end. */
std::string current_of(const TABLE *table) {
  const KEY *primary = primary_key_of(table);
  if (!primary || !ends_with_time(table, *primary)) return {};
  Field *end = table->vers_end_field();
  std::vector<uchar> place(end->pack_length());
  uchar *row = end->ptr;
  end->ptr = place.data();
  end->set_max();
  std::string bytes(end->sort_length(), 0);
  end->sort_string(reinterpret_cast<uchar *>(bytes.data()), uint(bytes.size()));
  end->ptr = row;
  return bytes;
}

KeySide side_of(const TABLE *table, const KEY &key, const Parts &parts, size_t columns) {
  KeySide side;
  side.is_bound = true;
  side.index = key.name.str;
  for (size_t i = 0; i < columns; i++) side.parts.push_back(shape_of(*parts[i]));
  size_t own_parts = key.user_defined_key_parts;
  if (table->versioned()) {
    side.current = current_of(table);
    if (ends_with_time(table, key)) own_parts--;
  }
  side.is_exact = key.flags & HA_NOSAME && own_parts == columns;
  return side;
}

}  // namespace

bool bind_side(const TABLE *table, bool is_parent, const std::vector<std::string> &columns,
               const std::vector<PartShape> *types, KeySide *side, BindingFault *fault) {
  *fault = {};
  std::vector<uint> order;
  uint preferred = side->is_bound ? index_of(table, *side) : MAX_KEY;
  if (preferred != MAX_KEY) order.push_back(preferred);
  for (uint k = 0; k < table->s->keys; k++)
    if (k != preferred) order.push_back(k);
  for (uint k : order) {
    const KEY &key = table->key_info[k];
    if (key.algorithm == HA_KEY_ALG_LONG_HASH) continue;
    Parts parts = is_parent ? extended_parts_of(table, key) : own_parts_of(key);
    if (!qualifies(table, parts, columns, types, fault)) continue;
    *side = side_of(table, key, parts, columns.size());
    if (table->versioned() && side->current.empty()) {
      fault->reason = BindingFault::NoPrimaryKey;
      return false;
    }
    fault->reason = BindingFault::None;
    return true;
  }
  return false;
}

bool is_history(const TABLE *table, const uchar *record) {
  if (!table->versioned()) return false;
  const Field *end = table->vers_end_field();
  return !end->is_max(end->ptr + (record - table->record[0]));
}

uint index_of(const TABLE *table, const KeySide &side) {
  for (uint k = 0; k < table->s->keys; k++)
    if (is_same_name({table->key_info[k].name.str, table->key_info[k].name.length}, side.index)) return k;
  return MAX_KEY;
}

Field *field_of(const TABLE *table, const std::string &name) {
  for (Field **field = table->field; *field; field++)
    if (is_same_name({(*field)->field_name.str, (*field)->field_name.length}, name)) return *field;
  return nullptr;
}

Definition::~Definition() {
  if (is_open_) closefrm(&table_);
  if (has_share_) free_table_share(&share_);
}

bool Definition::open(THD *thd, const std::string &key) {
  path_ = "./" + key;
  database_ = shown_database(key);
  name_ = shown_table(key);
  // Ignore the server's errors: the caller has its own error for a table that does not exist.
  Dummy_error_handler ignored;
  thd->push_internal_handler(&ignored);
  init_definition(thd, &share_, database_.c_str(), name_.c_str(), path_.c_str());
  has_share_ = true;
  const LEX_CSTRING alias = {"", 0};
  if (open_table_def(thd, &share_, GTS_TABLE) == OPEN_FRM_OK)
    is_open_ = open_table_from_share(thd, &share_, &alias, 0, READ_ALL, 0, &table_, true) == 0;
  thd->pop_internal_handler();
  return is_open_;
}

}  // namespace fron
