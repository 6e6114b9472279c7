/* SPDX-License-Identifier: GPL-2.0-only

   The state that all handlers of a table share: its trees, its counters, its statistics. */

#ifndef FRONDB_TABLE_SHARE_H
#define FRONDB_TABLE_SHARE_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dictionary/dictionary.h"
#include "dictionary/tree_names.h"
#include "statistics/row_counts.h"
#include "statistics/table_statistics.h"
#include "table/index.h"
#include "txn/counter_lock.h"

namespace fron {

class IndexBuild;

/** Created when the table is first opened. Only the counters, the statistics and build() change while the table is in
    use. */
class Share : public Handler_share {
 public:
  ~Share() override { close_statistics(); }

  /** Finds the table in the dictionary and opens its trees. Called again after TRUNCATE, while no statement uses the
      table. */
  int open(const TABLE *table, const std::string &name);

  /** The table's key in the dictionary; the key of a partition is not the name in its TABLE. */
  std::string name;
  TableRecord record;
  /** The value of Dictionary::changed_at() when the share was opened. */
  uint64_t changed_at = 0;
  std::vector<Index> indexes;
  /** Names the table's locks. Created last, from complete indexes. */
  std::unique_ptr<Listing> listing;
  bool has_hidden_key = false;
  /** Whether the table has a unique index other than the primary one. */
  bool has_unique_secondary = false;
  /** Whether an entry has all fields of the primary key, because no part of it is a prefix. Then the server can compute
      a row's position from an entry. */
  bool is_primary_covered = true;

  /** Returns the indexes that an ALTER is building, to which writers must report their writes; null if there are
      none. */
  std::shared_ptr<IndexBuild> build() const { return is_building_ ? std::atomic_load(&build_) : nullptr; }
  void set_build(std::shared_ptr<IndexBuild> build) {
    bool is_one = build != nullptr;
    std::atomic_store(&build_, std::move(build));
    is_building_ = is_one;
  }

  /** Assigns the next hidden key. Hidden keys only grow, and are reserved in the dictionary before they are used. */
  int next_hidden(uint64_t *number);
  std::mutex counting;
  /** The next AUTO_INCREMENT number. Written under `counting`. */
  std::atomic<uint64_t> auto_increment{1};
  /** The lock that gives a statement exclusive use of the counter. */
  std::shared_ptr<CounterLock> counter_lock;
  /** Returned instead of an error of the server if `is_alone` is false and other statements use the counter's lock. */
  static constexpr int COUNTER_IS_LOCKED = -1;
  /** Raises the next number to at least `next`. `is_alone`: the statement has the counter's lock, or needs none. */
  int raise_auto_increment(uint64_t next, bool is_alone = true);
  /** Reserves `wanted` numbers from `first` on; `after` is one more than the last. If the column, whose largest
      number is `max`, has no number left, returns the present counter and reserves nothing (`after` is 0). */
  int reserve_auto_increment(uint64_t offset, uint64_t increment, uint64_t wanted, uint64_t max, bool is_alone,
                             uint64_t *first, uint64_t *after);
  /** Gives back the numbers from `unused` to `after` (excluded), which were reserved and not used. Does nothing if
      other statements have reserved later numbers. */
  int give_back_auto_increment(uint64_t after, uint64_t unused);

  // Statistics: table/statistics.cc.
  std::shared_ptr<RowCount> rows = std::make_shared<RowCount>();
  int open_statistics();
  /** Writes the row count to the dictionary after many changes, so that a crash does not lose many of them. */
  void keep_if_due();
  int measure(const TABLE *table, SampleSize size);
  int measure_if_stale(const TABLE *table);
  void give_statistics(TABLE *table);
  /** Bytes on disk of rows and of indexes, obsolete bytes, bytes of a row before compression, and the number of rows
      measured, which excludes rows of uncommitted transactions. */
  struct Lengths {
    uint64_t data = 0, indexes = 0, free = 0, row = 0, rows = 0;
  };
  int measure_lengths(Lengths *found);
  Lengths known_lengths(bool *is_old);

 private:
  bool is_stale() const;
  int keep();
  void close_statistics();

  uint64_t hidden_next_ = 0, hidden_end_ = 0;

  /** Guards the statistics. */
  std::mutex measuring_;
  TableStatistics statistics_;
  Lengths lengths_;
  uint64_t lengths_changes_ = ~0ULL;
  std::atomic<uint64_t> kept_changes_{0}, measured_changes_{0}, measured_rows_{0};
  std::atomic<bool> is_measured_{false}, is_busy_{false};
  std::atomic<bool> is_building_{false};
  std::shared_ptr<IndexBuild> build_;
};

}  // namespace fron

#endif
