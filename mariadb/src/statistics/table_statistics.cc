/* SPDX-License-Identifier: GPL-2.0-only

   See statistics/table_statistics.h. */

#include "statistics/table_statistics.h"

#include <algorithm>
#include <cstring>

#include "codec/entry.h"
#include "codec/key.h"

namespace fron {
namespace {

/** An index with no more entries than this is read completely. */
constexpr size_t WHOLE_MAX = 1000;
/** Maximum bytes of a run of entries, because rows can be long. */
constexpr size_t RUN_BYTES = 128 << 10;
/** If a prefix changes at least this often in a run, the run suffices to estimate the number of its groups. */
constexpr size_t CHANGES_ENOUGH = 8;
/** Version of the encoded statistics. Version 2 lacked the time of the last commit. */
constexpr char RECORD_VERSION = 3;

/** Splits the keys of entries into prefixes. */
class Cutter {
 public:
  Cutter(const KeyCodec &codec, const KeyCodec *rest) : codec_(codec), rest_(rest) {}

  /** Finds the offsets at which the prefixes of an entry's key end; fewer if some end is unknown. */
  void cut(std::string_view key, std::vector<size_t> *ends) const {
    ends->clear();
    if (!codec_.cut(key, ends) || !rest_ || ends->empty()) return;
    size_t own = ends->back(), before = ends->size();
    rest_->cut(key.substr(own), ends);
    for (size_t i = before; i < ends->size(); i++) (*ends)[i] += own;
  }

 private:
  const KeyCodec &codec_;
  const KeyCodec *rest_;
};

/** The keys of neighbouring entries, and the offsets at which their prefixes end. */
struct Run {
  std::vector<std::string> keys;
  std::vector<std::vector<size_t>> ends;
  bool is_last = false;

  bool changes(size_t at, size_t prefix) const {
    if (prefix >= ends[at].size() || prefix >= ends[at - 1].size()) return true;
    size_t end = ends[at][prefix];
    return end != ends[at - 1][prefix] || keys[at].compare(0, end, keys[at - 1], 0, end) != 0;
  }
  /** Returns the number of changes of a prefix in the first `size` entries, and the position of the last one (0:
      none). */
  size_t count(size_t size, size_t prefix, size_t *last) const {
    size_t n = 0;
    *last = 0;
    for (size_t i = 1; i < size; i++)
      if (changes(i, prefix)) n++, *last = i;
    return n;
  }

  /** Returns the number of entries before `hi`; all if that is null. */
  size_t before(const std::string *hi) const {
    return hi ? size_t(std::lower_bound(keys.begin(), keys.end(), *hi) - keys.begin()) : keys.size();
  }
};

/** Counts the groups of an index, interval by interval. */
class GroupCounter {
 public:
  GroupCounter(frondb_tree *tree, const Cutter &cutter, SampleSize size) : tree_(tree), cutter_(cutter), size_(size) {}

  Error read(std::string_view from, size_t entries, Run *run) const {
    Cursor cursor;
    frondb_rows rows;
    if (Error error = cursor.open(tree_, from, nullptr)) return error;
    if (Error error = cursor.read(entries, RUN_BYTES, &rows)) return error;
    *run = Run();
    run->is_last = !cursor.is_at_entry();
    for (size_t i = 0; i < rows.count; i++) {
      run->keys.emplace_back(view(rows.entries[i].key));
      run->ends.emplace_back();
      cutter_.cut(run->keys.back(), &run->ends.back());
    }
    return {};
  }

  /** Counts approximately the groups of a prefix that begin after the first entry of an interval, up to and including
      the first entry of the next one. `first` is the run at the beginning of the interval, and `hi` the first entry of
      the next interval, null for the last interval. Because intervals begin with entries, each group is counted in
      exactly one interval, except the first group of the index, which is not counted. The walk takes at most `steps`
      steps, and subtracts the steps taken from `steps`. */
  Error count(const Run &first, const std::string *hi, size_t prefix, size_t *steps, double *groups) const {
    *groups = 0;
    Run later;
    for (const Run *run = &first;; run = &later) {
      size_t inside = run->before(hi), last;
      bool has_border = inside < run->keys.size();
      size_t n = run->count(has_border ? inside + 1 : inside, prefix, &last);
      *groups += double(n);
      if (has_border || run->is_last) return {};
      if (n >= CHANGES_ENOUGH) return add_rest(*run, hi, n, groups);
      std::string next;
      // The group extends into the next interval, or is the last one of the index.
      if (!end_of_group(*run, last, prefix, &next) || (hi && next > *hi)) return {};
      if (*steps == 0) return extrapolate(first, next, hi, groups);
      --*steps;
      if (Error error = read(next, size_.entries, &later)) return error;
      if (later.keys.empty()) return {};
      *groups += 1;
      if (hi && later.keys[0] >= *hi) return {};
    }
  }

 private:
  Error estimate(std::string_view lo, const std::string *hi, double *entries) const {
    frondb_slice end = hi ? slice(*hi) : frondb_slice{};
    frondb_estimate found;
    if (Error error = frondb_tree_estimate(tree_, slice(lo), hi ? &end : nullptr, &found)) return error;
    *entries = double(found.entries);
    return {};
  }

  /** Adds the groups after a run, in which the prefix changes `changes` times, up to `hi`: assumes the same number
      of changes per entry. */
  Error add_rest(const Run &run, const std::string *hi, size_t changes, double *groups) const {
    double entries, read = double(run.keys.size() - 1);
    if (Error error = estimate(run.keys[0], hi, &entries)) return error;
    *groups += double(changes) * std::max(0.0, entries / read - 1);
    return {};
  }

  /** Extrapolates the groups that the walk has found up to `next`, where another group begins, to `hi`: assumes the
      same number of groups per entry. Half of the last group counts, because the walk began somewhere within a
      group. */
  Error extrapolate(const Run &first, const std::string &next, const std::string *hi, double *groups) const {
    double walked, all;
    if (Error error = estimate(first.keys[0], &next, &walked)) return error;
    if (Error error = estimate(first.keys[0], hi, &all)) return error;
    *groups = std::max(*groups + 1, (*groups + 0.5) * all / std::max(1.0, walked));
    return {};
  }

  /** Finds the least key after the group of the entry `at`; false if there is none. */
  static bool end_of_group(const Run &run, size_t at, size_t prefix, std::string *next) {
    *next = prefix < run.ends[at].size() ? run.keys[at].substr(0, run.ends[at][prefix]) : run.keys[at];
    return prefix_end(next);
  }

  frondb_tree *tree_;
  const Cutter &cutter_;
  SampleSize size_;
};

}  // namespace

Error count_entries(frondb_tree *tree, bool reads_few, uint64_t *count, bool *is_exact) {
  frondb_estimate estimate;
  if (Error error = frondb_tree_estimate(tree, {}, nullptr, &estimate)) return error;
  *count = estimate.entries;
  *is_exact = false;
  if (!reads_few || estimate.entries > WHOLE_MAX) return {};
  Cursor cursor;
  frondb_rows rows;
  uint64_t read = 0;
  if (Error error = cursor.open(tree, {}, nullptr)) return error;
  do {
    if (Error error = cursor.read(WHOLE_MAX, RUN_BYTES, &rows)) return error;
    read += rows.count;
  } while (rows.count > 0 && read <= 2 * WHOLE_MAX);
  *is_exact = rows.count == 0;
  if (*is_exact) *count = read;
  return {};
}

Error measure_index(frondb_tree *tree, const KeyCodec &codec, const KeyCodec *rest, uint64_t rows,
                    SampleSize size, RowsPerKey *found) {
  Cutter cutter(codec, rest);
  GroupCounter counter(tree, cutter, size);
  std::vector<std::string> borders(1);
  if (rows > WHOLE_MAX) {
    List list;
    std::vector<frondb_slice> keys;
    if (Error error = frondb_tree_split_keys(tree, size.intervals, list.out())) return error;
    if (Error error = list.read(&keys)) return error;
    for (frondb_slice key : keys) borders.emplace_back(view(key));
  }
  size_t run_entries = rows > WHOLE_MAX ? size.entries : WHOLE_MAX + 1;
  std::vector<double> groups;
  // For each prefix, the steps that intervals may still take: unused steps are left to later intervals.
  std::vector<size_t> steps;
  Run run, next;
  if (Error error = counter.read(borders[0], run_entries, &run)) return error;
  for (size_t at = 1; !run.keys.empty(); std::swap(run, next)) {
    groups.resize(std::max(groups.size(), run.ends[0].size()));
    steps.resize(groups.size(), size.steps * (size.intervals - std::min(size.intervals, borders.size())));
    // An interval without entries is a part of the one before it.
    while (at < borders.size() && borders[at] <= run.keys[0]) at++;
    next = Run();
    if (at < borders.size())
      if (Error error = counter.read(borders[at++], run_entries, &next)) return error;
    const std::string *hi = next.keys.empty() ? nullptr : &next.keys[0];
    for (size_t p = 0; p < groups.size(); p++) {
      double more;
      steps[p] += size.steps;
      if (Error error = counter.count(run, hi, p, &steps[p], &more)) return error;
      groups[p] += more;
    }
  }
  double entries = double(std::max<uint64_t>(1, rows));
  found->clear();
  for (size_t p = 0; p < groups.size(); p++) {
    double each = std::clamp(entries / (groups[p] + 1), 1.0, entries);
    // A value of a longer prefix cannot be shared by more rows.
    found->push_back(p > 0 ? std::min(each, found->back()) : each);
  }
  return {};
}

namespace {

void put(uint64_t number, std::string *to) { append_big_endian(number, to); }

bool take(std::string_view *from, uint64_t *number) {
  if (from->size() < 8) return false;
  *number = 0;
  for (char byte : from->substr(0, 8)) *number = *number << 8 | static_cast<unsigned char>(byte);
  from->remove_prefix(8);
  return true;
}

}  // namespace

std::string TableStatistics::encode() const {
  std::string bytes(1, RECORD_VERSION);
  put(rows, &bytes);
  put(measured_rows, &bytes);
  put(indexes.size(), &bytes);
  for (size_t i = 0; i < indexes.size(); i++) {
    const RowsPerKey &index = indexes[i];
    put(i < numbers.size() ? numbers[i] : 0, &bytes);
    put(index.size(), &bytes);
    // The record has rows per key in thousandths of a row.
    for (double rows_per_key : index) put(uint64_t(rows_per_key * 1000), &bytes);
  }
  put(commit_time, &bytes);
  put(server_start, &bytes);
  return bytes;
}

bool TableStatistics::decode(std::string_view bytes) {
  if (bytes.empty() || (bytes[0] != RECORD_VERSION && bytes[0] != 2)) return false;
  bool has_time = bytes[0] == RECORD_VERSION;
  bytes.remove_prefix(1);
  uint64_t count, parts, number;
  if (!take(&bytes, &rows) || !take(&bytes, &measured_rows) || !take(&bytes, &count)) return false;
  indexes.clear();
  numbers.clear();
  while (count-- > 0) {
    RowsPerKey index;
    if (!take(&bytes, &number) || !take(&bytes, &parts)) return false;
    numbers.push_back(number);
    while (parts-- > 0) {
      if (!take(&bytes, &number)) return false;
      index.push_back(double(number) / 1000);
    }
    indexes.push_back(std::move(index));
  }
  commit_time = server_start = 0;
  if (has_time && (!take(&bytes, &commit_time) || !take(&bytes, &server_start))) return false;
  return bytes.empty();
}

}  // namespace fron
