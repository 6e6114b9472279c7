/* SPDX-License-Identifier: GPL-2.0-only

   The rows that a statement inserts into a table that may be empty: this file keeps them, and handler/bulk_insert.cc
   writes them.

     announced   start_bulk_insert(): the server reads no row of the table before end_bulk_insert()
     gathering   the first rows wait here, as the writes of their entries
     writing     enough rows were gathered and the table is empty: the engine sorts the entries
     none        rows are written one by one

   A statement with few rows never leaves `gathering`: at its end the rows are written one by one, and only their keys
   are locked. Used by the handler's thread. */

#ifndef FRONDB_HANDLER_GATHERED_ROWS_H
#define FRONDB_HANDLER_GATHERED_ROWS_H

#include <string>
#include <vector>

#include "engine/api.h"

namespace fron {

/** Rows, each as the writes of its entries. */
class GatheredRows {
 public:
  GatheredRows() = default;
  ~GatheredRows() { clear(); }
  GatheredRows(const GatheredRows &) = delete;
  GatheredRows &operator=(const GatheredRows &) = delete;

  /** Adds the writes of one row. `all`: the bytes of all rows that the statement has gathered, in all partitions. */
  void add(const std::vector<frondb_write> &writes, size_t *all);
  size_t count() const { return ends_.size(); }
  /** Returns the writes of one row; valid until the next call. */
  const std::vector<frondb_write> &row(size_t number);
  void clear();

 private:
  /** A write, and the offset of its key in `bytes_`; the value follows the key. */
  struct Entry {
    frondb_write write;
    size_t at;
  };
  size_t *all_ = nullptr;
  size_t counted_ = 0;
  std::string bytes_;
  std::vector<Entry> entries_;
  /** For each row, the number of entries up to and including its last one. */
  std::vector<size_t> ends_;
  /** Scratch for row(). */
  std::vector<frondb_write> writes_;
};

struct BulkInsert {
  enum class Phase { None, Announced, Gathering, Writing };

  Phase phase = Phase::None;
  /** Whether the statement continues after a duplicate: IGNORE, REPLACE, ON DUPLICATE KEY UPDATE. */
  bool expects_duplicates = false;
  /** Number of gathered rows at which they are written in bulk. */
  size_t rows_min = 0;
  /** The value of Connection::undone when the first row was added. */
  uint64_t undone = 0;
  GatheredRows rows;
  BulkStatement statement;

  bool is_active() const { return phase != Phase::None; }
  bool has_rows() const { return phase == Phase::Writing || rows.count() > 0; }
};

}  // namespace fron

#endif
