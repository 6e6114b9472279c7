/* SPDX-License-Identifier: GPL-2.0-only

   Encodes numbers and texts as bytes, for the records of the dictionary. Pure functions over bytes. */

#ifndef FRONDB_CODEC_BYTES_H
#define FRONDB_CODEC_BYTES_H

#include <cstdint>
#include <string>
#include <string_view>

namespace fron {

/** Appends a number as 8 bytes, little-endian. */
inline void put_u64(uint64_t value, std::string *to) {
  for (int shift = 0; shift < 64; shift += 8) to->push_back(char(value >> shift));
}

/** Appends the length of a text, then the text. */
inline void put_text(std::string_view text, std::string *to) {
  put_u64(text.size(), to);
  to->append(text);
}

/** Decodes the output of the functions above. Each method returns false if the bytes end too early. */
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes) {}
  bool u64(uint64_t *value) {
    if (left_.size() < 8) return false;
    *value = 0;
    for (int i = 0; i < 8; i++) *value |= uint64_t(byte_at(i)) << 8 * i;
    left_.remove_prefix(8);
    return true;
  }
  bool text(std::string *value) {
    uint64_t size;
    if (!u64(&size) || size > left_.size()) return false;
    value->assign(left_.substr(0, size));
    left_.remove_prefix(size);
    return true;
  }
  bool at_end() const { return left_.empty(); }

 private:
  unsigned char byte_at(int i) const { return static_cast<unsigned char>(left_[size_t(i)]); }
  std::string_view left_;
};

}  // namespace fron

#endif
