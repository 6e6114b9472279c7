/* SPDX-License-Identifier: GPL-2.0-only

   Which trees a table of the server has. One tree, "mariadb/tables", holds a record a table:

     key    database/table, as the server's path has it (partitions: database/table#P#p0)
     value  version, number of the table, version of its definition, indexes: number and name each,
            defaults of columns that were added, slots of rows if they are not the columns in their order

   The trees of a table are named by numbers, "mariadb/<table>/<index>", so that a rename is one record.
   A record is written after its trees are made and removed before they are dropped: a crash in between
   leaves trees that nobody names, which the next start drops when the server has finished or undone its
   own DDL. The functions may be called from any thread; the server's metadata locks keep two from changing
   one table. */

#ifndef FRONDB_DICTIONARY_DICTIONARY_H
#define FRONDB_DICTIONARY_DICTIONARY_H

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "codec/layout.h"
#include "engine/api.h"

namespace fron {

/** Behind the name of a table, before that of a partition of it. */
inline constexpr char PARTITION[] = "#P#";

/** An index of a table. */
struct IndexRecord {
  /** Number in its table; never used again. */
  uint32_t number;
  std::string name;
};

/** A table. */
struct TableRecord {
  uint64_t number = 0;
  /** The server's version of the table's definition. */
  std::string definition;
  /** The primary one first; its name is empty where it is hidden. */
  std::vector<IndexRecord> indexes;
  uint32_t next_index = 0;
  RowForm form;

  std::string encode() const;
  bool decode(std::string_view bytes);
};

/** A table and what its record becomes. */
struct TableChange {
  std::string key;
  TableRecord record;
};

class Dictionary {
 public:
  /** Opens the dictionary of an open database. */
  Error open(frondb_db *db);
  /** Drops trees that no record names. Once, before anybody makes a new one. */
  Error drop_orphans();

  /** The key of a table whose path the server gives: "./db/t" becomes "db/t". */
  static std::string key_of_path(const char *path);
  static std::string tree_name(uint64_t table, uint32_t index);

  /** Finds a table; `found` says whether it is there. */
  Error find(const std::string &key, TableRecord *record, bool *found);
  /** Makes the trees of a new table, then its record; gives it a number. */
  Error create(const std::string &key, TableRecord *record,
               const std::vector<frondb_tree_options *> &options);
  /** Changes what is kept of tables, all of them or none. Their trees are the caller's business. */
  Error alter(const std::vector<TableChange> &changes);
  /** Drops trees that no record names. Those that a transaction has written to which has not ended it cannot
      commit without: the next call drops them, or the next start. */
  void retire(const std::vector<std::string> &names);
  Error rename(const std::string &from, const std::string &to, bool *found);
  /** Removes the record, then retires the trees. */
  Error drop(const std::string &key, bool *found);
  /** All tables of a database of the server, "db/". */
  Error tables_of(const std::string &prefix, std::vector<std::string> *keys);
  /** New, empty trees in place of the table's, made as those were. Its counters begin anew. */
  Error truncate(const std::string &key, bool *found);

  /** Numbers of a table that only grow. */
  enum Counter : char { AUTO_INCREMENT = 'a', HIDDEN_KEY = 'h' };
  /** The next value of a counter; 0 if none was ever kept. */
  Error counter(uint64_t table, Counter counter, uint64_t *next);
  /** Keeps it; it is as durable as the next commit. */
  Error keep_counter(uint64_t table, Counter counter, uint64_t next);
  /** What was measured of a table, as its reader wrote it; empty if nothing was. */
  Error statistics(uint64_t table, std::string *bytes);
  Error keep_statistics(uint64_t table, const std::string &bytes);
  /** What a prepared transaction has counted, by its name; empty if nothing is kept. Nothing is kept of no bytes. */
  Error prepared_counts(frondb_slice name, std::string *bytes);
  Error keep_prepared_counts(frondb_slice name, const std::string &bytes);

  /** How many changes of definitions, of all tables, there were since the start. */
  uint64_t changes() const { return changing_->count; }
  /** How many there were when the table had its last; 0 if that was before the start. */
  uint64_t changed_at(uint64_t table);
  /** Which trees of `record` the state that a transaction looks at has, in their order; none of a table that it
      has not, or with other rows. */
  Error seen_trees(frondb_txn *txn, const std::string &key, const TableRecord &record, std::vector<bool> *seen);

 private:
  void note_change(uint64_t table);
  Error make_trees(const TableRecord &record, const std::vector<frondb_tree_options *> &options);
  Error options_of(const TableRecord &record, std::vector<TreeOptions> *options);
  void forget_changes(uint64_t table);
  void drop_trees(const TableRecord &record);
  Error forget(const Batch &batch, uint64_t table);
  Error put_record(const Batch &batch, const std::string &key, const TableRecord &record);
  /** `frees_space` says that trees are dropped for it: that works on a full disk. */
  Error next_number(uint64_t *number, bool frees_space = false);

  frondb_db *db_ = nullptr;
  Tree tables_;
  Tree counters_;
  /** Around the count of tables. */
  std::unique_ptr<std::mutex> numbering_ = std::make_unique<std::mutex>();
  struct Changing {
    std::mutex mutex;
    std::atomic<uint64_t> count{0};
    std::map<uint64_t, uint64_t> last;
    std::vector<std::string> retired;
  };
  std::unique_ptr<Changing> changing_ = std::make_unique<Changing>();
};

/** The dictionary of the open database. */
Dictionary &dictionary();

}  // namespace fron

#endif
