/* SPDX-License-Identifier: GPL-2.0-only

   Row counts of tables, updated by each write: the engine's own estimate cannot distinguish new from overwritten rows
   before it has merged them. Rows that a transaction has counted are subtracted on full or partial rollback. The same
   list records which tables a commit has changed, and so when a table was last changed. */

#ifndef FRONDB_STATISTICS_ROW_COUNTS_H
#define FRONDB_STATISTICS_ROW_COUNTS_H

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <vector>

namespace fron {

/** Number of rows of one table, including rows of uncommitted transactions. Any thread may use it. */
class RowCount {
 public:
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /** Returns the number of writes of all kinds so far: shows how outdated the table's statistics are. */
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  void set(int64_t rows) { rows_.store(rows, std::memory_order_relaxed); }
  void add(int64_t rows) { rows_.fetch_add(rows, std::memory_order_relaxed); }
  /** Returns the table's number in the dictionary. */
  uint64_t table() const { return table_.load(std::memory_order_relaxed); }
  void set_table(uint64_t number) { table_.store(number, std::memory_order_relaxed); }
  void changed() { changes_.fetch_add(1, std::memory_order_relaxed); }
  /** Returns the time at which a change of the table was last committed since the server's start; 0 for never. */
  time_t commit_time() const { return commit_time_.load(std::memory_order_relaxed); }
  void committed() { set_commit_time(time(nullptr)); }
  void set_commit_time(time_t when) { commit_time_.store(when, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> rows_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> table_{0};
  std::atomic<time_t> commit_time_{0};
};

/** The row counts of a transaction. Used only by its connection's thread. */
class TransactionCounts {
 public:
  /** Returns whether the transaction has neither inserted nor deleted a row. */
  bool empty() const {
    for (const Table &table : tables_)
      if (table.has_counted) return false;
    return true;
  }
  /** Returns the rows that the transaction has inserted into a table minus the rows that it has deleted. */
  int64_t rows_of(const RowCount &count) const {
    for (const Table &table : tables_)
      if (table.count.get() == &count) return table.all;
    return 0;
  }
  /** Calls `visit` with the number of each table that the transaction has written to, and the rows that it has counted
      there. */
  template <typename Visit>
  void each(Visit visit) const {
    for (const Table &table : tables_)
      if (table.has_written || table.writes) visit(table.count->table(), table.all);
  }
  /** Adds rows, or removes them if negative; 0 for a write that changes only the content of a row. */
  void add(const std::shared_ptr<RowCount> &count, int64_t rows);
  void end_statement();
  void roll_back_statement();
  /** Sets a savepoint, with the engine's number for it. */
  void set_savepoint(uint64_t savepoint);
  /** Forgets this savepoint; with `later` also the savepoints that were set after it. */
  void release(uint64_t savepoint, bool later);
  void roll_back_to(uint64_t savepoint);
  void commit();
  void roll_back();

 private:
  void clear();

  /** What the transaction has done to a table. */
  struct Counted {
    /** Rows counted by the transaction, and the part counted by the current statement. */
    int64_t all = 0, statement = 0;
    /** Whether earlier statements have written to the table, and whether the current statement has. */
    bool has_written = false, writes = false;
    /** Whether rows were inserted or deleted, even if their numbers are equal. */
    bool has_counted = false;
  };
  struct Table : Counted {
    std::shared_ptr<RowCount> count;
  };
  struct Savepoint {
    uint64_t number;
    std::vector<Counted> tables;
  };
  std::vector<Table> tables_;
  std::vector<Savepoint> savepoints_;
};

}  // namespace fron

#endif
