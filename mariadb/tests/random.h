/* SPDX-License-Identifier: GPL-2.0-only

   Repeatable random numbers (splitmix64). The seed repeats a failure. */

#ifndef FRONDB_TEST_RANDOM_H
#define FRONDB_TEST_RANDOM_H

#include <cstdint>

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

  /** A number below `n`, which is not 0. */
  uint64_t below(uint64_t n) { return next() % n; }
  bool chance(uint64_t n, uint64_t of) { return below(of) < n; }

 private:
  uint64_t state_;
};

#endif
