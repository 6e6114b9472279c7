/* SPDX-License-Identifier: GPL-2.0-only

   See dictionary/foreign_keys.h. */

#include "dictionary/foreign_keys.h"

#include <algorithm>

namespace fron {
namespace {

using Change = ForeignKeyChange;

std::string encode_place(const Change::Place &place) {
  std::string key = place.table;
  key.push_back(0);
  key.push_back(char(place.kind));
  return key + place.name;
}

bool decode_place(std::string_view key, Change::Place *place) {
  size_t end = key.find('\0');
  if (end == std::string_view::npos || key.size() < end + 2) return false;
  place->table = key.substr(0, end);
  place->kind = Change::Kind(key[end + 1]);
  place->name = key.substr(end + 2);
  return true;
}

/** Copies a foreign key, so that the copy can be changed. */
std::shared_ptr<ForeignKey> copy_of(const ForeignKeyPtr &key) { return std::make_shared<ForeignKey>(*key); }

}  // namespace

Error ForeignKeys::open(Tree tree) {
  tree_ = std::move(tree);
  Cursor cursor;
  if (Error failed = cursor.open(tree_.get(), {}, nullptr)) return failed;
  constexpr size_t ROWS = 128, BYTES = 1 << 20;
  std::lock_guard<std::mutex> guard(mutex_);
  records_.clear();
  for (;;) {
    frondb_rows rows;
    if (Error failed = cursor.read(ROWS, BYTES, &rows)) return failed;
    if (rows.count == 0) break;
    for (size_t i = 0; i < rows.count; i++) {
      Change::Place place;
      auto key = std::make_shared<ForeignKey>();
      if (!decode_place(view(rows.entries[i].key), &place)) continue;
      // A record of a newer FronDB names its table only by its key; that table cannot be written to.
      if (!key->decode(view(rows.entries[i].value))) {
        *key = ForeignKey();
        key->name = place.name;
        key->child = place.table;
      }
      records_[place] = key;
    }
  }
  index();
  return {};
}

/** Rebuilds the lists by table. */
void ForeignKeys::index() {
  std::map<std::string, std::shared_ptr<TableForeignKeys>> made;
  auto of = [&](const std::string &table) {
    auto &list = made[table];
    if (!list) list = std::make_shared<TableForeignKeys>();
    return list;
  };
  auto add = [&](const ForeignKeyPtr &key) {
    of(key->child)->own.push_back(key);
    of(key->parent)->referencing.push_back(key);
  };
  for (const auto &[place, key] : records_)
    if (place.kind == Change::KEY) add(key);
  for (const ForeignKeyPtr &key : added_) add(key);
  tables_.clear();
  for (auto &[table, list] : made) {
    std::sort(list->referencing.begin(), list->referencing.end(), [](const ForeignKeyPtr &a, const ForeignKeyPtr &b) {
      auto rank = [](const ForeignKeyPtr &key) { return std::make_pair(database_of(key->child), std::string_view(key->name)); };
      return rank(a) < rank(b);
    });
    tables_[table] = list;
  }
  generation_++;
}

TableForeignKeysPtr ForeignKeys::of(const std::string &table) const {
  static const auto none = std::make_shared<const TableForeignKeys>();
  std::lock_guard<std::mutex> guard(mutex_);
  auto found = tables_.find(table);
  return found == tables_.end() ? none : found->second;
}

TableForeignKeys ForeignKeys::recorded_of(const std::string &table) const {
  TableForeignKeys keys = *of(table);
  auto is_added = [](const ForeignKeyPtr &key) { return key->watch != nullptr; };
  for (auto *list : {&keys.own, &keys.referencing}) list->erase(std::remove_if(list->begin(), list->end(), is_added), list->end());
  return keys;
}

bool ForeignKeys::has(const std::string &table) const { return !of(table)->empty(); }

std::vector<ForeignKeyPtr> ForeignKeys::all() const {
  std::vector<ForeignKeyPtr> keys;
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto &[place, key] : records_)
    if (place.kind == Change::KEY) keys.push_back(key);
  return keys;
}

ForeignKeyPtr ForeignKeys::find(std::string_view database, const std::string &name) const {
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto &[place, key] : records_)
    if (place.kind == Change::KEY && database_of(place.table) == database && is_same_name(place.name, name)) return key;
  return nullptr;
}

std::vector<ForeignKeyPtr> ForeignKeys::below(const std::string &table, Change::Kind kind) const {
  std::vector<ForeignKeyPtr> keys;
  std::lock_guard<std::mutex> guard(mutex_);
  for (auto at = records_.lower_bound({table, kind, ""});
       at != records_.end() && at->first.table == table && at->first.kind == kind; ++at)
    keys.push_back(at->second);
  return keys;
}

Error ForeignKeys::stage(const Batch &batch, const Change &change) const {
  for (const auto &[place, key] : change.records) {
    std::string at = encode_place(place);
    Error error = key ? batch.put(tree_.get(), at, key->encode()) : batch.remove(tree_.get(), at);
    if (error) return error;
  }
  return {};
}

void ForeignKeys::publish(const Change &change) {
  if (change.empty()) return;
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto &[place, key] : change.records)
    if (key) records_[place] = key;
    else records_.erase(place);
  index();
}

void ForeignKeys::begin_adding(const std::vector<ForeignKeyPtr> &keys) {
  std::lock_guard<std::mutex> guard(mutex_);
  added_.insert(added_.end(), keys.begin(), keys.end());
  index();
}

void ForeignKeys::end_adding(const std::vector<ForeignKeyPtr> &keys) {
  std::lock_guard<std::mutex> guard(mutex_);
  auto is_one = [&](const ForeignKeyPtr &key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  added_.erase(std::remove_if(added_.begin(), added_.end(), is_one), added_.end());
  index();
}

void ForeignKeys::table_changed(const std::string &table) {
  if (has(table)) generation_++;
}

Change ForeignKeys::dropped(const std::string &table) const {
  Change change;
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto &[place, key] : records_) {
    if (place.table == table) {
      change.remove(table, place.kind, place.name);
    } else if (place.kind == Change::KEY && key->parent == table && key->parent_side.is_bound) {
      auto waiting = copy_of(key);
      waiting->parent_side = {};
      change.put(place.table, Change::KEY, waiting);
    }
  }
  return change;
}

namespace {

/** Returns a side made by an ALTER; unbound if it has lost its index. */
KeySide side_of(const KeySide &made) { return made.is_bound ? made : KeySide(); }

}  // namespace

/** Returns the foreign key of `from` after that table is renamed to `to`. */
static ForeignKeyPtr moved(const ForeignKeyPtr &key, const std::string &from, const std::string &to) {
  auto made = copy_of(key);
  if (made->child == from) made->child = to;
  if (made->parent == from) made->parent = to;
  if (uint64_t number = automatic_number(from, key->name)) made->name = automatic_name(to, number);
  return made;
}

Change ForeignKeys::renamed(const std::string &from, const std::string &to) const {
  Change change;
  // The table gets a temporary name, and its foreign keys wait for the table that takes its place.
  if (is_put_aside(to)) return change;
  std::lock_guard<std::mutex> guard(mutex_);
  bool replaces = is_put_aside(from);
  for (const auto &[place, key] : records_) {
    bool is_own = place.table == from;
    // While an ALTER copies the parent, the records of the copy name the child, which gets its new name here.
    if (!is_own && place.kind == Change::SIDES && key->child == from && !replaces) {
      auto made = copy_of(key);
      made->child = to;
      if (uint64_t number = automatic_number(from, key->name)) made->name = automatic_name(to, number);
      change.remove(place.table, place.kind, place.name);
      change.put_sides(place.table, made);
    }
    if (is_own) change.remove(from, place.kind, place.name);
    if (is_own && place.kind == Change::DROPPED) change.remove(to, Change::KEY, place.name);
    if (is_own && place.kind == Change::SIDES) replace_sides(*key, to, &change);
    bool refers = !replaces && place.kind == Change::KEY && key->parent == from;
    if (!(is_own && place.kind == Change::KEY) && !refers) continue;
    ForeignKeyPtr made = is_own ? moved(key, from, to) : [&] {
      auto follows = copy_of(key);
      follows->parent = to;
      return ForeignKeyPtr(follows);
    }();
    change.put(made->child, Change::KEY, made);
  }
  return change;
}

void ForeignKeys::replace_sides(const ForeignKey &sides, const std::string &to, Change *change) const {
  auto kept = records_.find({sides.child, Change::KEY, sides.name});
  // The foreign key has been dropped since the ALTER stored its sides.
  if (kept == records_.end()) return;
  auto made = copy_of(kept->second);
  if (!sides.child_side.index.empty()) {
    made->child_side = side_of(sides.child_side);
    made->child = to;
  }
  if (!sides.parent_side.index.empty()) {
    made->parent_side = side_of(sides.parent_side);
    made->parent = to;
  }
  if (made->child != sides.child) {
    change->remove(sides.child, Change::KEY, sides.name);
    if (uint64_t number = automatic_number(sides.child, made->name)) made->name = automatic_name(to, number);
  }
  change->put(made->child, Change::KEY, made);
}

}  // namespace fron
