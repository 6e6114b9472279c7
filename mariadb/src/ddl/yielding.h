/* SPDX-License-Identifier: GPL-2.0-only

   Long scans of a statement make room for writers of the same table where processors are short. */

#ifndef FRONDB_DDL_YIELDING_H
#define FRONDB_DDL_YIELDING_H

#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>

#include "statistics/row_counts.h"

namespace fron {

/** Used between the steps of a scan. If the table has been written since the last step, and this thread had to wait for
    a processor or the disk meanwhile, it pauses three times as long as the step took: the writers get the rest. Without
    writers, or with processors to spare, it never pauses. */
class Yielding {
 public:
  explicit Yielding(const RowCount &rows) : rows_(rows), changes_(rows.changes()) { begin(); }

  /** Called for each row of the scan, or with the number of rows of a step. */
  void passed(size_t rows) {
    passed_ += rows;
    if (passed_ < ROWS_A_STEP) return;
    std::this_thread::sleep_for(pause());
    begin();
  }

 private:
  /** Some milliseconds of work: enough to tell whether others have the processor. */
  static constexpr size_t ROWS_A_STEP = 4096;

  std::chrono::nanoseconds pause() const {
    if (rows_.changes() == changes_) return {};
    auto took = std::chrono::steady_clock::now() - began_;
    bool was_alone = cpu_time() - cpu_ > took * 9 / 10;
    return was_alone ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(took * 3);
  }
  void begin() {
    passed_ = 0;
    changes_ = rows_.changes();
    began_ = std::chrono::steady_clock::now();
    cpu_ = cpu_time();
  }
  static std::chrono::nanoseconds cpu_time() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  }

  const RowCount &rows_;
  uint64_t changes_;
  size_t passed_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::chrono::nanoseconds cpu_;
};

}  // namespace fron

#endif
