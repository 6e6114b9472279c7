/* SPDX-License-Identifier: GPL-2.0-only

   See statistics/row_counts.h. */

#include "statistics/row_counts.h"

#include <algorithm>
#include <utility>

namespace fron {

void TransactionCounts::add(const std::shared_ptr<RowCount> &count, int64_t rows) {
  if (rows) count->add(rows);
  // The next row nearly always belongs to the table of the last one.
  for (size_t i = tables_.size(); i-- > 0;) {
    if (tables_[i].count != count) continue;
    tables_[i].all += rows;
    tables_[i].statement += rows;
    tables_[i].writes = true;
    tables_[i].has_counted |= rows != 0;
    return;
  }
  tables_.push_back({{rows, rows, false, true, rows != 0}, count});
}

void TransactionCounts::end_statement() {
  for (Table &table : tables_) {
    table.statement = 0;
    table.has_written |= std::exchange(table.writes, false);
  }
}

void TransactionCounts::roll_back_statement() {
  for (Table &table : tables_) {
    int64_t rows = std::exchange(table.statement, 0);
    table.all -= rows;
    table.count->add(-rows);
    table.writes = false;
  }
}

void TransactionCounts::set_savepoint(uint64_t savepoint) {
  Savepoint made{savepoint, {}};
  for (const Table &table : tables_) made.tables.push_back(table);
  savepoints_.push_back(std::move(made));
}

void TransactionCounts::release(uint64_t savepoint, bool later) {
  auto found = std::find_if(savepoints_.begin(), savepoints_.end(),
                            [&](const Savepoint &one) { return one.number == savepoint; });
  if (found != savepoints_.end()) savepoints_.erase(found, later ? savepoints_.end() : found + 1);
}

void TransactionCounts::roll_back_to(uint64_t savepoint) {
  auto found = std::find_if(savepoints_.begin(), savepoints_.end(),
                            [&](const Savepoint &one) { return one.number == savepoint; });
  // Savepoints that the connection sets for a statement are not recorded here.
  if (found == savepoints_.end()) return;
  savepoints_.erase(found + 1, savepoints_.end());
  const std::vector<Counted> &then = savepoints_.back().tables;
  for (size_t i = 0; i < tables_.size(); i++) {
    Counted &now = tables_[i];
    Counted kept = i < then.size() ? then[i] : Counted();
    tables_[i].count->add(kept.all - now.all);
    now = kept;
  }
}

void TransactionCounts::commit() {
  for (const Table &table : tables_)
    if (table.has_written || table.writes) table.count->committed();
  clear();
}

void TransactionCounts::roll_back() {
  for (const Table &table : tables_) table.count->add(-table.all);
  clear();
}

void TransactionCounts::clear() {
  tables_.clear();
  savepoints_.clear();
}

}  // namespace fron
