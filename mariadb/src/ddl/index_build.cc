/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/index_build.h. */

#include "ddl/index_build.h"

#include <mutex>

#include "codec/entry.h"
#include "engine/db.h"

namespace fron {
namespace {

/** Limits of a batch of writes to the tree of an index. */
constexpr uint64_t BATCH_BYTES = 256 << 10;
constexpr size_t BATCH_ENTRIES = 4096;
constexpr size_t READ_ENTRIES = 256;
/** Once a pass has applied fewer changes than this, the rest is left for finish(), when writers are locked out. */
constexpr uint64_t ENTRIES_LEFT = 4096;
constexpr int ROUNDS_MAX = 8;
/** Milliseconds of a wait for writers between two checks of KILL. */
constexpr uint64_t SLICE_MILLIS = 100;

enum : uchar { HAS_VALUE = 1, REMOVED = 2, CONFLICT = 4 };

/** Whether a wait for writers ended because a writer has not finished. FRONDB_BUSY counts too: with the binary log
    every writer is prepared for a moment before it commits. */
bool is_late_writer(const Error &error) {
  frondb_kind kind = error.kind();
  return kind == FRONDB_LOCK_TIMEOUT || kind == FRONDB_DEADLOCK || kind == FRONDB_BUSY;
}

/** A journal's entry for a key. */
struct Change {
  uchar flags = 0;
  /** For a unique key: the row whose entry was removed first. */
  std::string_view removed;
  std::string_view value;

  void encode(std::string *to) const {
    to->assign(1, char(flags));
    if (flags & REMOVED) {
      append_head(removed.size(), true, to);
      to->append(removed);
    }
    to->append(value);
  }
  bool decode(frondb_slice bytes) {
    if (bytes.len == 0) return false;
    flags = bytes.data[0];
    frondb_slice rest = {bytes.data + 1, bytes.len - 1}, primary;
    value = view(rest);
    if (!(flags & REMOVED)) return true;
    if (!split_entry({}, rest, &primary, &value)) return false;
    removed = view(primary);
    return true;
  }
};

/** The primary key in the value of a unique index's entry. */
std::string_view row_of(std::string_view value) {
  frondb_slice primary = {};
  std::string_view rest;
  return split_entry({}, slice(value), &primary, &rest) ? view(primary) : std::string_view();
}

/** Writes to a tree in batches. */
class Writer {
 public:
  explicit Writer(frondb_tree *tree) : tree_(tree) {}
  Error begin() { return batch_.make(); }
  Error put(frondb_slice key, std::string_view value) {
    if (Error error = batch_.put(tree_, view(key), value)) return error;
    return wrote(key.len + value.size());
  }
  Error remove(frondb_slice key) {
    if (Error error = batch_.remove(tree_, view(key))) return error;
    return wrote(key.len);
  }
  Error finish() {
    if (entries_ == 0) return {};
    bytes_ = entries_ = 0;
    // The record that names the tree is synced later in the same log.
    if (Error error = write_batch(batch_, FRONDB_NO_SYNC)) return error;
    return batch_.clear();
  }

 private:
  Error wrote(size_t bytes) {
    bytes_ += bytes;
    return ++entries_ >= BATCH_ENTRIES || bytes_ >= BATCH_BYTES ? finish() : Error();
  }
  frondb_tree *tree_;
  Batch batch_;
  uint64_t bytes_ = 0;
  size_t entries_ = 0;
};

}  // namespace

// --- Trees ---

Error IndexBuild::make_tree(frondb_tree_options *options, std::string *name, uint32_t *number, Tree *tree) {
  for (;;) {
    *number = (*next_index_)++;
    *name = Dictionary::tree_name(table_, *number);
    Error error = create_tree(*name, options, tree);
    // The name exists if an abandoned build has used the number and a transaction still needs its tree.
    if (!error || error.kind() != FRONDB_EXISTS) return error;
  }
}

Error IndexBuild::make_journals(Journals *made) {
  for (size_t i = 0; i < indexes.size(); i++) {
    TreeOptions options;
    std::string name;
    uint32_t number;
    Tree tree;
    if (Error error = frondb_tree_options_new(options.out())) return error;
    if (Error error = make_tree(options.get(), &name, &number, &tree)) return error;
    made->names.push_back(std::move(name));
    made->trees.push_back(std::move(tree));
  }
  return {};
}

Error IndexBuild::make_trees(const std::vector<TreeOptions> &options) {
  for (size_t i = 0; i < indexes.size(); i++) {
    std::string name;
    if (Error error = make_tree(options[i].get(), &name, &indexes[i].record.number, &indexes[i].index.tree))
      return error;
  }
  generations_.emplace_back();
  return make_journals(&generations_.back());
}

std::vector<std::string> IndexBuild::journals() const {
  std::vector<std::string> names = spare_;
  for (const Journals &of : generations_) names.insert(names.end(), of.names.begin(), of.names.end());
  return names;
}

void IndexBuild::add(TABLE *altered, uint number, const Share &share) {
  indexes.emplace_back();
  BuiltIndex &built = indexes.back();
  const KEY &key = altered->key_info[number];
  built.record.name = key.name.str;
  built.number = number;
  built.key = key;
  built.parts.assign(key.key_part, key.key_part + key.user_defined_key_parts);
  built.index.describe(altered, &key, share.record.form.layout);
}

// --- Writers ---

Error IndexBuild::change(frondb_txn *txn, size_t index, std::string_view key, std::string_view primary,
                         const std::string_view *value) {
  frondb_tree *journal = generations_.back().trees[index].get();
  Buffer buffer;
  bool found;
  if (Error error = buffer.make()) return error;
  if (Error error = frondb_txn_get(txn, journal, slice(key), FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT, buffer.get(), &found))
    return error;
  Change state;
  // A damaged entry counts as a conflict, so that the build fails and not the writer.
  if (found && !state.decode(buffer.slice())) state.flags = CONFLICT;
  if (value) {
    if (state.flags & HAS_VALUE && row_of(state.value) != primary) state.flags |= CONFLICT;
    state.flags |= HAS_VALUE;
    state.value = *value;
  } else {
    if (state.flags & HAS_VALUE && row_of(state.value) != primary) state.flags |= CONFLICT;
    if (!(state.flags & REMOVED)) {
      state.flags |= REMOVED;
      state.removed = primary;
    }
    state.flags &= uchar(~HAS_VALUE);
    state.value = {};
  }
  std::string bytes;
  state.encode(&bytes);
  return frondb_txn_put(txn, journal, slice(key), slice(bytes));
}

Error IndexBuild::put(frondb_txn *txn, size_t index, std::string_view key, std::string_view value,
                      std::string_view primary, bool is_unique) {
  std::shared_lock<std::shared_mutex> guard(journal_latch_);
  if (is_over_) return {};
  if (is_unique) return change(txn, index, key, primary, &value);
  std::string bytes;
  Change state;
  state.flags = HAS_VALUE;
  state.value = value;
  state.encode(&bytes);
  return frondb_txn_put(txn, generations_.back().trees[index].get(), slice(key), slice(bytes));
}

Error IndexBuild::remove(frondb_txn *txn, size_t index, std::string_view key, std::string_view primary,
                         bool is_unique) {
  std::shared_lock<std::shared_mutex> guard(journal_latch_);
  if (is_over_) return {};
  if (is_unique) return change(txn, index, key, primary, nullptr);
  std::string bytes;
  Change state;
  state.flags = REMOVED;
  state.encode(&bytes);
  return frondb_txn_put(txn, generations_.back().trees[index].get(), slice(key), slice(bytes));
}

// --- Catching up ---

Error IndexBuild::apply_to(size_t index, frondb_tree *journal, frondb_snapshot *at, Pass *pass) {
  frondb_tree *tree = indexes[index].index.tree.get();
  Writer writer(tree);
  Cursor cursor;
  Buffer buffer;
  if (Error error = writer.begin()) return error;
  if (Error error = buffer.make()) return error;
  if (Error error = cursor.open(journal, {}, at)) return error;
  for (;;) {
    frondb_rows rows;
    if (Error error = cursor.read(READ_ENTRIES, BATCH_BYTES, &rows)) return error;
    if (rows.count == 0 || pass->killed()) return writer.finish();
    pass->entries += rows.count;
    for (size_t i = 0; i < rows.count; i++) {
      frondb_slice key = rows.entries[i].key;
      Change state;
      bool conflicts = !state.decode(rows.entries[i].value) || state.flags & CONFLICT;
      std::string_view owner = row_of(state.value);
      // Whether the tree's entry belongs to a row that the journal's entry does not mention. Only keys of a unique
      // index can belong to several rows.
      bool is_others = false;
      if (!conflicts && !(owner.empty() && state.removed.empty())) {
        bool is_there;
        if (Error error = read_key(tree, view(key), nullptr, buffer, &is_there)) return error;
        std::string_view has = is_there ? row_of(buffer.value()) : std::string_view();
        is_others = is_there && has != owner && !(state.flags & REMOVED && has == state.removed);
      }
      if (conflicts || (is_others && state.flags & HAS_VALUE)) {
        *pass->duplicate = {index, std::string(owner.empty() ? state.removed : owner)};
        *pass->found = true;
        return {};
      }
      if (state.flags & HAS_VALUE) {
        if (Error error = writer.put(key, state.value)) return error;
      } else if (!is_others) {
        if (Error error = writer.remove(key)) return error;
      }
    }
  }
}

Error IndexBuild::apply(const Journals &of, frondb_snapshot *at, Pass *pass) {
  for (size_t i = 0; i < indexes.size() && !*pass->found; i++)
    if (Error error = apply_to(i, of.trees[i].get(), at, pass)) return error;
  return {};
}

Error IndexBuild::close_generation() {
  Journals next;
  if (Error error = make_journals(&next)) {
    spare_.insert(spare_.end(), next.names.begin(), next.names.end());
    return error;
  }
  std::unique_lock<std::shared_mutex> guard(journal_latch_);
  generations_.push_back(std::move(next));
  return {};
}

Error IndexBuild::snapshot_of(const Journals &of, uint64_t wait_millis, Snapshot *snapshot) {
  std::vector<frondb_tree *> trees;
  for (const Tree &tree : of.trees) trees.push_back(tree.get());
  return snapshot_behind_writers(trees, wait_millis, snapshot);
}

Error IndexBuild::catch_up(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found) {
  for (int round = 0; round < ROUNDS_MAX; round++) {
    if (Error error = close_generation()) return error;
    const Journals &closed = generations_[done_];
    Snapshot snapshot;
    for (uint64_t waited = 0; !snapshot; waited += SLICE_MILLIS) {
      // The statement was killed, or a writer has not ended in time: leave the rest for finish(), when writers are
      // locked out.
      if (killed() || waited >= wait_millis) return {};
      Error error = snapshot_of(closed, SLICE_MILLIS, &snapshot);
      if (error && !is_late_writer(error)) return error;
    }
    Pass pass = {killed, duplicate, found};
    if (Error error = apply(closed, snapshot.get(), &pass)) return error;
    if (*found || killed()) return {};
    done_++;
    if (pass.entries < ENTRIES_LEFT) return {};
  }
  return {};
}

Error IndexBuild::finish(const Killed &killed, uint64_t wait_millis, Duplicate *duplicate, bool *found) {
  for (; done_ < generations_.size() && !*found && !killed(); done_++) {
    Snapshot snapshot;
    // Writers are locked out, so this can only wait for a commit in progress, or for an XA transaction that is prepared
    // and has lost its connection.
    if (Error error = snapshot_of(generations_[done_], wait_millis, &snapshot)) return error;
    Pass pass = {killed, duplicate, found};
    if (Error error = apply(generations_[done_], snapshot.get(), &pass)) return error;
  }
  return {};
}

void IndexBuild::give_up() {
  std::unique_lock<std::shared_mutex> guard(journal_latch_);
  is_over_ = true;
}

}  // namespace fron
