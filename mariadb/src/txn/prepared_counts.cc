/* SPDX-License-Identifier: GPL-2.0-only

   See txn/prepared_counts.h. Counts are kept as pairs of a table's number and its rows, 8 bytes each, big-endian. */

#include "txn/prepared_counts.h"

#include <my_global.h>
#include <log.h>
#include <mysqld.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "codec/entry.h"
#include "dictionary/dictionary.h"
#include "engine/db.h"
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

/** Returns the count of an open table; null for any other. Called under the mutex. */
std::shared_ptr<RowCount> open_count(uint64_t table) {
  auto found = open_counts.find(table);
  return found == open_counts.end() ? nullptr : found->second.lock();
}

/** Changes the kept statistics of a table that is not open. Called under the mutex. */
template <typename Change>
Error change_kept(uint64_t table, Change change) {
  std::string bytes;
  TableStatistics kept;
  if (Error error = dictionary().statistics(table, &bytes)) return error;
  // A table that was dropped or never measured has no count to correct.
  if (!kept.decode(bytes)) return {};
  change(&kept);
  return dictionary().keep_statistics(table, kept.encode());
}

/** Subtracts the rows of a rolled-back transaction from the count of a table. */
Error take_out(uint64_t table, int64_t rows) {
  std::lock_guard<std::mutex> guard(mutex);
  if (std::shared_ptr<RowCount> count = open_count(table)) {
    count->add(-rows);
    return {};
  }
  return change_kept(table, [&](TableStatistics *kept) {
    kept->rows = uint64_t(std::max<int64_t>(0, int64_t(kept->rows) - rows));
  });
}

/** Deletes the kept counts, after calling `each` with each table and its rows. */
template <typename Each>
Error take(const XidName &name, Each each) {
  std::string bytes;
  if (Error error = dictionary().prepared_counts(name.bytes(), &bytes)) return error;
  if (bytes.empty()) return {};
  for (size_t at = 0; at + PAIR_BYTES <= bytes.size(); at += PAIR_BYTES)
    if (Error error = each(number_at(bytes, at), int64_t(number_at(bytes, at + 8)))) return error;
  return dictionary().keep_prepared_counts(name.bytes(), "");
}

/** Records that a transaction which changed the table was committed. */
Error note_commit(uint64_t table, int64_t) {
  std::lock_guard<std::mutex> guard(mutex);
  if (std::shared_ptr<RowCount> count = open_count(table)) {
    count->committed();
    return {};
  }
  return change_kept(table, [](TableStatistics *kept) {
    kept->commit_time = uint64_t(time(nullptr));
    kept->server_start = uint64_t(server_start_time);
  });
}

/** Updates counts; an error becomes a warning, since a wrong count is no reason to fail the statement. */
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

bool join_open_count(uint64_t table, std::shared_ptr<RowCount> *count) {
  std::lock_guard<std::mutex> guard(mutex);
  if (std::shared_ptr<RowCount> open = open_count(table)) {
    *count = std::move(open);
    return true;
  }
  // Remove the counts of closed tables whenever the map has doubled.
  static size_t limit = 64;
  if (open_counts.size() >= limit) {
    for (auto at = open_counts.begin(); at != open_counts.end();) at = at->second.expired() ? open_counts.erase(at) : ++at;
    limit = std::max<size_t>(64, open_counts.size() * 2);
  }
  (*count)->set_table(table);
  open_counts[table] = *count;
  return false;
}

Error prepared_rows(uint64_t table, int64_t *rows) {
  *rows = 0;
  List list;
  std::vector<frondb_slice> names;
  if (Error error = frondb_db_prepared(db(), list.out())) return error;
  if (Error error = list.read(&names)) return error;
  for (frondb_slice name : names) {
    std::string bytes;
    if (Error error = dictionary().prepared_counts(name, &bytes)) return error;
    for (size_t at = 0; at + PAIR_BYTES <= bytes.size(); at += PAIR_BYTES)
      if (number_at(bytes, at) == table) *rows += int64_t(number_at(bytes, at + 8));
  }
  return {};
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
  statistic([&] { return take(name, [](uint64_t, int64_t) { return Error(); }); });
}

void settle_prepared_counts(const XidName &name, bool is_commit) {
  statistic([&] { return take(name, is_commit ? note_commit : take_out); });
}

}  // namespace fron
