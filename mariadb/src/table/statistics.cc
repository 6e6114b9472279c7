/* SPDX-License-Identifier: GPL-2.0-only

   See table/share.h. Here: when the statistics of a table are measured, written to the dictionary, and
   given to the optimizer. */

#include "table/share.h"

#include <key.h>
#include <sql_class.h>

#include <algorithm>
#include <cmath>

#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "txn/prepared_counts.h"

namespace fron {
namespace {

/** A table with fewer changes than this is not measured again, and its row count is not written to the dictionary
    before the table is closed. */
constexpr uint64_t CHANGES_MIN = 200;
/** Lengths are measured again after LENGTHS_CHANGES changes plus 1/8 of the rows, or when the number of rows has
    doubled and grown by LENGTHS_NEW_ROWS more. */
constexpr uint64_t LENGTHS_CHANGES = 1000, LENGTHS_NEW_ROWS = 16;

/** Returns the position of a key part among the measured prefixes of the index; -1 if it was not measured. */
int prefix_of(const TABLE *table, const KEY *key, uint part) {
  if (part < key->user_defined_key_parts) return int(part);
  if (has_hidden_key(table)) return -1;
  const KEY *primary = &table->key_info[table->s->primary_key];
  for (uint i = 0; i < primary->user_defined_key_parts; i++)
    if (primary->key_part[i].fieldnr == key->key_part[part].fieldnr) return int(key->user_defined_key_parts + i);
  return -1;
}

std::vector<uint64_t> numbers_of(const TableRecord &record) {
  std::vector<uint64_t> numbers;
  for (const IndexRecord &index : record.indexes) numbers.push_back(index.number);
  return numbers;
}

}  // namespace

int Share::open_statistics() {
  std::lock_guard<std::mutex> guard(measuring_);
  std::string bytes;
  if (Error error = dictionary().statistics(record.number, &bytes)) return ha_error(error);
  if (!statistics_.decode(bytes)) statistics_ = TableStatistics();
  // For SHOW TABLE STATUS and the information schema the server opens tables, perhaps thousands, under the command SHOW
  // FIELDS: do not read their rows to count them.
  bool is_listing = current_thd && thd_sql_command(current_thd) == SQLCOM_SHOW_FIELDS;
  uint64_t count;
  bool is_exact;
  Error error = count_entries(indexes[0].tree.get(), !is_listing, &count, &is_exact);
  // A damaged table can still be opened, to be checked and dropped.
  if (error && error.kind() != FRONDB_CORRUPTION && error.kind() != FRONDB_IO) return ha_error(error);
  // The kept count includes the rows of prepared transactions, which no tree has yet. An error loses only an estimate.
  int64_t prepared = 0;
  if (!error && !prepared_rows(record.number, &prepared))
    count = uint64_t(std::max<int64_t>(0, int64_t(count) + prepared));
  // The kept count is exact after a shutdown and nearly exact after a crash; the estimate is within a factor of two.
  bool is_known = !bytes.empty() && !error && !is_exact && statistics_.rows / 2 <= count && count / 2 <= statistics_.rows;
  if (!error && !is_known) statistics_.rows = count;
  if (statistics_.server_start != uint64_t(server_start_time)) statistics_.commit_time = 0;
  if (!join_open_count(record.number, &rows)) {
    rows->set(int64_t(statistics_.rows));
    if (statistics_.commit_time) rows->set_commit_time(time_t(statistics_.commit_time));
  }
  kept_changes_ = measured_changes_ = rows->changes();
  measured_rows_ = statistics_.measured_rows;
  is_measured_ = statistics_.numbers == numbers_of(record);
  if (!is_measured_) statistics_.indexes.clear();
  return 0;
}

bool Share::is_stale() const {
  uint64_t now = uint64_t(std::max<int64_t>(0, rows->rows()));
  uint64_t since = rows->changes() - measured_changes_.load();
  if (!is_measured_) return true;
  uint64_t then = measured_rows_;
  bool has_grown = now > then + then / 2 + CHANGES_MIN || now + now / 2 + CHANGES_MIN < then;
  return has_grown || since > std::max(CHANGES_MIN, now / 2);
}

int Share::measure(const TABLE *table, SampleSize size) {
  uint64_t changes = rows->changes();
  uint64_t now = uint64_t(std::max<int64_t>(0, rows->rows()));
  std::vector<RowsPerKey> found(indexes.size());
  bool hidden = has_hidden_key;
  for (uint k = 0; k < table->s->keys; k++) {
    uint place = tree_of(table, k);
    const Index &index = indexes[place];
    // A unique index of one part needs no measurement.
    if (index.is_unique && table->key_info[k].user_defined_key_parts == 1) continue;
    const KeyCodec *rest = place == 0 || hidden ? nullptr : &indexes[0].codec;
    // Ignore the error: an unreadable block must fail the statements that need the block, not every statement that
    // opens the table.
    if (Error error = measure_index(index.tree.get(), index.codec, rest, now, size, &found[place]))
      found[place].clear();
  }
  std::lock_guard<std::mutex> guard(measuring_);
  statistics_.indexes = std::move(found);
  statistics_.numbers = numbers_of(record);
  statistics_.measured_rows = measured_rows_ = now;
  measured_changes_ = changes;
  is_measured_ = true;
  // Ignore errors, for example of a full disk: they lose only an estimate, and the query continues.
  keep();
  return 0;
}

int Share::measure_if_stale(const TABLE *table) {
  // While one thread measures, other threads use the old statistics.
  if (!is_stale() || is_busy_.exchange(true)) return 0;
  int error = is_stale() ? measure(table, SAMPLE_USUAL) : 0;
  is_busy_ = false;
  return error;
}

int Share::keep() {
  kept_changes_ = rows->changes();
  statistics_.rows = uint64_t(std::max<int64_t>(0, rows->rows()));
  statistics_.commit_time = uint64_t(rows->commit_time());
  statistics_.server_start = uint64_t(server_start_time);
  return ha_error(dictionary().keep_statistics(record.number, statistics_.encode()));
}

void Share::keep_if_due() {
  uint64_t since = rows->changes() - kept_changes_.load(std::memory_order_relaxed);
  if (since < CHANGES_MIN) return;
  // Write the count when 1/20 of the rows has changed, so that a crash loses no more than about that many changes.
  if (since < uint64_t(std::max<int64_t>(0, rows->rows())) / 20) return;
  std::unique_lock<std::mutex> guard(measuring_, std::try_to_lock);
  // An error loses only an estimate.
  if (guard) keep();
}

void Share::close_statistics() {
  std::lock_guard<std::mutex> guard(measuring_);
  // The kept count may include rows that were rolled back later; a rollback is not counted as a change.
  bool is_kept = rows->changes() == kept_changes_ && int64_t(statistics_.rows) == rows->rows() &&
                 statistics_.commit_time == uint64_t(rows->commit_time());
  if (!is_kept) keep();
}

void Share::give_statistics(TABLE *table) {
  std::lock_guard<std::mutex> guard(measuring_);
  double all = double(std::max<int64_t>(1, rows->rows()));
  for (uint k = 0; k < table->s->keys; k++) {
    KEY *key = &table->key_info[k];
    uint place = tree_of(table, k);
    const RowsPerKey *found = place < statistics_.indexes.size() ? &statistics_.indexes[place] : nullptr;
    for (uint part = 0; part < key->ext_key_parts; part++) {
      bool is_row = (key->flags & HA_NOSAME && part + 1 >= key->user_defined_key_parts) ||
                    (part + 1 == key->ext_key_parts && part >= key->user_defined_key_parts);
      int prefix = prefix_of(table, key, part);
      double entries = is_row ? 1 : 0;
      if (!is_row && found && prefix >= 0 && size_t(prefix) < found->size())
        entries = std::min((*found)[size_t(prefix)], all);
      // A default for parts that were not measured, or whose end in the key cannot be found in this collation.
      if (entries == 0) entries = all / (10 * (part + 1));
      key->rec_per_key[part] = ulong(std::max(1.0, std::round(entries)));
    }
  }
}

int Share::measure_lengths(Lengths *found) {
  frondb_estimate estimate;
  Lengths sum;
  for (size_t i = 0; i < indexes.size(); i++) {
    if (Error error = frondb_tree_estimate(indexes[i].tree.get(), {}, nullptr, &estimate)) return ha_error(error);
    (i == 0 ? sum.data : sum.indexes) += estimate.disk_bytes;
    if (i == 0) sum.rows = estimate.entries;
  }
  Stats stats;
  uint64_t messages = 0, raw = 0, disk = 0;
  if (Error error = frondb_tree_stats(indexes[0].tree.get(), stats.out())) return ha_error(error);
  Error errors[] = {frondb_stats_find(stats.get(), "entries", &messages),
                    frondb_stats_find(stats.get(), "raw_bytes", &raw),
                    frondb_stats_find(stats.get(), "disk_bytes", &disk)};
  for (const Error &error : errors)
    if (error) return ha_error(error);
  uint64_t live = uint64_t(std::max<int64_t>(0, rows->rows()));
  if (messages > 0) sum.row = raw / messages;
  // Space of obsolete messages, which OPTIMIZE would free.
  if (messages > live) sum.free = uint64_t(double(disk) * double(messages - live) / double(messages));
  std::lock_guard<std::mutex> guard(measuring_);
  lengths_ = *found = sum;
  lengths_changes_ = rows->changes();
  return 0;
}

Share::Lengths Share::known_lengths(bool *is_old) {
  std::lock_guard<std::mutex> guard(measuring_);
  uint64_t since = rows->changes() - lengths_changes_;
  uint64_t live = uint64_t(std::max<int64_t>(0, rows->rows()));
  // `live` has uncommitted rows, which a measurement cannot see. Without the condition on changes, such rows would
  // cause a measurement for each statement.
  bool has_doubled = live > 2 * lengths_.rows + LENGTHS_NEW_ROWS && since > live / 2;
  *is_old = lengths_changes_ == ~0ULL || has_doubled || since > LENGTHS_CHANGES + live / 8;
  return lengths_;
}

}  // namespace fron
