/* SPDX-License-Identifier: GPL-2.0-only

   See codec/entry.h. */

#include "codec/entry.h"

#include <my_global.h>

namespace fron {

void append_big_endian(uint64_t number, std::string *to) {
  for (int shift = 56; shift >= 0; shift -= 8) to->push_back(char(number >> shift));
}

bool prefix_end(std::string *prefix) {
  while (!prefix->empty() && uchar(prefix->back()) == 0xFF) prefix->pop_back();
  if (prefix->empty()) return false;
  prefix->back() = char(uchar(prefix->back()) + 1);
  return true;
}

void append_head(size_t length, bool in_value, std::string *to) {
  size_t head = length * 2 + in_value;
  for (; head >= 0x80; head >>= 7) to->push_back(char(head | 0x80));
  to->push_back(char(head));
}

bool split_entry(frondb_slice key, frondb_slice value, frondb_slice *primary,
                 std::string_view *covered) {
  size_t head = 0, at = 0;
  for (uint shift = 0;; shift += 7) {
    if (at == value.len || shift > 21) return false;
    uchar byte = value.data[at++];
    head |= size_t(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  size_t length = head / 2;
  if (head % 2) {
    if (value.len - at < length) return false;
    *primary = {value.data + at, length};
    at += length;
  } else {
    if (key.len < length) return false;
    *primary = {key.data + key.len - length, length};
  }
  *covered = view(value).substr(at);
  return true;
}

}  // namespace fron
