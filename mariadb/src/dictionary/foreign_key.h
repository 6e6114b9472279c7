/* SPDX-License-Identifier: GPL-2.0-only

   A foreign key, as the dictionary keeps it. Tables are named by their keys in the dictionary ("database/table"), and
   columns and indexes by their names, so that a foreign key can name a table that does not exist (yet). */

#ifndef FRONDB_DICTIONARY_FOREIGN_KEY_H
#define FRONDB_DICTIONARY_FOREIGN_KEY_H

#include <my_global.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/key.h"

namespace fron {

/** What happens to child rows when their parent row is deleted or gets another key. RESTRICT and NO ACTION differ only
    in SHOW CREATE TABLE: both are checked at once. */
enum class Action : uint8_t { Restrict, NoAction, Cascade, SetNull };

inline bool changes_children(Action action) { return action == Action::Cascade || action == Action::SetNull; }

/** The index of a table that finds rows by the columns of a foreign key, which are its first parts. The columns of a parent
    may go on with the first parts of the primary key, which the index's entries end with. */
struct KeySide {
  /** False as long as the table does not exist or has no such index; all checks fail then. */
  bool is_bound = false;
  std::string index;
  std::vector<PartShape> parts;
  /** The columns are the whole key of a unique index, so a key's row or entry has exactly the encoded columns as its
      key. */
  bool is_exact = false;
  /** Of a system-versioned table: how the primary keys of current rows end. Its old rows are neither parents nor
      children. */
  std::string current;

  /** The name in place of an index for a side that loses its index. */
  static constexpr char NO_INDEX[] = "\1";
};

class ForeignKeyWatch;

struct ForeignKey {
  /** The name of the constraint, which is unique in the child's database. */
  std::string name;
  std::string child, parent;
  std::vector<std::string> columns, referenced;
  Action on_delete = Action::Restrict, on_update = Action::Restrict;
  KeySide child_side, parent_side;

  /** While an ALTER adds the foreign key: what writers of the parent note, instead of dealing with children. */
  std::shared_ptr<ForeignKeyWatch> watch;

  bool is_bound() const { return child_side.is_bound && parent_side.is_bound; }
  bool refers_to_itself() const { return child == parent; }

  std::string encode() const;
  bool decode(std::string_view bytes);
};

using ForeignKeyPtr = std::shared_ptr<const ForeignKey>;

/** The name that a constraint without one gets: the table's name and a number. */
std::string automatic_name(const std::string &table, uint64_t number);
/** The number in such a name; 0 if it is another name. */
uint64_t automatic_number(const std::string &table, const std::string &name);

/** The database of a table's key: "db" of "db/table". */
std::string_view database_of(std::string_view table);

/** Whether the server has given the table a name of its own ("#sql..") while a statement changes or replaces it. */
bool is_put_aside(const std::string &table);

/** The key of a table in the dictionary. */
std::string table_key(const std::string &database, const std::string &table);

/** The names of a table as users see them, decoded from its key. */
std::string shown_database(std::string_view table);
std::string shown_table(std::string_view table);

/** Whether two names of constraints or columns are the same to the server. */
bool is_same_name(std::string_view a, std::string_view b);

}  // namespace fron

#endif
