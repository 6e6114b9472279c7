/* SPDX-License-Identifier: GPL-2.0-only

   How many rows tables have, counted as they are written: the engine's own estimate cannot tell a
   new row from one that is overwritten until it has merged them. What a transaction has counted and
   not committed is taken back when it is rolled back, as far as it is. */

#ifndef FRONDB_STATISTICS_ROW_COUNTS_H
#define FRONDB_STATISTICS_ROW_COUNTS_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace fron {

/** Rows of one table, those of transactions under way included. Any thread. */
class RowCount {
 public:
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /** Writes so far, of all kinds: tells how old what is known of the table has become. */
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  void set(int64_t rows) { rows_.store(rows, std::memory_order_relaxed); }
  void add(int64_t rows) { rows_.fetch_add(rows, std::memory_order_relaxed); }
  /** The table's number in the dictionary. */
  uint64_t table() const { return table_.load(std::memory_order_relaxed); }
  void set_table(uint64_t number) { table_.store(number, std::memory_order_relaxed); }
  void changed() { changes_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> rows_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> table_{0};
};

/** What a transaction has counted. Used by its connection's thread alone. */
class TransactionCounts {
 public:
  /** Whether the transaction has neither inserted nor deleted a row. */
  bool empty() const { return tables_.empty(); }
  /** Calls `visit` with each table's number and the rows that the transaction has counted there. */
  template <typename Visit>
  void each(Visit visit) const {
    for (const Table &table : tables_)
      if (table.all) visit(table.count->table(), table.all);
  }
  /** A row more or less. */
  void add(const std::shared_ptr<RowCount> &count, int64_t rows);
  void end_statement();
  void roll_back_statement();
  /** A place to roll back to, by the engine's number of the savepoint. */
  void set_savepoint(uint64_t savepoint);
  void roll_back_to(uint64_t savepoint);
  void commit();
  void roll_back();

 private:
  struct Table {
    std::shared_ptr<RowCount> count;
    /** Counted by the transaction, and of it by the statement under way. */
    int64_t all = 0, statement = 0;
  };
  struct Savepoint {
    uint64_t number;
    std::vector<int64_t> all;
  };
  std::vector<Table> tables_;
  std::vector<Savepoint> savepoints_;
};

}  // namespace fron

#endif
