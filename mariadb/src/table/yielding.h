/* SPDX-License-Identifier: GPL-2.0-only

   Lets long scans of a statement leave processor time to writers of the same table, if processors are scarce. */

#ifndef FRONDB_TABLE_YIELDING_H
#define FRONDB_TABLE_YIELDING_H

#include <chrono>
#include <cstdint>
#include <thread>

#include "statistics/row_counts.h"

namespace fron {

/** Used between the steps of a scan. While other connections write the table, the scan works only part of the time, and
    so uses 1/8 of the machine's processors, at most one: it works a quarter of the time on two processors, and always
    from eight processors on. */
class Yielding {
 public:
  explicit Yielding(const RowCount &rows) : rows_(rows), changes_(rows.changes()) { begin(); }

  /** Called for each row of the scan, or with the number of rows of a step. */
  void passed(size_t rows) {
    passed_ += rows;
    if (passed_ < ROWS_BETWEEN_CHECKS) return;
    passed_ = 0;
    auto took = std::chrono::steady_clock::now() - began_;
    if (took < STEP) return;
    std::this_thread::sleep_for(pause(took));
    begin();
  }

 private:
  /** Time of work between two pauses. */
  static constexpr std::chrono::milliseconds STEP{5};
  /** Number of rows between two reads of the clock. */
  static constexpr size_t ROWS_BETWEEN_CHECKS = 1024;

  std::chrono::nanoseconds pause(std::chrono::nanoseconds took) const {
    // 0 if the number of processors is unknown.
    unsigned processors = std::thread::hardware_concurrency();
    if (rows_.changes() == changes_ || processors == 0 || processors >= 8) return {};
    return took * (8 - processors) / processors;
  }
  void begin() {
    changes_ = rows_.changes();
    began_ = std::chrono::steady_clock::now();
  }

  const RowCount &rows_;
  uint64_t changes_;
  size_t passed_ = 0;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace fron

#endif
