/* SPDX-License-Identifier: GPL-2.0-only

   A foreign key, as stored in the dictionary. Tables are named by their dictionary keys ("database/table"), and columns
   and indexes by their names, so that a foreign key can name a table that does not exist (yet). */

#ifndef FRONDB_DICTIONARY_FOREIGN_KEY_H
#define FRONDB_DICTIONARY_FOREIGN_KEY_H

#include <my_global.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/key.h"

namespace fron {

/** The action on child rows when their parent row is deleted or gets another key. RESTRICT and NO ACTION differ only
    in SHOW CREATE TABLE: both are checked immediately. */
enum class Action : uint8_t { Restrict, NoAction, Cascade, SetNull };

inline bool changes_children(Action action) { return action == Action::Cascade || action == Action::SetNull; }

/** The index of a table that finds rows by the columns of a foreign key, which are its first parts. The columns of a
    parent may also include the first parts of the primary key, with which the index's entries end. */
struct KeySide {
  /** False while the table does not exist or has no such index; all checks then fail. */
  bool is_bound = false;
  std::string index;
  std::vector<PartShape> parts;
  /** Whether the columns are the whole key of a unique index: then the encoded columns of a row are exactly the key of
      the row, or of its entry. */
  bool is_exact = false;
  /** For a system-versioned table: the bytes with which the encoded primary keys of current rows end. Old rows are
      neither parents nor children. */
  std::string current;

  /** Stands for an index name in a side that loses its index. */
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

  /** Set while an ALTER adds the foreign key: writers of the parent record their changes here and do not process
      children. */
  std::shared_ptr<ForeignKeyWatch> watch;

  bool is_bound() const { return child_side.is_bound && parent_side.is_bound; }
  bool refers_to_itself() const { return child == parent; }

  std::string encode() const;
  bool decode(std::string_view bytes);
};

using ForeignKeyPtr = std::shared_ptr<const ForeignKey>;

/** Returns the automatic name of a constraint without one: the table's name and a number. */
std::string automatic_name(const std::string &table, uint64_t number);
/** Returns the number in an automatic name; 0 for any other name. */
uint64_t automatic_number(const std::string &table, const std::string &name);

/** Returns the database of a table's key: "db" of "db/table". */
std::string_view database_of(std::string_view table);

/** Returns whether the server gave the table a temporary name ("#sql..") while a statement changes or replaces it. */
bool is_put_aside(const std::string &table);

/** Returns the key of a table in the dictionary. */
std::string table_key(const std::string &database, const std::string &table);

/** Returns the names of a table as users see them, decoded from its key. */
std::string shown_database(std::string_view table);
std::string shown_table(std::string_view table);

/** Returns whether the server considers two names of constraints or columns equal. */
bool is_same_name(std::string_view a, std::string_view b);

}  // namespace fron

#endif
