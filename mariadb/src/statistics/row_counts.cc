/* SPDX-License-Identifier: GPL-2.0-only

   See statistics/row_counts.h. */

#include "statistics/row_counts.h"

#include <algorithm>
#include <utility>

namespace fron {

void TransactionCounts::add(const std::shared_ptr<RowCount> &count, int64_t rows) {
  count->add(rows);
  // The next row nearly always belongs to the table of the last one.
  for (size_t i = tables_.size(); i-- > 0;) {
    if (tables_[i].count != count) continue;
    tables_[i].all += rows;
    tables_[i].statement += rows;
    return;
  }
  tables_.push_back({count, rows, rows});
}

void TransactionCounts::end_statement() {
  for (Table &table : tables_) table.statement = 0;
}

void TransactionCounts::roll_back_statement() {
  for (Table &table : tables_) {
    int64_t rows = std::exchange(table.statement, 0);
    table.all -= rows;
    table.count->add(-rows);
  }
}

void TransactionCounts::set_savepoint(uint64_t savepoint) {
  Savepoint made{savepoint, {}};
  for (const Table &table : tables_) made.all.push_back(table.all);
  savepoints_.push_back(std::move(made));
}

void TransactionCounts::roll_back_to(uint64_t savepoint) {
  auto found = std::find_if(savepoints_.begin(), savepoints_.end(),
                            [&](const Savepoint &one) { return one.number == savepoint; });
  // Savepoints that the connection sets for a statement are not recorded here.
  if (found == savepoints_.end()) return;
  savepoints_.erase(found + 1, savepoints_.end());
  const std::vector<int64_t> &then = savepoints_.back().all;
  for (size_t i = 0; i < tables_.size(); i++) {
    int64_t rows = i < then.size() ? then[i] : 0;
    tables_[i].count->add(rows - tables_[i].all);
    tables_[i].all = rows;
    tables_[i].statement = 0;
  }
}

void TransactionCounts::commit() {
  tables_.clear();
  savepoints_.clear();
}

void TransactionCounts::roll_back() {
  for (const Table &table : tables_) table.count->add(-table.all);
  commit();
}

}  // namespace fron
