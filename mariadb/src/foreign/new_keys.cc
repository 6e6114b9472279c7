/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/new_keys.h. */

#include "foreign/new_keys.h"

#include <handler.h>
#include <mysqld_error.h>
#include <sql_alter.h>

#include <algorithm>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/clauses.h"
#include "foreign/text.h"

namespace fron {
namespace {

/** Returns whether an earlier clause of the statement has exactly the name of this one. As in InnoDB, a name that
    differs only in case counts as a taken name. */
bool has_name_of_earlier(const std::vector<const Foreign_key *> &clauses, const Foreign_key *clause) {
  if (!clause->constraint_name.str) return false;
  auto end = std::find(clauses.begin(), clauses.end(), clause);
  return std::any_of(clauses.begin(), end, [clause](const Foreign_key *earlier) {
    return earlier->constraint_name.str && text_of(earlier->constraint_name) == text_of(clause->constraint_name);
  });
}

/** Returns whether a name is longer than the server allows in SQL, for example in a dump. An automatic name can be. */
bool is_too_long(const std::string &name) {
  return system_charset_info->numchars(name.data(), name.data() + name.size()) > NAME_CHAR_LEN;
}

}  // namespace

/** Reports that another foreign key has the name. As in InnoDB, only an ALTER in place names the existing
    constraint. */
int NewKeys::report_taken(const std::string &name) const {
  if (definer_.is_unchecked_in_place())
    my_error(ER_DUP_CONSTRAINT_NAME, MYF(0), "FOREIGN KEY", (shown_database(own_) + "/" + name).c_str());
  return HA_ERR_FOUND_DUPP_KEY;
}

/** Reports that two clauses of the statement have the name: InnoDB then has no warning, and another error. */
int NewKeys::refuse_repeated(const std::string &name) const {
  note_foreign_error(thd_, "CREATE or ALTER TABLE " + quoted_table(thd_, own_) + " failed: duplicate name, CONSTRAINT `" + name + "`");
  return definer_.is_unchecked_in_place() ? report_taken(name) : HA_ERR_CANNOT_ADD_FOREIGN;
}

int NewKeys::refuse_taken(const ForeignKey &key) const {
  std::string failure = "CREATE or ALTER TABLE " + quoted_table(thd_, own_) + " failed: duplicate name, " + clause_of(thd_, key);
  push_warning(thd_, Sql_condition::WARN_LEVEL_WARN, HA_ERR_FOUND_DUPP_KEY, failure.c_str());
  return report_taken(key.name);
}

bool NewKeys::is_taken(const Alter_info *info, const ForeignKey &key) const {
  bool is_alter = statement_ != Definer::Statement::Create;
  ForeignKeyPtr other = dictionary().foreign_keys().find(database_of(own_), key.name);
  if (other && !(is_alter && other->child == own_ && is_dropped(info, other->name))) return true;
  const auto &records = change_->records;
  return std::any_of(records.begin(), records.end(), [&key](const auto &record) {
    const auto &[place, made] = record;
    return made && place.kind == ForeignKeyChange::KEY && is_same_name(made->name, key.name);
  });
}

int NewKeys::admit(const Alter_info *info, const std::string &below, const NewKey &made) {
  const std::shared_ptr<ForeignKey> &key = made.key;
  if (int error = definer_.check_nulls(*made.clause, *key)) return error;
  if (is_taken(info, *key)) return refuse_taken(*key);
  if (below != own_) {
    // These names are valid until the table gets its own name; a reference to the table itself follows the rename.
    if (key->parent == own_) key->parent = below;
    key->child = below;
  }
  change_->put(below, ForeignKeyChange::KEY, key);
  return 0;
}

int NewKeys::add(const Alter_info *info, const std::string &below) {
  std::vector<const Foreign_key *> clauses = new_clauses(info);
  if (clauses.empty()) return 0;
  uint64_t highest = 0;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().recorded_of(own_).own)
    highest = std::max(highest, automatic_number(own_, key->name));
  definer_.numbers_from(highest + 1);
  std::vector<NewKey> defined;
  for (const Foreign_key *clause : clauses) {
    if (has_name_of_earlier(clauses, clause)) return refuse_repeated(text_of(clause->constraint_name));
    NewKey made{clause, std::make_shared<ForeignKey>()};
    if (int error = definer_.define(*clause, made.key.get())) return error;
    if (is_too_long(made.key->name)) {
      my_error(ER_TOO_LONG_IDENT, MYF(0), made.key->name.c_str());
      return ALTER_ERROR_REPORTED;
    }
    if (!definer_.is_unchecked_in_place()) defined.push_back(std::move(made));
    else if (int error = admit(info, below, made)) return error;
  }
  std::sort(defined.begin(), defined.end(), [](const NewKey &a, const NewKey &b) { return a.key->name < b.key->name; });
  for (const NewKey &made : defined)
    if (int error = admit(info, below, made)) return error;
  return 0;
}

}  // namespace fron
