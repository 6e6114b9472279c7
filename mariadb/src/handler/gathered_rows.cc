/* SPDX-License-Identifier: GPL-2.0-only

   See handler/gathered_rows.h. */

#include "handler/gathered_rows.h"

namespace fron {

void GatheredRows::add(const std::vector<frondb_write> &writes, size_t *all) {
  size_t before = bytes_.size();
  for (const frondb_write &write : writes) {
    entries_.push_back({write, bytes_.size()});
    bytes_.append(view(write.key)).append(view(write.value));
  }
  ends_.push_back(entries_.size());
  size_t bytes = bytes_.size() - before + writes.size() * sizeof(Entry);
  all_ = all;
  counted_ += bytes;
  *all_ += bytes;
}

void GatheredRows::clear() {
  if (all_) *all_ -= counted_;
  all_ = nullptr;
  counted_ = 0;
  // Frees the memory.
  std::string().swap(bytes_);
  std::vector<Entry>().swap(entries_);
  std::vector<size_t>().swap(ends_);
}

const std::vector<frondb_write> &GatheredRows::row(size_t number) {
  writes_.clear();
  for (size_t i = number ? ends_[number - 1] : 0; i < ends_[number]; i++) {
    Entry entry = entries_[i];
    entry.write.key.data = reinterpret_cast<const uint8_t *>(bytes_.data()) + entry.at;
    entry.write.value.data = entry.write.key.data + entry.write.key.len;
    writes_.push_back(entry.write);
  }
  return writes_;
}

}  // namespace fron
