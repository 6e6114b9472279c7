/* SPDX-License-Identifier: GPL-2.0-only

   See ha_frondb.h. */

#include "ha_frondb.h"

#include <key.h>
#include <sql_table.h>

#include <algorithm>
#include <set>

#include "frondb_error.h"
#include "frondb_hton.h"
#include "frondb_txn.h"

using namespace fron;

namespace {

constexpr size_t HIDDEN_KEY_BYTES = 8;
/** Hidden keys are taken from the dictionary so many at a time. */
constexpr uint64_t HIDDEN_KEYS = 1 << 16;
/** Entries a crossing: first few, for most reads want one row. */
constexpr size_t BATCH_FIRST = 1, BATCH_MAX = 128;
constexpr size_t BATCH_BYTES = 256 << 10;
/** No error of the server: the row is locked, and the statement asked to pass over such rows. */
constexpr int SKIPPED = -1;

void append_big_endian(uint64_t number, std::string *to) {
  for (int shift = 56; shift >= 0; shift -= 8) to->push_back(char(number >> shift));
}

/** The smallest key above all that begin with `prefix`; false if there is none. */
bool prefix_end(std::string *prefix) {
  while (!prefix->empty() && uchar(prefix->back()) == 0xFF) prefix->pop_back();
  if (prefix->empty()) return false;
  prefix->back() = char(uchar(prefix->back()) + 1);
  return true;
}

/** Head of an entry's value: length of the primary key, and whether that is here. */
void append_head(size_t length, bool is_here, std::string *to) {
  size_t head = length * 2 + is_here;
  for (; head >= 0x80; head >>= 7) to->push_back(char(head | 0x80));
  to->push_back(char(head));
}

/** Takes an entry of an index apart. False if it is damaged. */
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

/** Whether the server keeps a whole field in a key part. */
bool is_whole(const KEY_PART_INFO &part) {
  return part.length == part.field->key_length() && !(part.key_part_flag & HA_PART_KEY_SEG);
}

}  // namespace

// --- What handlers of a table share ---

int Share::open(const TABLE *table, const char *path) {
  bool found;
  if (Error error = dictionary().find(Dictionary::key_of_path(path), &record, &found))
    return ha_error(error);
  if (!found) return HA_ERR_NO_SUCH_TABLE;
  has_hidden_key = table->s->primary_key >= MAX_KEY;
  size_t expected = table->s->keys + (has_hidden_key ? 1 : 0);
  if (record.indexes.size() != expected)
    return ha_internal("FronDB's dictionary has other indexes than the table's definition");
  indexes.resize(expected);
  for (size_t i = 0; i < expected; i++) {
    std::string name = Dictionary::tree_name(record.number, record.indexes[i].number);
    if (Error error = frondb_db_open_tree(db(), name.c_str(), indexes[i].tree.out()))
      return ha_error(error);
  }
  for (uint k = 0; k < table->s->keys; k++) {
    uint place = has_hidden_key ? k + 1 : k == table->s->primary_key ? 0 : k < table->s->primary_key ? k + 1 : k;
    const KEY *key = &table->key_info[k];
    Index &index = indexes[place];
    index.codec = KeyCodec(key);
    index.is_unique = key->flags & HA_NOSAME;
    std::set<uint> covered;
    auto cover = [&](const KEY *of) {
      for (uint i = 0; i < of->user_defined_key_parts; i++)
        if (is_whole(of->key_part[i])) covered.insert(of->key_part[i].fieldnr - 1);
    };
    cover(key);
    if (!has_hidden_key) cover(&table->key_info[table->s->primary_key]);
    index.covered.assign(covered.begin(), covered.end());
  }
  return 0;
}

int Share::next_hidden(uint64_t *number) {
  std::lock_guard<std::mutex> guard(counting);
  if (hidden_next_ == hidden_end_) {
    if (Error error = dictionary().auto_increment(record.number, &hidden_next_)) return ha_error(error);
    hidden_end_ = hidden_next_ + HIDDEN_KEYS;
    if (Error error = dictionary().keep_auto_increment(record.number, hidden_end_)) {
      hidden_end_ = hidden_next_;
      return ha_error(error);
    }
  }
  *number = hidden_next_++;
  return 0;
}

Share *ha_frondb::get_share(const char *path, int *error) {
  lock_shared_ha_data();
  auto share = static_cast<Share *>(get_ha_share_ptr());
  if (!share) {
    auto made = new Share;
    *error = made->open(table, path);
    if (*error) {
      delete made;
    } else {
      share = made;
      set_ha_share_ptr(share);
    }
  }
  unlock_shared_ha_data();
  return share;
}

// --- What it can ---

ulonglong ha_frondb::table_flags() const {
  return HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
         HA_PRIMARY_KEY_IN_READ_INDEX | HA_TABLE_SCAN_ON_INDEX | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE |
         HA_CAN_VIRTUAL_COLUMNS | HA_BINLOG_ROW_CAPABLE | HA_REUSES_FILE_NAMES | HA_CAN_GEOMETRY |
         HA_CAN_SKIP_LOCKED;
}

ulong ha_frondb::index_flags(uint index, uint part, bool) const {
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  if (index == table_share->primary_key) return flags | HA_CLUSTERED_INDEX;
  const KEY *key = &table_share->key_info[index];
  return part < key->user_defined_key_parts && is_whole(key->key_part[part]) ? flags | HA_KEYREAD_ONLY
                                                                            : flags;
}

// --- Tables ---

std::vector<TreeOptions> ha_frondb::tree_options(const TABLE *form) const {
  std::vector<TreeOptions> all;
  size_t trees = form->s->keys + (form->s->primary_key >= MAX_KEY ? 1 : 0);
  for (size_t i = 0; i < trees; i++) {
    TreeOptions options;
    // Entries of an index that is not unique are never looked up alone.
    bool is_looked_up = i == 0 || (form->key_info[form->s->primary_key >= MAX_KEY ? i - 1 : i].flags & HA_NOSAME);
    Error error = is_looked_up ? frondb_tree_options_new(options.out())
                               : frondb_tree_options_new_secondary(options.out());
    if (!error) all.push_back(std::move(options));
  }
  return all;
}

namespace {

std::vector<frondb_tree_options *> pointers(const std::vector<TreeOptions> &options) {
  std::vector<frondb_tree_options *> all;
  for (const TreeOptions &one : options) all.push_back(one.get());
  return all;
}

}  // namespace

int ha_frondb::create(const char *path, TABLE *form, HA_CREATE_INFO *info) {
  TableRecord record;
  record.definition.assign(reinterpret_cast<const char *>(form->s->tabledef_version.str),
                           form->s->tabledef_version.length);
  bool hidden = form->s->primary_key >= MAX_KEY;
  if (hidden) record.indexes.push_back({record.next_index++, ""});
  else record.indexes.push_back({record.next_index++, form->key_info[form->s->primary_key].name.str});
  for (uint k = 0; k < form->s->keys; k++)
    if (hidden || k != form->s->primary_key)
      record.indexes.push_back({record.next_index++, form->key_info[k].name.str});
  auto options = tree_options(form);
  if (options.size() != record.indexes.size()) return ha_internal("no memory for the options of trees");
  if (Error error = dictionary().create(Dictionary::key_of_path(path), &record, pointers(options)))
    return ha_error(error);
  if (info->auto_increment_value && form->found_next_number_field)
    if (Error error = dictionary().keep_auto_increment(record.number, info->auto_increment_value))
      return ha_error(error);
  return 0;
}

int ha_frondb::delete_table(const char *path) {
  bool found;
  if (Error error = dictionary().drop(Dictionary::key_of_path(path), &found)) return ha_error(error);
  return found ? 0 : ENOENT;
}

int ha_frondb::rename_table(const char *from, const char *to) {
  bool found;
  if (Error error = dictionary().rename(Dictionary::key_of_path(from), Dictionary::key_of_path(to), &found))
    return ha_error(error);
  return found ? 0 : ENOENT;
}

int ha_frondb::truncate() {
  auto options = tree_options(table);
  std::string key = Dictionary::key_of_path(table->s->normalized_path.str);
  if (Error error = dictionary().truncate(key, pointers(options))) return ha_error(error);
  lock_shared_ha_data();
  auto made = new Share;
  int error = made->open(table, table->s->normalized_path.str);
  unlock_shared_ha_data();
  delete made;
  return error;
}

int ha_frondb::open(const char *path, int, uint) {
  int error = 0;
  share_ = get_share(path, &error);
  if (!share_) return error;
  if (Error failed = frondb_buffer_new(buffer_.out())) return ha_error(failed);
  thr_lock_data_init(&share_->lock, &lock_, nullptr);
  uint longest = 0;
  for (uint k = 0; k < table->s->keys; k++) longest = std::max(longest, table->key_info[k].key_length);
  image_.resize(longest + 8);
  ref_length = share_->has_hidden_key ? HIDDEN_KEY_BYTES : table->key_info[table->s->primary_key].key_length;
  return info(HA_STATUS_OPEN | HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
}

int ha_frondb::close() {
  cursor_.reset();
  buffer_.reset();
  return 0;
}

int ha_frondb::reset() {
  cursor_.reset();
  rows_ = {};
  key_read_ = false;
  connection_ = nullptr;
  return 0;
}

// --- Keys ---

uint ha_frondb::tree_of(uint index) const {
  if (share_->has_hidden_key) return index + 1;
  uint primary = table->s->primary_key;
  return index == primary ? 0 : index < primary ? index + 1 : index;
}

bool ha_frondb::encode_key(uint index, const uchar *record, std::string *to) {
  KEY *key = &table->key_info[index];
  key_copy(image_.data(), record, key, key->key_length, true);
  encode_image(index, image_.data(), key->key_length, to);
  return KeyCodec::has_null(key, image_.data(), key->key_length);
}

void ha_frondb::encode_image(uint index, const uchar *image, uint length, std::string *to) const {
  share_->indexes[tree_of(index)].codec.encode(&table->key_info[index], image, length, to);
}

int ha_frondb::primary_key(const uchar *record, std::string *to) {
  to->clear();
  if (!share_->has_hidden_key) {
    encode_key(table->s->primary_key, record, to);
    return 0;
  }
  *to = current_;
  return 0;
}

bool ha_frondb::entry(uint index, const uchar *record, const std::string &primary, std::string *key,
                      std::string *value) {
  const Index &in = share_->indexes[tree_of(index)];
  key->clear();
  value->clear();
  bool is_unique = !encode_key(index, record, key) && in.is_unique;
  append_head(primary.size(), is_unique, value);
  (is_unique ? value : key)->append(primary);
  pack_fields(table, in.covered, record, value);
  return is_unique;
}

// --- Writing ---

int ha_frondb::insert_into(uint index, const std::string &key, const std::string &value, bool check) {
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  frondb_txn *txn = connection_->txn();
  if (!check) return ha_error(frondb_txn_put(txn, tree, slice(key), slice(value)));
  int error = ha_error(frondb_txn_insert(txn, tree, slice(key), slice(value)));
  if (error == HA_ERR_FOUND_DUPP_KEY) duplicate_key_ = index;
  return error;
}

int ha_frondb::insert_entries(const uchar *record, const std::string &primary) {
  for (uint k = 0; k < table->s->keys; k++) {
    if (is_primary(k)) continue;
    bool is_unique = entry(k, record, primary, &key_, &value_);
    if (int error = insert_into(k, key_, value_, is_unique)) return error;
  }
  return 0;
}

int ha_frondb::write_row(const uchar *record) {
  if (table->next_number_field && record == table->record[0])
    if (int error = update_auto_increment()) return error;
  if (int error = keep_explicit_auto_increment(record)) return error;
  frondb_txn *txn = connection_->txn();
  uint64_t number = 0;
  if (share_->has_hidden_key)
    if (int error = share_->next_hidden(&number)) return error;
  // A row is written whole or not at all, whatever the statement makes of the error.
  uint64_t savepoint = 0;
  bool may_fail_later = table->s->keys > 1 || share_->has_hidden_key;
  if (may_fail_later && table->s->keys)
    if (Error error = frondb_txn_set_savepoint(txn, &savepoint)) return ha_error(error);
  int error = 0;
  primary_.clear();
  value_.clear();
  pack_row(table, record, &value_);
  if (share_->has_hidden_key) {
    append_big_endian(number, &primary_);
    error = ha_error(frondb_txn_put(txn, share_->indexes[0].tree.get(), slice(primary_), slice(value_)));
    current_ = primary_;
  } else {
    encode_key(table->s->primary_key, record, &primary_);
    error = insert_into(table->s->primary_key, primary_, value_, true);
  }
  if (!error) error = insert_entries(record, primary_);
  if (savepoint) {
    if (error && error != HA_ERR_LOCK_DEADLOCK)
      if (Error undone = frondb_txn_roll_back_to(txn, savepoint)) return ha_error(undone);
    Error ignored = frondb_txn_release_savepoint(txn, savepoint);
  }
  return error;
}

int ha_frondb::update_row(const uchar *before, const uchar *after) {
  if (int error = keep_explicit_auto_increment(after)) return error;
  frondb_txn *txn = connection_->txn();
  uint64_t savepoint = 0;
  if (Error error = frondb_txn_set_savepoint(txn, &savepoint)) return ha_error(error);
  primary_key(before, &other_primary_);
  primary_key(after, &primary_);
  value_.clear();
  pack_row(table, after, &value_);
  frondb_tree *rows = share_->indexes[0].tree.get();
  bool moves = primary_ != other_primary_;
  int error = 0;
  if (moves) {
    error = insert_into(table->s->primary_key, primary_, value_, true);
    if (!error) error = ha_error(frondb_txn_delete(txn, rows, slice(other_primary_)));
  } else {
    error = ha_error(frondb_txn_put(txn, rows, slice(primary_), slice(value_)));
  }
  for (uint k = 0; k < table->s->keys && !error; k++) {
    if (is_primary(k)) continue;
    entry(k, before, other_primary_, &other_key_, &other_value_);
    bool is_unique = entry(k, after, primary_, &key_, &value_);
    bool same_key = key_ == other_key_;
    if (same_key && value_ == other_value_) continue;
    error = insert_into(k, key_, value_, is_unique && !same_key);
    if (!error && !same_key)
      error = ha_error(frondb_txn_delete(txn, share_->indexes[tree_of(k)].tree.get(), slice(other_key_)));
  }
  if (error && error != HA_ERR_LOCK_DEADLOCK)
    if (Error undone = frondb_txn_roll_back_to(txn, savepoint)) return ha_error(undone);
  Error ignored = frondb_txn_release_savepoint(txn, savepoint);
  return error;
}

int ha_frondb::delete_row(const uchar *record) {
  frondb_txn *txn = connection_->txn();
  primary_key(record, &primary_);
  int error = ha_error(frondb_txn_delete(txn, share_->indexes[0].tree.get(), slice(primary_)));
  for (uint k = 0; k < table->s->keys && !error; k++) {
    if (is_primary(k)) continue;
    entry(k, record, primary_, &key_, &value_);
    error = ha_error(frondb_txn_delete(txn, share_->indexes[tree_of(k)].tree.get(), slice(key_)));
  }
  return error;
}

// --- Reading ---

int ha_frondb::damaged() const { return ha_internal("a row or an index entry of FronDB cannot be decoded"); }

int ha_frondb::open_cursor(uint tree, const std::string &lo, const std::string *hi) {
  frondb_slice end = hi ? slice(*hi) : frondb_slice{};
  cursor_tree_ = tree;
  rows_ = {};
  at_ = 0;
  batch_ = BATCH_FIRST;
  return ha_error(frondb_txn_cursor(connection_->txn(), share_->indexes[tree].tree.get(), slice(lo),
                                    hi ? &end : nullptr, row_lock_, row_wait_, cursor_.out()));
}

/** The next entries; what is locked is read one by one. */
int ha_frondb::fetch(bool forward) {
  size_t count = row_lock_ == FRONDB_LOCK_NONE ? batch_ : 1;
  batch_ = std::min(batch_ * 8, BATCH_MAX);
  auto read = forward ? frondb_cursor_next_batch : frondb_cursor_prev_batch;
  at_ = 0;
  return ha_error(read(cursor_.get(), count, BATCH_BYTES, &rows_));
}

/** Goes on in the other direction, from the entry shown last. */
int ha_frondb::turn(bool forward) {
  forward_ = forward;
  if (at_ == 0 || at_ > rows_.count) return 0;
  std::string here(view(rows_.entries[at_ - 1].key));
  if (!forward) return open_cursor(cursor_tree_, "", &here);
  here.push_back(0);
  return open_cursor(cursor_tree_, here, nullptr);
}

int ha_frondb::step(bool forward, uchar *record) {
  if (!cursor_) return HA_ERR_END_OF_FILE;
  if (forward != forward_)
    if (int error = turn(forward)) return error;
  for (;;) {
    if (at_ == rows_.count)
      if (int error = fetch(forward)) return error;
    if (rows_.count == 0) return HA_ERR_END_OF_FILE;
    at_++;
    int error = show(record);
    if (error != SKIPPED) return error;
  }
}

int ha_frondb::show(uchar *record) {
  const frondb_entry &row = rows_.entries[at_ - 1];
  if (cursor_tree_ == 0) {
    current_.assign(view(row.key));
    return unpack_row(table, view(row.value), record) ? 0 : damaged();
  }
  frondb_slice primary;
  std::string_view covered;
  if (!split_entry(row.key, row.value, &primary, &covered)) return damaged();
  if (key_read_ && row_lock_ == FRONDB_LOCK_NONE) {
    current_.assign(view(primary));
    const Fields &fields = share_->indexes[cursor_tree_].covered;
    return unpack_fields(table, fields, covered, record) ? 0 : damaged();
  }
  return read_primary(primary, record);
}

int ha_frondb::read_primary(frondb_slice key, uchar *record) {
  bool found;
  current_.assign(view(key));
  if (Error error = frondb_txn_get(connection_->txn(), share_->indexes[0].tree.get(), slice(current_), row_lock_,
                                   row_wait_, buffer_.get(), &found))
    return error.kind() == FRONDB_BUSY && row_wait_ == FRONDB_SKIP_LOCKED ? SKIPPED : ha_error(error);
  if (!found) return HA_ERR_KEY_NOT_FOUND;
  return unpack_row(table, view(frondb_buffer_value(buffer_.get())), record) ? 0 : damaged();
}

int ha_frondb::rnd_init(bool scan) {
  forward_ = true;
  return scan ? open_cursor(0, "", nullptr) : 0;
}

int ha_frondb::rnd_end() {
  cursor_.reset();
  rows_ = {};
  return 0;
}

int ha_frondb::rnd_next(uchar *record) { return step(true, record); }

void ha_frondb::position(const uchar *record) {
  if (share_->has_hidden_key)
    memcpy(ref, current_.data(), std::min(current_.size(), size_t(ref_length)));
  else
    key_copy(ref, record, &table->key_info[table->s->primary_key], ref_length, true);
}

int ha_frondb::rnd_pos(uchar *record, uchar *position) {
  std::string key;
  if (share_->has_hidden_key)
    key.assign(reinterpret_cast<char *>(position), ref_length);
  else
    encode_image(table->s->primary_key, position, ref_length, &key);
  int error = read_primary(slice(key), record);
  return error == SKIPPED ? HA_ERR_RECORD_DELETED : error;
}

int ha_frondb::cmp_ref(const uchar *a, const uchar *b) {
  if (share_->has_hidden_key) return memcmp(a, b, ref_length);
  std::string left, right;
  encode_image(table->s->primary_key, a, ref_length, &left);
  encode_image(table->s->primary_key, b, ref_length, &right);
  return left.compare(right);
}

int ha_frondb::index_init(uint index, bool) {
  active_index = index;
  return 0;
}

int ha_frondb::index_end() {
  active_index = MAX_KEY;
  return rnd_end();
}

int ha_frondb::index_read(uchar *record, const uchar *key, uint length, ha_rkey_function flag) {
  std::string lo, hi;
  encode_image(active_index, key, length, &lo);
  hi = lo;
  bool has_end = prefix_end(&hi);
  const std::string *end = has_end ? &hi : nullptr;
  uint tree = tree_of(active_index);
  bool forward = true;
  int error;
  switch (flag) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX: error = open_cursor(tree, lo, end); break;
    case HA_READ_KEY_OR_NEXT: error = open_cursor(tree, lo, nullptr); break;
    case HA_READ_AFTER_KEY:
      if (!has_end) return HA_ERR_KEY_NOT_FOUND;
      error = open_cursor(tree, hi, nullptr);
      break;
    case HA_READ_BEFORE_KEY: forward = false; error = open_cursor(tree, "", &lo); break;
    case HA_READ_PREFIX_LAST: forward = false; error = open_cursor(tree, lo, end); break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV: forward = false; error = open_cursor(tree, "", end); break;
    default: return HA_ERR_WRONG_COMMAND;
  }
  if (error) return error;
  forward_ = forward;
  error = step(forward, record);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

int ha_frondb::index_next(uchar *record) { return step(true, record); }
int ha_frondb::index_prev(uchar *record) { return step(false, record); }

int ha_frondb::index_first(uchar *record) {
  forward_ = true;
  if (int error = open_cursor(tree_of(active_index), "", nullptr)) return error;
  return step(true, record);
}

int ha_frondb::index_last(uchar *record) {
  forward_ = false;
  if (int error = open_cursor(tree_of(active_index), "", nullptr)) return error;
  return step(false, record);
}

// --- Statistics ---

int ha_frondb::info(uint flag) {
  if (flag & HA_STATUS_ERRKEY) errkey = duplicate_key_;
  if (flag & HA_STATUS_VARIABLE) {
    frondb_estimate estimate = {};
    frondb_slice all = {};
    stats.index_file_length = 0;
    for (size_t i = share_->indexes.size(); i-- > 0;) {
      if (Error error = frondb_tree_estimate(share_->indexes[i].tree.get(), all, nullptr, &estimate))
        return ha_error(error);
      if (i > 0) stats.index_file_length += estimate.disk_bytes;
    }
    stats.records = estimate.entries;
    stats.data_file_length = estimate.disk_bytes;
    stats.deleted = 0;
    // None means none to the optimizer, which does not look again.
    if (stats.records == 0 && !(flag & (HA_STATUS_TIME | HA_STATUS_OPEN))) stats.records = 1;
    stats.mean_rec_length = stats.records ? ulong(stats.data_file_length / stats.records) : 0;
  }
  if (flag & HA_STATUS_CONST) {
    stats.block_size = 16 << 10;
    for (uint k = 0; k < table->s->keys; k++) {
      KEY *key = &table->key_info[k];
      for (uint part = 0; part < key->ext_key_parts; part++) {
        bool is_row = (key->flags & HA_NOSAME && part + 1 == key->user_defined_key_parts) ||
                      part + 1 > key->user_defined_key_parts;
        key->rec_per_key[part] = is_row ? 1 : ulong(std::max<ha_rows>(1, stats.records / 10 / (part + 1)));
      }
    }
  }
  if (flag & HA_STATUS_AUTO && table->found_next_number_field) {
    std::lock_guard<std::mutex> guard(share_->counting);
    stats.auto_increment_value = share_->auto_increment;
  }
  return 0;
}

ha_rows ha_frondb::records_in_range(uint index, const key_range *min, const key_range *max, page_range *) {
  std::string lo, hi;
  bool has_end = false;
  if (min) {
    encode_image(index, min->key, min->length, &lo);
    if (min->flag == HA_READ_AFTER_KEY && !prefix_end(&lo)) return 0;
  }
  if (max) {
    encode_image(index, max->key, max->length, &hi);
    has_end = max->flag == HA_READ_BEFORE_KEY || prefix_end(&hi);
  }
  frondb_estimate estimate;
  frondb_slice end = slice(hi);
  Error error = frondb_tree_estimate(share_->indexes[tree_of(index)].tree.get(), slice(lo),
                                     has_end ? &end : nullptr, &estimate);
  return error ? HA_POS_ERROR : std::max<ha_rows>(1, estimate.entries);
}

// --- Statements ---

int ha_frondb::begin_statement(THD *thd, bool writes) {
  connection_ = Connection::of(thd);
  return connection_->begin_statement(thd, writes);
}

int ha_frondb::external_lock(THD *thd, int type) {
  return type == F_UNLCK ? 0 : begin_statement(thd, type == F_WRLCK);
}

int ha_frondb::start_stmt(THD *thd, thr_lock_type type) {
  return begin_statement(thd, type >= TL_WRITE_ALLOW_WRITE);
}

THR_LOCK_DATA **ha_frondb::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) {
  if (type != TL_IGNORE) {
    bool writes = type >= TL_WRITE_ALLOW_WRITE;
    row_lock_ = writes ? FRONDB_LOCK_EXCLUSIVE
                : type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED ? FRONDB_LOCK_SHARED
                                                                                   : FRONDB_LOCK_NONE;
    row_wait_ = type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED ? FRONDB_SKIP_LOCKED : FRONDB_WAIT;
    if (lock_.type == TL_UNLOCK) {
      // Rows are locked, not tables, but where the user asked for that.
      bool keeps = thd_in_lock_tables(thd) && thd_sql_command(thd) == SQLCOM_LOCK_TABLES;
      if (writes && type <= TL_WRITE && !keeps) type = TL_WRITE_ALLOW_WRITE;
      if (type == TL_READ_NO_INSERT && !keeps) type = TL_READ;
      lock_.type = type;
    }
  }
  *to++ = &lock_;
  return to;
}

int ha_frondb::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_KEYREAD: key_read_ = true; break;
    case HA_EXTRA_NO_KEYREAD: key_read_ = false; break;
    default: break;
  }
  return 0;
}

// --- AUTO_INCREMENT ---

uint64_t ha_frondb::auto_increment_of(const uchar *record) {
  Field *field = table->found_next_number_field;
  AtRecord moved(field, record - table->record[0]);
  longlong value = field->val_int();
  return value < 0 && !(field->flags & UNSIGNED_FLAG) ? 0 : uint64_t(value);
}

int ha_frondb::keep_explicit_auto_increment(const uchar *record) {
  if (!table->found_next_number_field) return 0;
  uint64_t value = auto_increment_of(record);
  std::lock_guard<std::mutex> guard(share_->counting);
  if (!share_->knows_auto_increment || value < share_->auto_increment || value == ~0ULL) return 0;
  share_->auto_increment = value + 1;
  return ha_error(dictionary().keep_auto_increment(share_->record.number, value + 1));
}

void ha_frondb::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                   ulonglong *reserved) {
  std::lock_guard<std::mutex> guard(share_->counting);
  *first = ULONGLONG_MAX;
  if (!share_->knows_auto_increment) {
    if (Error error = dictionary().auto_increment(share_->record.number, &share_->auto_increment)) return;
    share_->auto_increment = std::max<uint64_t>(1, share_->auto_increment);
    share_->knows_auto_increment = true;
  }
  uint64_t next = share_->auto_increment;
  if (increment > 1) {
    offset = offset > increment ? 0 : offset;
    uint64_t past = next > offset ? next - offset : 0;
    next = offset + (past + increment - 1) / increment * increment;
  }
  uint64_t after = next + wanted * increment;
  if (after < next) return;
  if (Error error = dictionary().keep_auto_increment(share_->record.number, after)) return;
  share_->auto_increment = after;
  *first = next;
  *reserved = wanted;
}

void ha_frondb::update_create_info(HA_CREATE_INFO *create_info) {
  if (create_info->used_fields & HA_CREATE_USED_AUTO || !table->found_next_number_field) return;
  std::lock_guard<std::mutex> guard(share_->counting);
  create_info->auto_increment_value = share_->auto_increment;
}

void ha_frondb::print_error(int error, myf flag) {
  // The engine has rolled all of it back, so the server must not go on with the rest.
  if (error == HA_ERR_LOCK_DEADLOCK) ha_thd()->mark_transaction_to_rollback(true);
  handler::print_error(error, flag);
}

bool ha_frondb::get_error_message(int error, String *text) {
  message(error, text);
  return error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT;
}
