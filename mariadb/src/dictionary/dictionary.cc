/* SPDX-License-Identifier: GPL-2.0-only

   See dictionary/dictionary.h. */

#include "dictionary/dictionary.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "codec/bytes.h"
#include "engine/crash_points.h"
#include "engine/db.h"

namespace fron {
namespace {

constexpr const char *PREFIX = "mariadb/";
constexpr const char *TABLES = "mariadb/tables";
/** The tree of counters. The key "" has the last number assigned to a table; a table's number followed by a letter is
    the key of one of its counters or of its statistics. prepared_key() makes the keys of row counts. */
constexpr const char *COUNTERS = "mariadb/counters";
/** The key of COUNTERS with the newest series of a server that has used the database. It is shorter than the number of a
    table. */
constexpr const char *SERVER = "server";
constexpr const char *FOREIGN_KEYS = "mariadb/foreign_keys";
/** A tree without rows, in which transactions take the locks of txn/fence.h. The tree of the foreign keys cannot be
    used, because a batch that writes a foreign key would wait for all locks of the tree. */
constexpr const char *FENCES = "mariadb/fences";
constexpr char STATISTICS = 's';
/** The key with this letter is never written; transactions lock it. */
constexpr char LOCK = 'l';
constexpr char RECORD_VERSION = 2;
/** Versions of a record with slots, and of a record with a row epoch and Slot::short_until. An older build refuses
    these versions instead of misreading rows. */
constexpr char RECORD_VERSION_SLOTS = 3;
constexpr char RECORD_VERSION_MARKS = 4;

char version_of(const TableRecord &record) {
  const Layout &layout = record.form.layout;
  auto is_widened = [](const Slot &slot) { return slot.short_until != 0; };
  if (record.row_epoch || std::any_of(layout.begin(), layout.end(), is_widened)) return RECORD_VERSION_MARKS;
  return layout.empty() ? RECORD_VERSION : RECORD_VERSION_SLOTS;
}

bool decode_slots(Decoder *in, char version, Layout *layout) {
  uint64_t count;
  if (!in->u64(&count)) return false;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t field, prefix, bytes, short_until = 0;
    // A blob has the largest length prefix, four bytes.
    if (!in->u64(&field) || !in->u64(&prefix) || !in->u64(&bytes) || prefix > 4) return false;
    if (version == RECORD_VERSION_MARKS && !in->u64(&short_until)) return false;
    layout->push_back({uint32_t(field), uint32_t(prefix), uint32_t(bytes), uint32_t(short_until)});
  }
  return true;
}

/** Opens a tree, or creates it if it does not exist. */
Error open_or_make(const char *name, Tree *tree) {
  Error error = open_tree(name, tree);
  if (!error || error.kind() != FRONDB_NOT_FOUND) return error;
  TreeOptions options;
  if (Error failed = frondb_tree_options_new(options.out())) return failed;
  return create_tree(name, options.get(), tree);
}

/** Reads a key of a tree; `found` says whether it exists. */
Error get(const Tree &tree, std::string_view key, std::string *value, bool *found) {
  Buffer buffer;
  if (Error error = buffer.make()) return error;
  if (Error error = read_key(tree.get(), key, nullptr, buffer, found)) return error;
  if (*found) value->assign(buffer.value());
  return {};
}

Error get_counter(const Tree &tree, std::string_view key, uint64_t *value) {
  std::string bytes;
  bool found;
  *value = 0;
  if (Error error = get(tree, key, &bytes, &found)) return error;
  if (found) Decoder(bytes).u64(value);
  return {};
}

/** Makes a batch that is exempt from write stalls: statements that open a table wait for the dictionary, which
    writes little. */
Error make_batch(Batch *batch) {
  if (Error error = batch->make()) return error;
  return frondb_batch_exempt_from_pacing(batch->get());
}

Error put_bytes(const Tree &tree, std::string_view key, const std::string &bytes, bool frees_space = false) {
  Batch batch;
  if (Error error = make_batch(&batch)) return error;
  if (Error error = batch.put(tree.get(), key, bytes)) return error;
  if (frees_space)
    if (Error error = frondb_batch_set_frees_space(batch.get())) return error;
  return write_batch(batch, FRONDB_NO_SYNC);
}

Error put_counter(const Tree &tree, std::string_view key, uint64_t value, bool frees_space = false) {
  std::string bytes;
  put_u64(value, &bytes);
  return put_bytes(tree, key, bytes, frees_space);
}

std::vector<frondb_tree_options *> pointers(const std::vector<TreeOptions> &options) {
  std::vector<frondb_tree_options *> all;
  for (const TreeOptions &one : options) all.push_back(one.get());
  return all;
}

std::string number_key(uint64_t number) {
  std::string key;
  put_u64(number, &key);
  return key;
}

}  // namespace

std::string TableRecord::encode() const {
  char version = version_of(*this);
  std::string bytes(1, version);
  put_u64(number, &bytes);
  put_text(definition, &bytes);
  put_u64(next_index, &bytes);
  put_u64(indexes.size(), &bytes);
  for (const IndexRecord &index : indexes) {
    put_u64(index.number, &bytes);
    put_text(index.name, &bytes);
  }
  put_text(form.defaults, &bytes);
  if (version == RECORD_VERSION) return bytes;
  if (version == RECORD_VERSION_MARKS) put_u64(row_epoch, &bytes);
  put_u64(form.layout.size(), &bytes);
  for (const Slot &slot : form.layout) {
    for (uint32_t value : {slot.field, slot.prefix, slot.bytes}) put_u64(value, &bytes);
    if (version == RECORD_VERSION_MARKS) put_u64(slot.short_until, &bytes);
  }
  return bytes;
}

bool TableRecord::decode(std::string_view bytes) {
  if (bytes.empty() || bytes[0] < RECORD_VERSION || bytes[0] > RECORD_VERSION_MARKS) return false;
  Decoder in(bytes.substr(1));
  uint64_t next, count;
  if (!in.u64(&number) || !in.text(&definition) || !in.u64(&next) || !in.u64(&count)) return false;
  next_index = uint32_t(next);
  indexes.clear();
  for (uint64_t i = 0; i < count; i++) {
    uint64_t index;
    std::string name;
    if (!in.u64(&index) || !in.text(&name)) return false;
    indexes.push_back({uint32_t(index), name});
  }
  if (!in.text(&form.defaults)) return false;
  form.layout.clear();
  row_epoch = 0;
  if (bytes[0] == RECORD_VERSION_MARKS && !in.u64(&row_epoch)) return false;
  if (bytes[0] != RECORD_VERSION && !decode_slots(&in, bytes[0], &form.layout)) return false;
  return in.at_end() && !indexes.empty();
}

std::string Dictionary::key_of_path(const char *path) {
  std::string_view key(path);
  if (key.substr(0, 2) == "./") key.remove_prefix(2);
  return std::string(key);
}

std::string Dictionary::tree_name(uint64_t table, uint32_t index) {
  return "mariadb/" + std::to_string(table) + "/" + std::to_string(index);
}

Error Dictionary::open() {
  if (Error error = open_or_make(TABLES, &tables_)) return error;
  if (Error error = open_or_make(COUNTERS, &counters_)) return error;
  if (Error error = open_or_make(FENCES, &fences_)) return error;
  Tree tree;
  if (Error error = open_or_make(FOREIGN_KEYS, &tree)) return error;
  return foreign_keys_->open(std::move(tree));
}

Error Dictionary::note_server(uint64_t series, uint64_t *newest) {
  if (Error error = get_counter(counters_, SERVER, newest)) return error;
  if (*newest >= series) return {};
  *newest = series;
  // A full disk must not keep the server from starting.
  return put_counter(counters_, SERVER, series, true);
}

Error Dictionary::tables_of(const std::string &prefix, std::vector<std::string> *keys) {
  Cursor cursor;
  if (Error error = cursor.open(tables_.get(), prefix, nullptr)) return error;
  for (;;) {
    bool found;
    if (Error error = frondb_cursor_next(cursor.get(), &found)) return error;
    if (!found) return {};
    frondb_slice key;
    if (Error error = frondb_cursor_key(cursor.get(), &key)) return error;
    if (view(key).substr(0, prefix.size()) != prefix) return {};
    keys->emplace_back(view(key));
  }
}

Error Dictionary::each_table(const std::function<Error(const std::string &, const TableRecord &)> &visit) {
  std::vector<std::string> keys;
  if (Error error = tables_of("", &keys)) return error;
  for (const std::string &key : keys) {
    TableRecord record;
    bool found;
    if (Error error = find(key, &record, &found)) return error;
    if (!found) continue;
    if (Error error = visit(key, record)) return error;
  }
  return {};
}

Error Dictionary::drop_orphans() {
  std::set<std::string> known = {TABLES, COUNTERS, FOREIGN_KEYS, FENCES};
  bool is_any_unknown = false;
  Error error = each_table([&](const std::string &, const TableRecord &record) -> Error {
    is_any_unknown |= record.indexes.empty();
    for (const IndexRecord &index : record.indexes) known.insert(tree_name(record.number, index.number));
    return {};
  });
  // A record without indexes was written by a newer FronDB. Its trees are unknown, so no tree may be dropped.
  if (error || is_any_unknown) return error;
  List list;
  std::vector<frondb_slice> names;
  if (Error error = list_trees(&list, &names)) return error;
  for (frondb_slice item : names) {
    std::string name(view(item));
    // Skip trees that do not belong to tables, and trees that a record names.
    if (name.rfind(PREFIX, 0) != 0 || known.count(name)) continue;
    // A prepared transaction may have written to the tree. Then the first start after the transaction's end drops the
    // tree.
    Error error = drop_tree(name);
    if (error && error.kind() != FRONDB_BUSY && error.kind() != FRONDB_NOT_FOUND) return error;
  }
  return {};
}

Error Dictionary::find(const std::string &key, TableRecord *record, bool *found) {
  std::string bytes;
  if (Error error = get(tables_, key, &bytes, found)) return error;
  // A record of another version cannot be decoded: the table exists but cannot be opened.
  if (*found && !record->decode(bytes)) *record = TableRecord();
  return {};
}

Error Dictionary::next_number(uint64_t *number, bool frees_space) {
  std::lock_guard<std::mutex> guard(*numbering_);
  if (Error error = get_counter(counters_, "", number)) return error;
  ++*number;
  return put_counter(counters_, "", *number, frees_space);
}

Error Dictionary::make_trees(const TableRecord &record,
                             const std::vector<frondb_tree_options *> &options) {
  for (size_t i = 0; i < record.indexes.size(); i++) {
    Tree tree;
    std::string name = tree_name(record.number, record.indexes[i].number);
    if (Error error = create_tree(name, options[i], &tree)) {
      drop_trees(record);
      return error;
    }
  }
  return {};
}

void Dictionary::forget_changes(uint64_t table) {
  std::lock_guard<std::mutex> guard(changing_->mutex);
  changing_->last.erase(table);
  changing_->filled.erase(table);
}

void Dictionary::drop_trees(const TableRecord &record) {
  forget_changes(record.number);
  for (const IndexRecord &index : record.indexes)
    // The next start drops a tree that cannot be dropped now, since no record names it.
    Error ignored = drop_tree(tree_name(record.number, index.number));
}

Error Dictionary::put_record(const Batch &batch, const std::string &key, const TableRecord &record) {
  std::string bytes = record.encode();
  return batch.put(tables_.get(), key, bytes);
}

Error Dictionary::create(const std::string &key, TableRecord *record,
                         const std::vector<frondb_tree_options *> &options, const ForeignKeyChange &foreign) {
  if (Error error = next_number(&record->number)) return error;
  if (Error error = make_trees(*record, options)) return error;
  may_crash_at("create: trees made");
  Batch batch;
  Error error = make_batch(&batch);
  if (!error) error = put_record(batch, key, *record);
  if (!error) error = foreign_keys_->stage(batch, foreign);
  if (!error) error = write_batch(batch, FRONDB_SYNC);
  if (error) {
    drop_trees(*record);
  } else {
    note_change(record->number);
    foreign_keys_->publish(foreign);
  }
  may_crash_at("create: recorded");
  return error;
}

Error Dictionary::alter(const std::vector<TableChange> &changes, const ForeignKeyChange &foreign) {
  Batch batch;
  if (Error error = make_batch(&batch)) return error;
  for (const TableChange &change : changes)
    if (Error error = put_record(batch, change.key, change.record)) return error;
  if (Error error = foreign_keys_->stage(batch, foreign)) return error;
  may_crash_at("alter: not recorded");
  if (Error error = write_batch(batch, FRONDB_SYNC)) return error;
  may_crash_at("alter: recorded");
  foreign_keys_->publish(foreign);
  for (const TableChange &change : changes) {
    note_change(change.record.number);
    foreign_keys_->table_changed(change.key);
  }
  return {};
}

void Dictionary::retire(const std::vector<std::string> &names) {
  std::lock_guard<std::mutex> guard(changing_->mutex);
  std::vector<std::string> all, left;
  all.swap(changing_->retired);
  all.insert(all.end(), names.begin(), names.end());
  for (const std::string &name : all) {
    Tree tree;
    Snapshot snapshot;
    // A transaction cannot commit without a tree that it has written to, so all writers must have ended. A tree that
    // cannot be dropped now is dropped by the next call, or at the next start, because no record names it.
    Error error = open_tree(name, &tree);
    if (!error) error = snapshot_behind_writers({tree.get()}, 0, &snapshot);
    if (!error) error = drop_tree(name);
    if (error && error.kind() != FRONDB_NOT_FOUND) left.push_back(name);
  }
  changing_->retired.swap(left);
}

void Dictionary::note_change(uint64_t table) {
  std::lock_guard<std::mutex> guard(changing_->mutex);
  changing_->last[table] = ++changing_->count;
}

void Dictionary::note_fill(uint64_t table) {
  std::lock_guard<std::mutex> guard(changing_->mutex);
  changing_->last[table] = changing_->filled[table] = ++changing_->count;
}

uint64_t Dictionary::changed_at(uint64_t table) { return count_in(changing_->last, table); }

uint64_t Dictionary::filled_at(uint64_t table) { return count_in(changing_->filled, table); }

uint64_t Dictionary::count_in(const std::map<uint64_t, uint64_t> &counts, uint64_t table) {
  std::lock_guard<std::mutex> guard(changing_->mutex);
  auto found = counts.find(table);
  return found == counts.end() ? 0 : found->second;
}

Error Dictionary::seen_trees(frondb_txn *txn, const std::string &key, const TableRecord &record,
                             std::vector<bool> *seen) {
  Buffer buffer;
  seen->assign(record.indexes.size(), false);
  if (Error error = buffer.make()) return error;
  bool found;
  if (Error error = frondb_txn_get(txn, tables_.get(), slice(key), FRONDB_LOCK_NONE, FRONDB_WAIT, buffer.get(), &found))
    return error;
  TableRecord old;
  if (!found || !old.decode(buffer.value()) || old.number != record.number) return {};
  auto is_old = [&](const IndexRecord &index) {
    return std::any_of(old.indexes.begin(), old.indexes.end(),
                       [&](const IndexRecord &other) { return other.number == index.number; });
  };
  if (record.indexes.empty() || !is_old(record.indexes[0]) || old.row_epoch != record.row_epoch) return {};
  std::transform(record.indexes.begin(), record.indexes.end(), seen->begin(), is_old);
  return {};
}

Error Dictionary::rename(const std::string &from, const std::string &to, bool *found, const ForeignKeyChange &more) {
  TableRecord record;
  if (Error error = find(from, &record, found)) return error;
  if (!*found) return {};
  Batch batch;
  if (Error error = make_batch(&batch)) return error;
  if (Error error = batch.remove(tables_.get(), from)) return error;
  if (Error error = put_record(batch, to, record)) return error;
  ForeignKeyChange foreign = foreign_keys_->renamed(from, to);
  foreign.records.insert(more.records.begin(), more.records.end());
  if (Error error = foreign_keys_->stage(batch, foreign)) return error;
  may_crash_at("rename: not recorded");
  if (Error error = write_batch(batch, FRONDB_SYNC)) return error;
  foreign_keys_->publish(foreign);
  // If an ALTER by copy gives the old table a temporary name, or puts the copy in its place, `foreign` may be empty
  // although trees that foreign keys use have changed.
  foreign_keys_->table_changed(from);
  foreign_keys_->table_changed(to);
  may_crash_at("rename: recorded");
  return {};
}

/** Deletes everything stored under a table's number. */
Error Dictionary::forget(const Batch &batch, uint64_t table) {
  for (char kind : {char(AUTO_INCREMENT), char(HIDDEN_KEY), STATISTICS}) {
    std::string key = number_key(table) + kind;
    if (Error error = batch.remove(counters_.get(), key)) return error;
  }
  return {};
}

Error Dictionary::drop(const std::string &key, bool *found) {
  TableRecord record;
  if (Error error = find(key, &record, found)) return error;
  if (!*found) return {};
  Batch batch;
  if (Error error = make_batch(&batch)) return error;
  if (Error error = batch.remove(tables_.get(), key)) return error;
  if (Error error = forget(batch, record.number)) return error;
  ForeignKeyChange foreign = foreign_keys_->dropped(key);
  if (Error error = foreign_keys_->stage(batch, foreign)) return error;
  if (Error error = write_batch(batch, FRONDB_SYNC)) return error;
  foreign_keys_->publish(foreign);
  may_crash_at("drop: record removed");
  forget_changes(record.number);
  std::vector<std::string> names;
  for (const IndexRecord &index : record.indexes) names.push_back(tree_name(record.number, index.number));
  // A temporary table may be dropped within the transaction that filled it. Then its trees stay until the transaction
  // has ended.
  retire(names);
  may_crash_at("drop: trees dropped");
  return {};
}

Error Dictionary::options_of(const TableRecord &record, std::vector<TreeOptions> *options) {
  for (const IndexRecord &index : record.indexes) {
    Tree tree;
    TreeOptions of;
    std::string name = tree_name(record.number, index.number);
    if (Error error = open_tree(name, &tree)) return error;
    if (Error error = frondb_tree_options_of(tree.get(), of.out())) return error;
    options->push_back(std::move(of));
  }
  return {};
}

Error Dictionary::truncate(const std::string &key, bool *found) {
  TableRecord old;
  if (Error error = find(key, &old, found)) return error;
  if (!*found) return {};
  std::vector<TreeOptions> options;
  if (Error error = options_of(old, &options)) return error;
  TableRecord record = old;
  if (Error error = next_number(&record.number, true)) return error;
  if (Error error = make_trees(record, pointers(options))) return error;
  may_crash_at("truncate: trees made");
  Batch batch;
  Error error = make_batch(&batch);
  if (!error) error = put_record(batch, key, record);
  // TRUNCATE frees space when it drops the old trees below, so it may use the reserve of a full disk.
  if (!error) error = frondb_batch_set_frees_space(batch.get());
  if (!error) error = forget(batch, old.number);
  if (!error) error = write_batch(batch, FRONDB_SYNC);
  may_crash_at("truncate: recorded");
  drop_trees(error ? record : old);
  if (!error) {
    note_change(record.number);
    foreign_keys_->table_changed(key);
  }
  return error;
}

Error Dictionary::counter(uint64_t table, Counter counter, uint64_t *next) {
  return get_counter(counters_, number_key(table) + char(counter), next);
}

Error Dictionary::keep_counter(uint64_t table, Counter counter, uint64_t next) {
  return put_counter(counters_, number_key(table) + char(counter), next);
}

Error Dictionary::lock_counter(frondb_txn *txn, uint64_t table) {
  std::string key = number_key(table) + LOCK;
  size_t length;
  bool found;
  return frondb_txn_get_into(txn, counters_.get(), slice(key), FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT, nullptr, 0, &length,
                             &found);
}

Error Dictionary::unlock_counter(frondb_txn *txn, uint64_t table) {
  std::string key = number_key(table) + LOCK;
  return frondb_txn_release_key(txn, counters_.get(), slice(key));
}

bool Dictionary::is_counter_lock(uint64_t tree, std::string_view key, uint64_t *table) const {
  uint64_t number;
  if (Error error = frondb_tree_id(counters_.get(), &number)) return false;
  return tree == number && key.size() == sizeof *table + 1 && key.back() == LOCK && Decoder(key).u64(table);
}

Error Dictionary::statistics(uint64_t table, std::string *bytes) {
  bool found;
  bytes->clear();
  return get(counters_, number_key(table) + STATISTICS, bytes, &found);
}

Error Dictionary::keep_statistics(uint64_t table, const std::string &bytes) {
  return put_bytes(counters_, number_key(table) + STATISTICS, bytes);
}

/** Returns the key of a prepared transaction's row counts; sorts after the keys of all tables. */
static std::string prepared_key(frondb_slice name) { return number_key(UINT64_MAX).append(view(name)); }

Error Dictionary::prepared_counts(frondb_slice name, std::string *bytes) {
  bool found;
  bytes->clear();
  return get(counters_, prepared_key(name), bytes, &found);
}

Error Dictionary::keep_prepared_counts(frondb_slice name, const std::string &bytes) {
  std::string key = prepared_key(name);
  if (!bytes.empty()) return put_bytes(counters_, key, bytes);
  Batch batch;
  if (Error error = make_batch(&batch)) return error;
  if (Error error = batch.remove(counters_.get(), key)) return error;
  return write_batch(batch, FRONDB_NO_SYNC);
}

Dictionary &dictionary() {
  static Dictionary of_database;
  return of_database;
}

}  // namespace fron
