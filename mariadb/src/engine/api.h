/* SPDX-License-Identifier: GPL-2.0-only

   frondb.h as C++: handles that free themselves, errors that must be checked, and common calls as methods. The only
   file of the plugin that includes frondb.h; includes no header of the server. */

#ifndef FRONDB_ENGINE_API_H
#define FRONDB_ENGINE_API_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frondb.h"

namespace fron {

/** An error of the engine, or none. Owns the error object. */
class [[nodiscard]] Error {
 public:
  Error(frondb_error *error = nullptr) : error_(error) {}
  Error(Error &&other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Error &operator=(Error &&other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Error() { frondb_error_free(error_); }

  explicit operator bool() const { return error_ != nullptr; }
  frondb_kind kind() const { return frondb_error_kind(error_); }
  const char *message() const { return frondb_error_message(error_); }
  int os_code() const { return frondb_error_os_code(error_); }
  /** Sets `place` to the place of damage, or of data that the device could not read; it is valid as long as the error.
      Returns false if the error has no place. */
  bool place(frondb_place *place) const { return frondb_error_place(error_, place); }

 private:
  frondb_error *error_;
};

/** An object of the engine, freed by its own function. */
template <typename T, frondb_kind (*Free)(T *)>
class Handle {
 public:
  Handle() = default;
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { reset(); }

  T *get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }
  /** Returns the out argument for a function that creates an object; frees the present object. */
  T **out() {
    reset();
    return &handle_;
  }
  void reset() {
    if (handle_) Free(std::exchange(handle_, nullptr));
  }
  /** Passes the object to a function that frees it. */
  T *take() { return std::exchange(handle_, nullptr); }

 private:
  T *handle_ = nullptr;
};

/** A list of the engine. Its items point into the list. */
template <typename Item, frondb_error *(*Get)(frondb_list *, size_t, Item *)>
class ListOf : public Handle<frondb_list, frondb_list_free> {
 public:
  size_t size() const { return frondb_list_count(this->get()); }
  /** Reads the first items, at most `most`. */
  Error read(std::vector<Item> *items, size_t most = SIZE_MAX) const {
    items->resize(std::min(size(), most));
    for (size_t i = 0; i < items->size(); i++)
      if (Error error = Get(this->get(), i, &(*items)[i])) return error;
    return {};
  }
};

using Options = Handle<frondb_options, frondb_options_free>;
using Db = Handle<frondb_db, frondb_db_free>;
using Tree = Handle<frondb_tree, frondb_tree_free>;
using TreeOptions = Handle<frondb_tree_options, frondb_tree_options_free>;
using Txn = Handle<frondb_txn, frondb_txn_free>;
using Committing = Handle<frondb_committing, frondb_committing_free>;
using TxnOptions = Handle<frondb_txn_options, frondb_txn_options_free>;
using Snapshot = Handle<frondb_snapshot, frondb_snapshot_free>;
using Bulk = Handle<frondb_bulk, frondb_bulk_free>;
using Backup = Handle<frondb_backup, frondb_backup_free>;
using BulkWriter = Handle<frondb_bulk_writer, frondb_bulk_writer_free>;
using BulkStatement = Handle<frondb_bulk_statement, frondb_bulk_statement_free>;
using List = ListOf<frondb_slice, frondb_list_get>;
using Locks = ListOf<frondb_lock_info, frondb_list_get_lock>;
using Transactions = ListOf<frondb_transaction_info, frondb_list_get_transaction>;
using Files = ListOf<frondb_file_info, frondb_list_get_file>;
using Stats = Handle<frondb_stats, frondb_stats_free>;

inline frondb_slice slice(std::string_view bytes) {
  return {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
}

inline std::string_view view(frondb_slice bytes) {
  return {reinterpret_cast<const char *>(bytes.data), bytes.len};
}

/** Receives the values that are read. */
class Buffer : public Handle<frondb_buffer, frondb_buffer_free> {
 public:
  Error make() { return frondb_buffer_new(out()); }
  /** Returns the value of the last read; valid until the next read into the buffer. */
  frondb_slice slice() const { return frondb_buffer_value(get()); }
  std::string_view value() const { return view(slice()); }
};

/** Reads the value of a key, outside of a transaction. `at` is null for the newest committed state. */
inline Error read_key(frondb_tree *tree, std::string_view key, frondb_snapshot *at, const Buffer &buffer, bool *found) {
  return frondb_tree_get(tree, slice(key), at, buffer.get(), found);
}

/** Collects writes to any trees, which are committed together. */
class Batch : public Handle<frondb_batch, frondb_batch_free> {
 public:
  Error make() { return frondb_batch_new(out()); }
  Error put(frondb_tree *tree, std::string_view key, std::string_view value) const {
    return frondb_batch_put(get(), tree, fron::slice(key), fron::slice(value));
  }
  Error remove(frondb_tree *tree, std::string_view key) const {
    return frondb_batch_delete(get(), tree, fron::slice(key));
  }
  Error clear() const { return frondb_batch_clear(get()); }
};

/** A position in a tree. */
class Cursor : public Handle<frondb_cursor, frondb_cursor_free> {
 public:
  /** Opens a cursor outside of a transaction, before the first key from `from` on. If `at` is null, the cursor takes
      a snapshot of its own. */
  Error open(frondb_tree *tree, std::string_view from, frondb_snapshot *at) {
    return frondb_tree_cursor(tree, fron::slice(from), nullptr, at, out());
  }
  /** Reads the next entries: at most `entries`, and about `bytes` bytes of them; none at the end. The entries are
      valid until the next call. */
  Error read(size_t entries, size_t bytes, frondb_rows *rows) const {
    return frondb_cursor_next_batch(get(), entries, bytes, rows);
  }
  /** Reads the entries before the cursor, like read(). */
  Error read_back(size_t entries, size_t bytes, frondb_rows *rows) const {
    return frondb_cursor_prev_batch(get(), entries, bytes, rows);
  }
  /** Returns whether the cursor is at an entry; false after it has passed the end. */
  bool is_at_entry() const { return frondb_cursor_is_valid(get()); }
};

}  // namespace fron

#endif
