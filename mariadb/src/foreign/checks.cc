/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/checks.h. */

#include "foreign/checks.h"

#include <algorithm>
#include <mutex>

#include "codec/entry.h"
#include "dictionary/dictionary.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "foreign/binding.h"
#include "foreign/clauses.h"
#include "foreign/define.h"
#include "foreign/text.h"
#include "foreign/trees.h"
#include "foreign/watch.h"
#include "txn/connection.h"
#include "txn/fence.h"

namespace fron {

int ForeignChecks::prepare(THD *thd, bool *is_due) {
  *is_due = false;
  if (!checks_foreign_keys(thd)) return 0;
  if (generation_ != dictionary().foreign_keys().generation() || !is_fenced_)
    if (int error = load(thd)) return error;
  *is_due = !own_.empty() || !referencing_.empty();
  return 0;
}

/** Returns whether a table of the other side, or its index, does not exist. */
bool ForeignChecks::lacks_trees() const {
  auto lacks = [](const ForeignSidePtr &side) { return !side->other; };
  return std::any_of(own_.begin(), own_.end(), lacks) || std::any_of(referencing_.begin(), referencing_.end(), lacks);
}

int ForeignChecks::load(THD *) {
  ForeignKeys &all = dictionary().foreign_keys();
  const std::string &table = encoder_->share().name;
  for (;;) {
    uint64_t generation = all.generation();
    TableForeignKeysPtr keys = all.of(table);
    // Take the fences (txn/fence.h) first: definitions read after that do not change.
    for (const ForeignKeyPtr &key : keys->own)
      if (int error = hold_fence(use_->connection, key->parent)) return error;
    if (!keys->referencing.empty())
      if (int error = hold_fence(use_->connection, table)) return error;
    is_fenced_ = true;
    if (generation != all.generation()) continue;
    if (generation == generation_) return 0;
    own_.clear();
    referencing_.clear();
    for (const ForeignKeyPtr &key : keys->own)
      if (int error = add_side(key, true, &own_)) return error;
    for (const ForeignKeyPtr &key : keys->referencing)
      if (int error = add_side(key, false, &referencing_)) return error;
    if (lacks_trees()) {
      // Wait for the end of a rename that may have begun: then all its changes are visible.
      std::lock_guard<std::mutex> changing(all.changing());
    }
    if (generation != all.generation()) continue;
    // Order as in InnoDB: first the foreign keys of the primary key, then index by index.
    for (auto *sides : {&own_, &referencing_})
      std::stable_sort(sides->begin(), sides->end(), [&](const ForeignSidePtr &a, const ForeignSidePtr &b) {
        return rank_of(a->index) < rank_of(b->index);
      });
    generation_ = generation;
    return 0;
  }
}

int ForeignChecks::recheck(THD *thd, const uchar *before, const uchar *after, uint64_t generation) {
  if (!before || generation == dictionary().foreign_keys().generation() || !checks_foreign_keys(thd)) return 0;
  const std::string &table = encoder_->share().name;
  std::vector<ForeignSidePtr> watched;
  for (const ForeignKeyPtr &key : dictionary().foreign_keys().of(table)->referencing) {
    if (!key->watch) continue;
    if (int error = hold_fence(use_->connection, table)) return error;
    if (int error = add_side(key, false, &watched)) return error;
  }
  RowChecks ignored;
  return plan_children(watched, before, after, &ignored);
}

int ForeignChecks::add_side(const ForeignKeyPtr &key, bool is_child, std::vector<ForeignSidePtr> *sides) {
  const KeySide &mine = is_child ? key->child_side : key->parent_side, &theirs = is_child ? key->parent_side : key->child_side;
  auto side = std::make_shared<ForeignSide>();
  side->key = key;
  side->columns = ColumnKey::make(encoder_->table(), is_child ? key->columns : key->referenced);
  if (mine.is_bound) side->index = index_of(encoder_->table(), mine);
  if (theirs.is_bound)
    if (int error = open_index(is_child ? key->parent : key->child, theirs.index, &side->other)) return error;
  if (is_child && key->refers_to_itself() && is_put_aside(key->parent))
    if (int error = side->copied.open(encoder_->table()->in_use, *key)) return error;
  sides->push_back(std::move(side));
  return 0;
}

int ForeignChecks::fail(const ForeignKeyPtr &key, int error) const {
  use_->connection->failed_foreign_key = key;
  THD *thd = encoder_->table()->in_use;
  const char *what = error == HA_ERR_NO_REFERENCED_ROW ? "Cannot add or update a child row: " : "Cannot delete or update a parent row: ";
  note_foreign_error(thd, what + failure_of(thd, *key));
  return error;
}

uint ForeignChecks::rank_of(uint index) const { return index == MAX_KEY ? MAX_KEY : tree_of(encoder_->table(), index); }

// --- Before the write ---

int ForeignChecks::plan(const uchar *before, const uchar *after, const ForeignKey *by, RowChecks *checks) {
  const TABLE *table = encoder_->table();
  // Old versions of rows are neither children nor parents. A row that becomes an old version counts as deleted.
  if (before && is_history(table, before)) before = nullptr;
  if (after && is_history(table, after)) after = nullptr;
  for (size_t i = 0; after && i < own_.size(); i++) {
    const ForeignSide &side = *own_[i];
    // The action has copied the parent's key into this row, so no parent has to be searched for. If the key is not
    // unique, other parents may have it too. A shared lock makes a transaction that deletes one of them wait for the end
    // of this transaction.
    if (side.key.get() == by) {
      if (int error = share_parent(side, after)) return error;
      continue;
    }
    if (before && side.columns) {
      side.columns->image_of(before, &other_image_);
      side.columns->image_of(after, &image_);
      if (image_ == other_image_) continue;
    }
    checks->parents.push_back({own_[i], rank_of(side.index)});
  }
  return before ? plan_children(referencing_, before, after, checks) : 0;
}

int ForeignChecks::plan_children(const std::vector<ForeignSidePtr> &sides, const uchar *before, const uchar *after,
                                 RowChecks *checks) {
  bool acts = false;
  for (const ForeignSidePtr &of : sides) {
    const ForeignSide &side = *of;
    // Without its own index the key cannot be locked, without the child's index the children cannot be found. So every
    // update and delete of the row is refused, even if the key stays the same. A foreign key that is being added needs
    // no child index yet: its watch (foreign/watch.h) records the key.
    bool is_added = side.key->watch != nullptr;
    if (side.index == MAX_KEY || !side.columns || (!side.other && !is_added)) return fail(side.key, HA_ERR_ROW_IS_REFERENCED);
    side.columns->image_of(before, &image_);
    if (side.columns->has_null(image_)) continue;
    if (after) {
      side.columns->image_of(after, &other_image_);
      if (image_ == other_image_) continue;
    }
    key_.clear();
    // Encode the key as a child would: the side may have more parts than the index (see bind_side()).
    if (!side.columns->encode_as(image_, side.key->parent_side.parts, &key_)) return fail(side.key, HA_ERR_ROW_IS_REFERENCED);
    bool found;
    if (Error error = lock_key(use_->connection->txn(), encoder_->tree(side.index), key_, FRONDB_LOCK_EXCLUSIVE, &found))
      return ha_error(error);
    Children children{of, after ? side.key->on_update : side.key->on_delete, {}, {}, {}, false, rank_of(side.index)};
    // No child can have a value that its index cannot contain.
    if (!side.columns->encode_as(image_, side.key->child_side.parts, &children.prefix)) continue;
    if (is_added) {
      side.key->watch->note(key_, children.prefix);
      continue;
    }
    if (after) {
      children.image_before = image_;
      children.image = other_image_;
    }
    bool changes = changes_children(children.action);
    acts |= changes;
    // Determine this before the write: afterwards the row cannot be found any more.
    children.has_itself = !changes && is_own_child(side.key, before, children.prefix);
    checks->children.push_back(std::move(children));
  }
  if (acts || !checks->parents.empty()) return 0;
  for (const Children &children : checks->children)
    if (int error = refuse_children(children)) return error;
  checks->children.clear();
  return 0;
}

/** Returns whether the row is its own child, by a foreign key that refers to the table itself. `prefix` begins the
    index entries of the row's children. */
bool ForeignChecks::is_own_child(const ForeignKeyPtr &key, const uchar *record, const std::string &prefix) {
  if (!key->refers_to_itself()) return false;
  for (const ForeignSidePtr &own : own_) {
    if (own->key != key || !own->columns) continue;
    own->columns->image_of(record, &other_image_);
    other_key_.clear();
    return own->columns->encode_as(other_image_, key->child_side.parts, &other_key_) && other_key_ == prefix;
  }
  return false;
}

int ForeignChecks::refuse_children(const Children &children) {
  const ForeignSide &side = *children.side;
  if (children.has_itself) return fail(side.key, HA_ERR_ROW_IS_REFERENCED);
  bool found;
  frondb_txn *txn = use_->connection->txn();
  if (Error error = find_prefix(txn, side.other.get(), children.prefix, side.key->child_side, &found)) return ha_error(error);
  if (!found)
    if (int error = wait_for_prepared(txn, side.other.get(), children.prefix, &side.key->child_side, &found)) return error;
  return found ? fail(side.key, HA_ERR_ROW_IS_REFERENCED) : 0;
}

// --- After the write ---

int ForeignChecks::check_before_duplicate(uint index, const RowChecks &checks, const uchar *after) {
  if (index >= encoder_->table()->s->keys) return 0;
  uint last = rank_of(index);
  // Stop at an action, because its failure cannot be tested without doing the action.
  constexpr int STOP = -1;
  int error = checks.each(
      [&](const Children &children) {
        return children.rank > last || changes_children(children.action) ? STOP : refuse_children(children);
      },
      [&](const RowChecks::Parent &parent) {
        if (parent.rank > last) return STOP;
        return is_own_parent(*parent.side, after) ? 0 : find_parent(*parent.side, after);
      });
  return error == STOP ? 0 : error;
}

/** Returns whether a row of the table, which may not yet be written, is its own parent. */
bool ForeignChecks::is_own_parent(const ForeignSide &side, const uchar *record) {
  if (!side.key->refers_to_itself() || !side.columns) return false;
  for (const ForeignSidePtr &parent : referencing_) {
    if (parent->key != side.key || !parent->columns) continue;
    side.columns->image_of(record, &image_);
    parent->columns->image_of(record, &other_image_);
    key_.clear();
    other_key_.clear();
    const std::vector<PartShape> &parts = side.key->parent_side.parts;
    return side.columns->encode_as(image_, parts, &key_) && parent->columns->encode_as(other_image_, parts, &other_key_) &&
           key_ == other_key_;
  }
  return false;
}

/** Locks the key of a child's parents in shared mode. Does nothing if the key is unique. */
int ForeignChecks::share_parent(const ForeignSide &side, const uchar *after) {
  const KeySide &parent = side.key->parent_side;
  if (parent.is_exact || !side.columns || !side.other) return 0;
  side.columns->image_of(after, &image_);
  key_.clear();
  if (side.columns->has_null(image_) || !side.columns->encode_as(image_, parent.parts, &key_)) return 0;
  bool found;
  return ha_error(lock_key(use_->connection->txn(), side.other.get(), key_, FRONDB_LOCK_SHARED, &found));
}

int ForeignChecks::find_parent(const ForeignSide &side, const uchar *after) {
  const KeySide &parent = side.key->parent_side;
  if (!side.columns) return fail(side.key, HA_ERR_NO_REFERENCED_ROW);
  side.columns->image_of(after, &image_);
  if (side.columns->has_null(image_)) return 0;
  if (!side.other) return fail(side.key, HA_ERR_NO_REFERENCED_ROW);
  key_.clear();
  if (!side.columns->encode_as(image_, parent.parts, &key_)) return fail(side.key, HA_ERR_NO_REFERENCED_ROW);
  bool found;
  frondb_txn *txn = use_->connection->txn();
  if (Error error = lock_key(txn, side.other.get(), key_, FRONDB_LOCK_SHARED, &found)) return ha_error(error);
  bool has_version = !parent.current.empty();
  if (has_version && parent.is_exact) {
    key_ += parent.current;
    if (Error error = lock_key(txn, side.other.get(), key_, FRONDB_LOCK_SHARED, &found)) return ha_error(error);
  } else if (!found && !parent.is_exact) {
    if (Error error = find_prefix(txn, side.other.get(), key_, parent, &found)) return ha_error(error);
    if (!found) {
      // Uncommitted rows of other transactions are invisible. Wait for their locks, and then search again.
      if (Error error = lock_prefix(txn, side.other.get(), key_)) return ha_error(error);
      if (Error error = find_prefix(txn, side.other.get(), key_, parent, &found)) return ha_error(error);
    }
  }
  if (!found && side.copied)
    if (int error = side.copied.find(*side.columns, image_, &found)) return error;
  return found ? 0 : fail(side.key, HA_ERR_NO_REFERENCED_ROW);
}

}  // namespace fron
