/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/row_journal.h. */

#include "ddl/row_journal.h"

#include <mutex>

#include "codec/entry.h"
#include "engine/errors.h"

namespace fron {
namespace {

constexpr size_t READ_ENTRIES = 256;
constexpr uint64_t READ_BYTES = 256 << 10;
constexpr char BEFORE = 0, AFTER = 1;
/** Bytes of a journal key after the primary key: the number of the write, and which image follows. */
constexpr size_t TAIL_BYTES = 9;

/** Splits a journal's key into the row's primary key and the kind of the image. Returns false if the key is damaged. */
bool split(std::string_view key, std::string_view *primary, char *which) {
  if (key.size() < TAIL_BYTES) return false;
  *primary = key.substr(0, key.size() - TAIL_BYTES);
  *which = key.back();
  return *which == BEFORE || *which == AFTER;
}

/** Collects the images of one row. */
class Images {
 public:
  explicit Images(const std::function<int(const RowChange &)> &visit) : visit_(visit) {}
  int add(std::string_view primary, char which, std::string_view row) {
    if (is_first_ || primary != primary_) {
      if (int error = finish()) return error;
      is_first_ = false;
      primary_.assign(primary);
      has_before_ = which == BEFORE;
      if (has_before_) before_.assign(row);
    }
    has_after_ = which == AFTER;
    if (has_after_) after_.assign(row);
    return 0;
  }
  int finish() const {
    if (is_first_ || (!has_before_ && !has_after_)) return 0;
    return visit_({primary_, has_before_ ? &before_ : nullptr, has_after_ ? &after_ : nullptr});
  }

 private:
  const std::function<int(const RowChange &)> &visit_;
  bool is_first_ = true, has_before_ = false, has_after_ = false;
  std::string primary_, before_, after_;
};

}  // namespace

Error RowJournal::add_generation() {
  Generation next;
  Error error = make_tree_(&next.name, &next.tree);
  if (error) return error;
  std::unique_lock<std::shared_mutex> guard(latch_);
  generations_.push_back(std::move(next));
  return {};
}

Error RowJournal::close() { return add_generation(); }

Error RowJournal::put(frondb_txn *txn, std::string *key, char which, std::string_view row) {
  key->back() = which;
  return frondb_txn_put(txn, generations_.back().tree.get(), slice(*key), slice(row));
}

Error RowJournal::note(frondb_txn *txn, const RowChange &change) {
  std::shared_lock<std::shared_mutex> guard(latch_);
  if (is_over_) return {};
  std::string key(change.primary);
  append_big_endian(writes_++, &key);
  key.push_back(BEFORE);
  if (change.before)
    if (Error error = put(txn, &key, BEFORE, *change.before)) return error;
  return change.after ? put(txn, &key, AFTER, *change.after) : Error();
}

int RowJournal::each(frondb_snapshot *at, const std::function<int(const RowChange &)> &visit) const {
  Cursor cursor;
  if (Error error = cursor.open(oldest(), {}, at)) return ha_error(error);
  Images images(visit);
  for (;;) {
    frondb_rows rows;
    if (Error error = cursor.read(READ_ENTRIES, READ_BYTES, &rows)) return ha_error(error);
    if (rows.count == 0) return images.finish();
    for (size_t i = 0; i < rows.count; i++) {
      std::string_view primary;
      char which;
      if (!split(view(rows.entries[i].key), &primary, &which)) return ha_internal("a journal of ALTER TABLE has a damaged key");
      if (int error = images.add(primary, which, view(rows.entries[i].value))) return error;
    }
  }
}

void RowJournal::end() {
  std::unique_lock<std::shared_mutex> guard(latch_);
  is_over_ = true;
}

std::vector<std::string> RowJournal::names() const {
  std::vector<std::string> names;
  for (const Generation &generation : generations_) names.push_back(generation.name);
  return names;
}

}  // namespace fron
