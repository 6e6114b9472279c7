/* SPDX-License-Identifier: GPL-2.0-only

   All foreign keys. The tree "mariadb/foreign_keys" has a record for each, under the key of the table that it belongs
   to; this class also has them in memory, by child and by parent.

     key    table, 0, kind ('k' a foreign key, 'd' and 's' see below), name
     value  the encoded foreign key

   An ALTER TABLE by copy creates a table with another name, and the server renames it to the table's name when it is
   complete. The changes to be made at the rename are stored under the other name: 'k' a new foreign key, 'd' a
   dropped one, 's' (with the child and the name) one that stays, with new sides. A crash before the rename changes
   no foreign key: rename() makes all these changes in one batch with the table's record.

   Any thread may call the functions. Changes of definitions are serialized by `changing`, which the caller holds from
   before it reads the foreign keys that it changes until after publish(). */

#ifndef FRONDB_DICTIONARY_FOREIGN_KEYS_H
#define FRONDB_DICTIONARY_FOREIGN_KEYS_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "dictionary/foreign_key.h"
#include "engine/api.h"

namespace fron {

/** The foreign keys of one table. */
struct TableForeignKeys {
  /** Foreign keys whose child is the table, by name. */
  std::vector<ForeignKeyPtr> own;
  /** Foreign keys whose parent is the table, by the child's database and the name: the order of the checks. */
  std::vector<ForeignKeyPtr> referencing;

  bool empty() const { return own.empty() && referencing.empty(); }
};

using TableForeignKeysPtr = std::shared_ptr<const TableForeignKeys>;

/** Records that a change of definitions writes and removes, in one batch with the table's own record. */
struct ForeignKeyChange {
  enum Kind : char { KEY = 'k', DROPPED = 'd', SIDES = 's' };
  struct Place {
    std::string table;
    Kind kind;
    std::string name;
    bool operator<(const Place &other) const {
      return std::tie(table, kind, name) < std::tie(other.table, other.kind, other.name);
    }
  };
  /** The records by their places. A null pointer stands for a record to remove. */
  std::map<Place, ForeignKeyPtr> records;

  void put(const std::string &table, Kind kind, ForeignKeyPtr key) { records[{table, kind, key->name}] = std::move(key); }
  void remove(const std::string &table, Kind kind, const std::string &name) { records[{table, kind, name}] = nullptr; }
  /** Stores new sides of a foreign key, which replace the old ones when `table`, the new table of an ALTER by copy, is
      renamed to its final name. A side of `sides` without an index name stays as it is. */
  void put_sides(const std::string &table, ForeignKeyPtr sides) {
    records[{table, SIDES, sides->child + '\1' + sides->name}] = std::move(sides);
  }
  bool empty() const { return records.empty(); }
};

class ForeignKeys {
 public:
  /** Takes the tree and reads all records. */
  Error open(Tree tree);

  /** Changes whenever a foreign key, or a tree that one uses, may have changed. */
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  /** Returns the foreign keys of a table that its writers check; never null. */
  TableForeignKeysPtr of(const std::string &table) const;
  /** Returns the same as of(), without the foreign keys that an ALTER is adding. */
  TableForeignKeys recorded_of(const std::string &table) const;
  /** Returns whether the table is the child or the parent of a foreign key. */
  bool has(const std::string &table) const;
  /** Returns all recorded foreign keys, ordered by the child's key and the name. */
  std::vector<ForeignKeyPtr> all() const;
  /** Returns the foreign key of this name in a database; null if there is none. */
  ForeignKeyPtr find(std::string_view database, const std::string &name) const;
  /** Returns the records of a kind stored under a table. */
  std::vector<ForeignKeyPtr> below(const std::string &table, ForeignKeyChange::Kind kind) const;

  /** Adds a change to a batch; publish() makes it visible when the batch is committed. */
  Error stage(const Batch &batch, const ForeignKeyChange &change) const;
  void publish(const ForeignKeyChange &change);
  /** Called when a table was renamed, emptied, dropped or altered: handles of its trees are out of date. */
  void table_changed(const std::string &table);

  /** Makes writers check foreign keys that an ALTER is adding. end_adding(), with the same pointers, ends that; the
      checks of recorded foreign keys continue. */
  void begin_adding(const std::vector<ForeignKeyPtr> &keys);
  void end_adding(const std::vector<ForeignKeyPtr> &keys);

  /** Returns the change of foreign keys for a rename of a table. The table may be the new one of an ALTER by copy,
      which gets the name of the table that it replaces. */
  ForeignKeyChange renamed(const std::string &from, const std::string &to) const;
  /** Returns the change of foreign keys for the drop of a table: its own foreign keys are removed, and the foreign keys
      that refer to it wait for another table of its name. */
  ForeignKeyChange dropped(const std::string &table) const;

  /** Returns the lock that is held while definitions change. */
  std::mutex &changing() const { return changing_; }

 private:
  using Places = std::map<ForeignKeyChange::Place, ForeignKeyPtr>;
  void index();
  void replace_sides(const ForeignKey &sides, const std::string &to, ForeignKeyChange *change) const;

  Tree tree_;
  mutable std::mutex changing_;
  /** Guards the members below. LOCK: innermost. */
  mutable std::mutex mutex_;
  Places records_;
  std::vector<ForeignKeyPtr> added_;
  std::map<std::string, TableForeignKeysPtr> tables_;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace fron

#endif
