/* SPDX-License-Identifier: GPL-2.0-only

   See codec/entry_sum.h. */

#include "codec/entry_sum.h"

#include <functional>

namespace fron {

void EntrySum::add(std::string_view key, std::string_view value) {
  std::hash<std::string_view> hash;
  // Mixes the two hashes: if they were only added, two keys could exchange their values without changing the sum.
  uint64_t mixed = hash(key) * 0x9E3779B97F4A7C15ULL ^ hash(value);
  mixed ^= mixed >> 32;
  mixed *= 0xD6E8FEB86659FD93ULL;
  mixed ^= mixed >> 29;
  count++;
  sum += mixed;
}

}  // namespace fron
