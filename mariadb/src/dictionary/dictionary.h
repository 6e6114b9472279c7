/* SPDX-License-Identifier: GPL-2.0-only

   Maps the server's tables to trees of the engine. One tree, "mariadb/tables", holds one record for each table:

     key    database/table, as the server's path has it (partitions: database/table#P#p0)
     value  version, number of the table, version of its definition, number of the next index, indexes: number and name
            each, defaults of columns that were added, row epoch (version 4), slots of rows (versions 3 and 4)

   The trees of a table are named by numbers, "mariadb/<table>/<index>", so that a rename changes only one record. A
   record is written after its trees are made, and removed before its trees are dropped. A crash between these steps
   leaves trees without a record, which the next start drops when the server has finished or undone its own DDL. Any
   thread may call the functions; the server's metadata locks prevent two changes of a table at the same time. */

#ifndef FRONDB_DICTIONARY_DICTIONARY_H
#define FRONDB_DICTIONARY_DICTIONARY_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "codec/layout.h"
#include "dictionary/foreign_keys.h"
#include "engine/api.h"

namespace fron {

/** Separates the name of a table from the name of a partition. */
inline constexpr char PARTITION[] = "#P#";

/** Separates the name of a table from the number of a VECTOR index, which the server keeps in a table of its own that
    has no definition file. */
inline constexpr char VECTOR_INDEX[] = "#i#";

/** An index of a table. */
struct IndexRecord {
  /** Number within the table; never reused. */
  uint32_t number;
  std::string name;
};

/** A table. */
struct TableRecord {
  uint64_t number = 0;
  /** The server's version of the table's definition. */
  std::string definition;
  /** The primary index comes first; its name is empty if it is hidden. */
  std::vector<IndexRecord> indexes;
  uint32_t next_index = 0;
  RowForm form;
  /** Number of ALTERs that made columns NOT NULL: rows of an earlier snapshot may have a NULL there. */
  uint64_t row_epoch = 0;

  std::string encode() const;
  bool decode(std::string_view bytes);
};

/** A table and its new record. */
struct TableChange {
  std::string key;
  TableRecord record;
};

class Dictionary {
 public:
  /** Opens the dictionary of the open database. */
  Error open();
  /** Stores the series of the running server, for example 1108 for 11.8. If a server of a newer series has used the
      database, stores nothing, and `newest` is that series; else it is the running one. */
  Error note_server(uint64_t series, uint64_t *newest);
  /** Drops trees without a record. Called once, before any new tree is made. */
  Error drop_orphans();

  /** Returns the dictionary key for a path from the server: "./db/t" becomes "db/t". */
  static std::string key_of_path(const char *path);
  static std::string tree_name(uint64_t table, uint32_t index);

  /** Finds a table; `found` says whether it exists. If a newer FronDB wrote the record, `record` becomes empty. */
  Error find(const std::string &key, TableRecord *record, bool *found);
  /** Assigns a number to a new table, and creates its trees and then its record. */
  Error create(const std::string &key, TableRecord *record, const std::vector<frondb_tree_options *> &options,
               const ForeignKeyChange &foreign = {});
  /** Atomically replaces the records of tables, and foreign keys. The caller creates and drops the trees. */
  Error alter(const std::vector<TableChange> &changes, const ForeignKeyChange &foreign = {});
  /** Drops trees that no record names any more. A transaction cannot commit if a tree to which it has written is gone,
      so such a tree stays until the next call after the transaction's end, or the next start. */
  void retire(const std::vector<std::string> &names);
  /** Renames a table, in its record, its own foreign keys and the foreign keys that refer to it; the same batch has the
      records of `more`. */
  Error rename(const std::string &from, const std::string &to, bool *found, const ForeignKeyChange &more = {});
  /** Removes the record and the table's foreign keys, then retires the trees. */
  Error drop(const std::string &key, bool *found);
  /** Lists all table keys that begin with `prefix`, for example "db/" for the tables of a database. */
  Error tables_of(const std::string &prefix, std::vector<std::string> *keys);
  /** Calls `visit` with the key and the record of each table, until it returns an error. Skips tables that are dropped
      during the call. If a newer FronDB wrote the record, `visit` gets an empty one, without indexes. */
  Error each_table(const std::function<Error(const std::string &, const TableRecord &)> &visit);
  /** Replaces the trees of a table by empty ones with the same options, and resets its counters. */
  Error truncate(const std::string &key, bool *found);

  /** Counters of a table. HIDDEN_KEY only grows; AUTO_INCREMENT becomes lower when unused numbers are returned. */
  enum Counter : char { AUTO_INCREMENT = 'a', HIDDEN_KEY = 'h' };
  /** Reads the next value of a counter; 0 if none has been stored yet. */
  Error counter(uint64_t table, Counter counter, uint64_t *next);
  /** Stores the next value of a counter. It becomes durable with the next durable commit. */
  Error keep_counter(uint64_t table, Counter counter, uint64_t next);
  /** Locks the table's AUTO_INCREMENT counter for a transaction, until unlock_counter() or the transaction's end. */
  Error lock_counter(frondb_txn *txn, uint64_t table);
  Error unlock_counter(frondb_txn *txn, uint64_t table);
  /** Returns whether a lock on this key of a tree is the lock of a table's counter, and of which table. */
  bool is_counter_lock(uint64_t tree, std::string_view key, uint64_t *table) const;
  /** Reads the encoded statistics of a table; empty if it was never measured. */
  Error statistics(uint64_t table, std::string *bytes);
  Error keep_statistics(uint64_t table, const std::string &bytes);
  /** Reads the encoded row counts of a prepared transaction, by its name; empty if none are stored. Storing empty
      bytes removes the row counts. */
  Error prepared_counts(frondb_slice name, std::string *bytes);
  Error keep_prepared_counts(frondb_slice name, const std::string &bytes);

  ForeignKeys &foreign_keys() { return *foreign_keys_; }
  /** Returns a tree without rows, for locks on table names. */
  frondb_tree *fences() const { return fences_.get(); }

  /** Returns how many times tables were created, altered, truncated or filled (note_fill()) since the start. */
  uint64_t changes() const { return changing_->count; }
  /** Returns the value of changes() after the last such change of a table; 0 if there was none since the start. */
  uint64_t changed_at(uint64_t table);
  /** Records that the rows which a statement copied to a table or partition that it creates are committed. */
  void note_fill(uint64_t table);
  /** Returns the value of changes() after the last note_fill() of a table; 0 if there was none. A transaction that
      began earlier sees none of the copied rows. */
  uint64_t filled_at(uint64_t table);
  /** Finds out for each tree of `record` whether the transaction's snapshot has it. All are false for a table that
      the snapshot does not have, or has with another tree of rows or in an earlier row epoch. */
  Error seen_trees(frondb_txn *txn, const std::string &key, const TableRecord &record, std::vector<bool> *seen);

 private:
  void note_change(uint64_t table);
  uint64_t count_in(const std::map<uint64_t, uint64_t> &counts, uint64_t table);
  Error make_trees(const TableRecord &record, const std::vector<frondb_tree_options *> &options);
  Error options_of(const TableRecord &record, std::vector<TreeOptions> *options);
  void forget_changes(uint64_t table);
  void drop_trees(const TableRecord &record);
  Error forget(const Batch &batch, uint64_t table);
  Error put_record(const Batch &batch, const std::string &key, const TableRecord &record);
  /** Assigns the next table number. `frees_space`: the statement drops trees after it gets the number, so the write may
      use the reserve of a full disk. */
  Error next_number(uint64_t *number, bool frees_space = false);

  Tree tables_;
  Tree counters_;
  Tree fences_;
  std::unique_ptr<ForeignKeys> foreign_keys_ = std::make_unique<ForeignKeys>();
  /** Guards the last number assigned to a table. */
  std::unique_ptr<std::mutex> numbering_ = std::make_unique<std::mutex>();
  struct Changing {
    std::mutex mutex;
    std::atomic<uint64_t> count{0};
    std::map<uint64_t, uint64_t> last, filled;
    std::vector<std::string> retired;
  };
  std::unique_ptr<Changing> changing_ = std::make_unique<Changing>();
};

/** Returns the dictionary of the open database. */
Dictionary &dictionary();

}  // namespace fron

#endif
