/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/define.h. */

#include "foreign/define.h"

#include <handler.h>
#include <mdl.h>
#include <sql_alter.h>

#include <algorithm>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/binding.h"
#include "foreign/clauses.h"
#include "foreign/definer.h"
#include "foreign/new_keys.h"
#include "foreign/text.h"

namespace fron {
namespace {

using Change = ForeignKeyChange;

/** Binds one side of `key`, the parent's if `is_parent`, by the new definition `form` of its table. If its index is
    gone and foreign keys are not checked, leaves the side unbound. `why`, if not null, receives the reason of a
    refusal. */
int bind_again(THD *thd, const TABLE *form, const ForeignKey &key, bool is_parent, KeySide *side, std::string *why = nullptr) {
  const KeySide &other = is_parent ? key.child_side : key.parent_side;
  BindingFault fault;
  const std::vector<PartShape> *types = other.is_bound ? &other.parts : nullptr;
  bool sets_null = key.on_delete == Action::SetNull || key.on_update == Action::SetNull;
  auto is_not_null = [form](const std::string &column) {
    const Field *field = field_of(form, column);
    return !field || !field->real_maybe_null();
  };
  *side = is_parent ? key.parent_side : key.child_side;
  auto not_null = is_parent || !sets_null ? key.columns.end() : std::find_if(key.columns.begin(), key.columns.end(), is_not_null);
  bool can_act = not_null == key.columns.end();
  if (can_act && bind_side(form, is_parent, is_parent ? key.referenced : key.columns, types, side, &fault)) return 0;
  if (why) *why = can_act ? reason_of(fault, key, is_parent) : reason_of_null(*not_null);
  *side = {};
  side->index = KeySide::NO_INDEX;
  return checks_foreign_keys(thd) ? HA_ERR_CANNOT_ADD_FOREIGN : 0;
}

/** Binds a side of a foreign key that an ALTER by copy keeps. The error of a refusal is InnoDB's, which names the last
    rename, because InnoDB refuses only after it has copied the table. `own`: the table; `below`: the copy. */
int bind_copy(THD *thd, const TABLE *form, const ForeignKey &key, const std::string &own, const std::string &below,
              bool is_parent, KeySide *side) {
  std::string why;
  int error = bind_again(thd, form, key, is_parent, side, &why);
  if (!error) return 0;
  warn_of_refusal(thd, false, own, "with ", "`" + key.name + "`", why);
  my_error(ER_ERROR_ON_RENAME, MYF(0), ("./" + below).c_str(), ("./" + own).c_str(), error);
  return error;
}

/** Adds to `change` the foreign keys of the table `own`, as child or parent, that an ALTER by copy keeps or drops. The
    records belong to `below`, the copy. */
int keep_by_copy(THD *thd, const TABLE *form, const Alter_info *info, const std::string &own, const std::string &below,
                 Change *change) {
  TableForeignKeys keys = dictionary().foreign_keys().recorded_of(own);
  auto sides = [&](const ForeignKeyPtr &key, bool is_child, bool is_parent) {
    auto made = std::make_shared<ForeignKey>(*key);
    made->child_side = made->parent_side = {};
    if (is_child)
      if (int error = bind_copy(thd, form, *key, own, below, false, &made->child_side)) return error;
    if (is_parent)
      if (int error = bind_copy(thd, form, *key, own, below, true, &made->parent_side)) return error;
    change->put_sides(below, made);
    return 0;
  };
  for (const ForeignKeyPtr &key : keys.own) {
    if (is_dropped(info, key->name)) change->put(below, Change::DROPPED, key);
    else if (int error = sides(key, true, key->refers_to_itself())) return error;
  }
  for (const ForeignKeyPtr &key : keys.referencing)
    if (!key->refers_to_itself())
      if (int error = sides(key, false, true)) return error;
  return 0;
}

/** Returns the key of the table that a new one replaces: the table of the definition, because a statement like
    OPTIMIZE may have several tables. The definition of an ALTER that renames has the new name, so take the
    statement's table. */
std::string replaced_table(THD *thd, const TABLE *form, const Alter_info *info) {
  if (info->flags & ALTER_RENAME) return altered_table(thd);
  return table_key(text_of(form->s->db), text_of(form->s->table_name));
}

}  // namespace

int adopt_waiting(THD *thd, const TABLE *form, const std::string &own, Change *change) {
  for (const ForeignKeyPtr &waiting : dictionary().foreign_keys().recorded_of(own).referencing) {
    if (waiting->child == own || waiting->parent_side.is_bound) continue;
    auto key = std::make_shared<ForeignKey>(*waiting);
    if (int error = bind_again(thd, form, *waiting, true, &key->parent_side)) return error;
    if (!key->parent_side.is_bound) key->parent_side = {};
    change->put(key->child, Change::KEY, key);
  }
  return 0;
}

bool moves_parents(const std::string &key, const Change &change) {
  for (const ForeignKeyPtr &before : dictionary().foreign_keys().recorded_of(key).referencing) {
    auto after = change.records.find({before->child, Change::KEY, before->name});
    bool stays = after == change.records.end() || !after->second || after->second->parent_side.index == before->parent_side.index;
    if (!stays && before->parent_side.is_bound) return true;
  }
  return false;
}

bool is_parent(const std::string &key) {
  const auto referencing = dictionary().foreign_keys().recorded_of(key).referencing;
  return std::any_of(referencing.begin(), referencing.end(), [](const ForeignKeyPtr &one) { return one->parent_side.is_bound; });
}

int hold_parents(THD *thd, const TABLE *form, const Alter_info *info, const std::string &key) {
  if (!info) return 0;
  for (const Foreign_key *clause : new_clauses(info)) {
    std::string own = is_put_aside(key) ? replaced_table(thd, form, info) : key, parent = parent_of(*clause, own);
    if (parent == own) continue;
    std::string database = shown_database(parent), name = shown_table(parent);
    MDL_request request;
    MDL_REQUEST_INIT(&request, MDL_key::TABLE, database.c_str(), name.c_str(), MDL_SHARED_UPGRADABLE, MDL_STATEMENT);
    if (thd->mdl_context.acquire_lock(&request, double(thd->variables.lock_wait_timeout))) return HA_ERR_LOCK_WAIT_TIMEOUT;
  }
  return 0;
}

int define_for_create(THD *thd, const TABLE *form, const HA_CREATE_INFO *info, const std::string &key, Change *change) {
  const Alter_info *alter = info->alter_info;
  if (!alter) return 0;
  if (info->options & HA_LEX_CREATE_TMP_TABLE) {
    if (new_clauses(alter).empty()) return 0;
    const char *verb = thd_sql_command(thd) == SQLCOM_CREATE_TABLE ? "Create" : "Alter";
    std::string sentence = std::string(verb) + "  table `" + text_of(form->s->db) + "`.`" + text_of(form->s->table_name) +
                           "` with foreign key constraint failed. Temporary tables can't have foreign key constraints.";
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN, sentence.c_str());
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  if (!is_put_aside(key)) {
    if (int error = NewKeys(thd, form, key, Definer::Statement::Create, change).add(alter, key)) return error;
    return adopt_waiting(thd, form, key, change);
  }
  std::string own = replaced_table(thd, form, alter);
  if (int error = keep_by_copy(thd, form, alter, own, key, change)) return error;
  return NewKeys(thd, form, own, Definer::Statement::AlterByCopy, change).add(alter, key);
}

namespace {

/** New names of the columns that an ALTER renames. */
class Renames {
 public:
  Renames(const Alter_info *info) {
    List_iterator_fast<Create_field> fields(const_cast<::List<Create_field> &>(info->create_list));
    while (const Create_field *field = fields++)
      if (field->field) names_.push_back({field->field->field_name.str, field->field_name.str});
  }
  void apply(std::vector<std::string> *columns) const {
    for (std::string &column : *columns)
      for (const auto &[before, after] : names_)
        if (is_same_name(before, column)) {
          column = after;
          break;
        }
  }
  void revert(std::vector<std::string> *columns) const {
    for (std::string &column : *columns)
      for (const auto &[before, after] : names_)
        if (is_same_name(after, column)) {
          column = before;
          break;
        }
  }

 private:
  std::vector<std::pair<std::string, std::string>> names_;
};

/** Refuses to drop a column of a foreign key, even without checks. */
int check_columns(THD *thd, const TABLE *altered, const ForeignKey &key, bool is_parent) {
  for (const std::string &column : is_parent ? key.referenced : key.columns) {
    if (field_of(altered, column)) continue;
    if (is_parent)
      my_error(ER_FK_COLUMN_CANNOT_DROP_CHILD, MYF(0), column.c_str(), key.name.c_str(), quoted_table(thd, key.child).c_str());
    else
      my_error(ER_FK_COLUMN_CANNOT_DROP, MYF(0), column.c_str(), key.name.c_str());
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  return 0;
}

int bind_in_place(THD *thd, const TABLE *altered, ForeignKey *key, bool is_parent) {
  if (int error = check_columns(thd, altered, *key, is_parent)) return error;
  KeySide &side = is_parent ? key->parent_side : key->child_side;
  std::string index = side.index;
  // The side is unbound if an earlier statement without checks has dropped the index.
  bool was_bound = side.is_bound;
  if (!bind_again(thd, altered, *key, is_parent, &side)) {
    if (!side.is_bound) side = {};
    return 0;
  }
  if (!was_bound) {
    side = {};
    return 0;
  }
  my_error(ER_DROP_INDEX_FK, MYF(0), index.c_str());
  return HA_ERR_DROP_INDEX_FK;
}

}  // namespace

int define_in_place(THD *thd, const TABLE *altered, const Alter_inplace_info *info, const std::string &key,
                    Change *change, std::vector<ForeignKeyPtr> *added) {
  TableForeignKeys keys = dictionary().foreign_keys().recorded_of(key);
  Renames renames(info->alter_info);
  for (const ForeignKeyPtr &own : keys.own) {
    if (is_dropped(info->alter_info, own->name)) {
      change->remove(key, Change::KEY, own->name);
      continue;
    }
    auto kept = std::make_shared<ForeignKey>(*own);
    renames.apply(&kept->columns);
    if (int error = bind_in_place(thd, altered, kept.get(), false)) return error;
    if (own->refers_to_itself()) {
      renames.apply(&kept->referenced);
      if (int error = bind_in_place(thd, altered, kept.get(), true)) return error;
    }
    change->put(key, Change::KEY, kept);
  }
  for (const ForeignKeyPtr &referencing : keys.referencing) {
    if (referencing->refers_to_itself()) continue;
    auto kept = std::make_shared<ForeignKey>(*referencing);
    renames.apply(&kept->referenced);
    if (int error = bind_in_place(thd, altered, kept.get(), true)) return error;
    change->put(kept->child, Change::KEY, kept);
  }
  Change more = *change;
  if (int error = NewKeys(thd, altered, key, Definer::Statement::AlterInPlace, &more).add(info->alter_info, key)) {
    bool is_reported = error == ALTER_ERROR_REPORTED || (error == HA_ERR_FOUND_DUPP_KEY && !checks_foreign_keys(thd));
    if (is_reported) return error;
    // Raise the errors of a copy, which users know from InnoDB.
    my_error(ER_CANT_CREATE_TABLE, MYF(0), altered->s->db.str, altered->s->table_name.str, error);
    uint warning = error == HA_ERR_FOUND_DUPP_KEY ? ER_DUP_KEY : error == HA_ERR_CANNOT_ADD_FOREIGN ? ER_CANNOT_ADD_FOREIGN : 0;
    if (warning)
      push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, warning, ER_THD(thd, warning), altered->s->table_name.str);
    return error;
  }
  for (const auto &[place, made] : more.records)
    if (made && !change->records.count(place) && added) {
      // Writers still use the table's old definition.
      auto old = std::make_shared<ForeignKey>(*made);
      renames.revert(&old->columns);
      added->push_back(old);
    }
  *change = std::move(more);
  return 0;
}

}  // namespace fron
