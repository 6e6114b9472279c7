/* SPDX-License-Identifier: GPL-2.0-only

   See txn/prepared_counts.h. Counts are kept as pairs of a table's number and its rows, 8 bytes each, big-endian. */

#include "txn/prepared_counts.h"

#include <my_global.h>
#include <log.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>

#include "codec/entry.h"
#include "dictionary/dictionary.h"
#include "statistics/table_statistics.h"

namespace fron {
namespace {

constexpr size_t PAIR_BYTES = 16;

std::mutex mutex;
/** Counts of open tables by the numbers of the tables; an expired pointer belongs to a table that was closed. */
std::map<uint64_t, std::weak_ptr<RowCount>> open_counts;

uint64_t number_at(std::string_view bytes, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; i++) number = number << 8 | uchar(bytes[at + i]);
  return number;
}

/** Subtracts the rows of a rolled-back transaction from the count of a table. */
Error take_out(uint64_t table, int64_t rows) {
  std::lock_guard<std::mutex> guard(mutex);
  auto found = open_counts.find(table);
  if (found != open_counts.end())
    if (std::shared_ptr<RowCount> count = found->second.lock()) {
      count->add(-rows);
      return {};
    }
  std::string bytes;
  TableStatistics kept;
  if (Error error = dictionary().statistics(table, &bytes)) return error;
  // A table that was dropped or never measured has no count to correct.
  if (!kept.decode(bytes)) return {};
  kept.rows = uint64_t(std::max<int64_t>(0, int64_t(kept.rows) - rows));
  return dictionary().keep_statistics(table, kept.encode());
}

Error settle(const XidName &name, bool is_commit) {
  std::string bytes;
  if (Error error = dictionary().prepared_counts(name.bytes(), &bytes)) return error;
  if (bytes.empty()) return {};
  for (size_t at = 0; !is_commit && at + PAIR_BYTES <= bytes.size(); at += PAIR_BYTES)
    if (Error error = take_out(number_at(bytes, at), int64_t(number_at(bytes, at + 8)))) return error;
  return dictionary().keep_prepared_counts(name.bytes(), "");
}

/** Updates a count; an error becomes a warning, since the statement itself has succeeded. */
template <typename Work>
void statistic(Work work) noexcept {
  try {
    if (Error error = work())
      sql_print_warning("FronDB: cannot correct the row count of a table, so its estimate is off: %s", error.message());
  } catch (const std::exception &) {
    sql_print_warning("FronDB: cannot correct the row count of a table, so its estimate is off: out of memory");
  }
}

}  // namespace

void note_open_count(uint64_t table, const std::shared_ptr<RowCount> &count) {
  std::lock_guard<std::mutex> guard(mutex);
  // Remove the counts of closed tables whenever the map has doubled.
  static size_t limit = 64;
  if (open_counts.size() >= limit) {
    for (auto at = open_counts.begin(); at != open_counts.end();) at = at->second.expired() ? open_counts.erase(at) : ++at;
    limit = std::max<size_t>(64, open_counts.size() * 2);
  }
  count->set_table(table);
  open_counts[table] = count;
}

void keep_prepared_counts(const XidName &name, const TransactionCounts &counts) {
  statistic([&] {
    std::string bytes;
    counts.each([&](uint64_t table, int64_t rows) {
      append_big_endian(table, &bytes);
      append_big_endian(uint64_t(rows), &bytes);
    });
    return bytes.empty() ? Error() : dictionary().keep_prepared_counts(name.bytes(), bytes);
  });
}

void forget_prepared_counts(const XidName &name) {
  statistic([&] { return settle(name, true); });
}

void settle_prepared_counts(const XidName &name, bool is_commit) {
  statistic([&] { return settle(name, is_commit); });
}

}  // namespace fron
