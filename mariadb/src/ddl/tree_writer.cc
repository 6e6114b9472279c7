/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/tree_writer.h. */

#include "ddl/tree_writer.h"

#include "engine/db.h"

namespace fron {
namespace {

constexpr uint64_t BATCH_BYTES = 256 << 10;
constexpr size_t BATCH_ENTRIES = 4096;

}  // namespace

Error TreeWriter::begin() {
  if (Error error = buffer_.make()) return error;
  return batch_.make();
}

Error TreeWriter::put(const std::string &key, std::string_view value, bool is_known) {
  if (Error error = batch_.put(tree_, key, value)) return error;
  if (is_known) known_.insert(key);
  return wrote(key.size() + value.size());
}

Error TreeWriter::remove(const std::string &key) {
  if (Error error = batch_.remove(tree_, key)) return error;
  return wrote(key.size());
}

Error TreeWriter::has(const std::string &key, bool *found) {
  *found = known_.count(key) != 0;
  return *found ? Error() : read_key(tree_, key, nullptr, buffer_, found);
}

Error TreeWriter::wrote(size_t bytes) {
  bytes_ += bytes;
  return ++entries_ >= BATCH_ENTRIES || bytes_ >= BATCH_BYTES ? finish() : Error();
}

Error TreeWriter::finish() {
  if (entries_ == 0) return {};
  bytes_ = entries_ = 0;
  known_.clear();
  // The record that names the tree is synced later in the same log.
  if (Error error = write_batch(batch_, FRONDB_NO_SYNC)) return error;
  return batch_.clear();
}

}  // namespace fron
