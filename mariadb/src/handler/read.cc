/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: the server's calls for scans of tables and reads of indexes. handler/fetch.cc fetches
   and decodes entries and rows. */

#include "handler/ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/prepared_writes.h"

using namespace fron;

// --- The table ---

int ha_frondb::rnd_init(bool scan) {
  if (int error = end_bulk_before_read()) return error;
  position_.set_direction(true);
  position_.forget_prefix();
  has_shown_ = false;
  if (is_sequence()) return 0;
  if (!scan) return 0;
  if (copies_tables(ha_thd()) && !use_.is_checked && table->s->tmp_table == NO_TMP_TABLE)
    if (int error = check_prepared(share_->indexes[0].tree.get())) return error;
  return open_cursor(0, "", nullptr);
}

int ha_frondb::rnd_end() {
  // MRR may still have a scan of this index open, and the next scan may use another index.
  mrr_.dsmrr_close();
  position_.rewind();
  return 0;
}

int ha_frondb::rnd_next(uchar *record) {
  return guarded([&] {
    if (!is_sequence()) return step(true, record);
    return std::exchange(has_shown_, true) ? HA_ERR_END_OF_FILE : read_sequence(record);
  });
}

void ha_frondb::position(const uchar *record) {
  if (share_->has_hidden_key)
    memcpy(ref, current_.data(), std::min(current_.size(), size_t(ref_length)));
  else
    copy_key(table, table->s->primary_key, record, ref_length, ref);
}

int ha_frondb::rnd_pos(uchar *record, uchar *position) {
  return guarded([&] {
    if (is_sequence()) return read_sequence(record);
    want_fields(0);
    current_.clear();
    if (share_->has_hidden_key)
      current_.assign(reinterpret_cast<char *>(position), ref_length);
    else
      encoder_.append_image(table->s->primary_key, position, ref_length, &current_);
    int error = read_row(record);
    return error == HA_ERR_KEY_NOT_FOUND || error < 0 ? HA_ERR_RECORD_DELETED : error;
  });
}

/** Looks up a row for a replica by an event's before image, which is in the server's first record. */
int ha_frondb::rnd_pos_by_record(uchar *record) {
  if (record != table->record[0] || !read_free_.skips_lookup(table)) return handler::rnd_pos_by_record(record);
  // The write that follows locks the row.
  ReadFree::count_lookup();
  return 0;
}

int ha_frondb::cmp_ref(const uchar *a, const uchar *b) {
  if (share_->has_hidden_key) return memcmp(a, b, ref_length);
  int order = 0;
  auto compare = [&] {
    lo_.clear();
    hi_.clear();
    encoder_.append_image(table->s->primary_key, a, ref_length, &lo_);
    encoder_.append_image(table->s->primary_key, b, ref_length, &hi_);
    order = lo_.compare(hi_);
    return 0;
  };
  // This function cannot report a lack of memory, and compares the bytes instead: the order may be wrong, but two
  // different references never compare as equal, so no row is lost.
  return guarded(compare) ? memcmp(a, b, ref_length) : order;
}

// --- Indexes ---

int ha_frondb::index_init(uint index, bool) {
  if (int error = end_bulk_before_read()) return error;
  if (!use_.seen_trees.empty() && !use_.seen_trees[tree_of(index)]) return HA_ERR_TABLE_DEF_CHANGED;
  active_index = index;
  range_.has_first = false;
  position_.forget_prefix();
  return 0;
}

int ha_frondb::index_end() {
  active_index = MAX_KEY;
  return rnd_end();
}

bool ha_frondb::is_whole_key(uint index, const uchar *key, uint length) const {
  const KEY &info = table->key_info[index];
  return length == info.key_length && info.flags & HA_NOSAME && !KeyCodec::has_null(&info, key, length);
}

int ha_frondb::index_read(uchar *record, const uchar *key, uint length, ha_rkey_function flag) {
  return guarded([&] {
    lo_.clear();
    encoder_.append_image(active_index, key, length, &lo_);
    bool ends = std::exchange(range_.has_end, false);
    // Searches backward end at the first key of their range, so that nothing before the range is read or locked.
    bool has_first = std::exchange(range_.has_first, false);
    std::string_view first = has_first ? std::string_view(range_.first) : std::string_view();
    // A loose scan jumps from group to group within a range, and the server itself checks the end of the range.
    if (!std::exchange(range_.begins, false) && flag == HA_READ_AFTER_KEY) in_range_check_pushed_down = false;
    position_.forget_prefix();
    uint tree = tree_of(active_index);
    if (is_server_check(record, flag))
      if (int error = lock_checked_key(key, length, &range_.end, &ends)) return error;
    if (flag == HA_READ_KEY_EXACT && is_whole_key(active_index, key, length))
      return read_exact(tree, lo_, record);
    hi_ = lo_;
    bool has_end = prefix_end(&hi_);
    const std::string *end = has_end ? &hi_ : nullptr;
    const std::string *range_end = ends ? &range_.end : nullptr;
    bool forward = true;
    int error;
    switch (flag) {
      case HA_READ_KEY_EXACT:
      case HA_READ_PREFIX:
        error = open_cursor(tree, lo_, end);
        if (end) position_.end_prefix_at(hi_);
        break;
      case HA_READ_KEY_OR_NEXT: error = seek(tree, lo_, range_end); break;
      case HA_READ_AFTER_KEY:
        if (!has_end) return HA_ERR_KEY_NOT_FOUND;
        error = seek(tree, hi_, range_end);
        break;
      case HA_READ_BEFORE_KEY: forward = false; error = open_cursor(tree, first, &lo_, forward); break;
      case HA_READ_PREFIX_LAST: forward = false; error = open_cursor(tree, lo_, end, forward); break;
      case HA_READ_KEY_OR_PREV:
      case HA_READ_PREFIX_LAST_OR_PREV: forward = false; error = open_cursor(tree, first, end, forward); break;
      default: return HA_ERR_WRONG_COMMAND;
    }
    if (error) return error;
    position_.set_direction(forward);
    error = step(forward, record);
    if (error != HA_ERR_END_OF_FILE) return error;
    // HANDLER continues from the position where the key would be.
    if (use_.is_sql_handler && position_.is_in_prefix()) position_.go_on_from(lo_);
    return HA_ERR_KEY_NOT_FOUND;
  });
}

int ha_frondb::index_next(uchar *record) {
  return guarded([&] { return step_in_index(true, record); });
}

int ha_frondb::index_prev(uchar *record) {
  return guarded([&] { return step_in_index(false, record); });
}

int ha_frondb::index_next_same(uchar *record, const uchar *key, uint length) {
  // The cursor of a search for this prefix ends with the prefix. A complete unique key has no second row; do not let
  // the server compare the key, since entries may lack a part of it.
  if (!position_.is_in_prefix() && is_whole_key(active_index, key, length)) return HA_ERR_END_OF_FILE;
  // NULL in a descending part is last in the index, so its cursor has no end and needs none.
  bool is_same = position_.is_in_prefix();
  if (!is_same) {
    int error = guarded([&] {
      hi_.clear();
      encoder_.append_image(active_index, key, length, &hi_);
      is_same = !prefix_end(&hi_);
      return 0;
    });
    if (error) return error;
  }
  if (!is_same) return handler::index_next_same(record, key, length);
  return guarded([&] { return step(true, record); });
}

int ha_frondb::index_first(uchar *record) {
  return guarded([&] {
    const std::string *end = std::exchange(range_.has_end, false) ? &range_.end : nullptr;
    range_.has_first = false;
    position_.set_direction(true);
    position_.forget_prefix();
    if (int error = open_cursor(tree_of(active_index), "", end)) return error;
    return step(true, record);
  });
}

int ha_frondb::index_last(uchar *record) {
  return guarded([&] {
    position_.set_direction(false);
    position_.forget_prefix();
    bool has_first = std::exchange(range_.has_first, false);
    auto last_from = [&](std::string_view first) {
      if (int error = open_cursor(tree_of(active_index), first, nullptr, false)) return error;
      return step(false, record);
    };
    if (!has_first) return last_from({});
    int error = last_from(range_.first);
    // The range has no row. The server would take this error for an empty table, and not read the ranges before this
    // one; it detects by itself that the row below is not in the range.
    return error == HA_ERR_END_OF_FILE ? last_from({}) : error;
  });
}

/** Keeps the first key of the range. The server calls this before it searches for the last entry of a range, from
    which it reads backward. */
int ha_frondb::prepare_range_scan(const key_range *from, const key_range *) {
  return guarded([&] {
    range_.has_first = false;
    if (!from) return 0;
    range_.first.clear();
    encoder_.append_image(active_index, from->key, from->length, &range_.first);
    range_.has_first = from->flag != HA_READ_AFTER_KEY || prefix_end(&range_.first);
    return 0;
  });
}

int ha_frondb::read_range_first(const key_range *from, const key_range *to, bool is_equal, bool sorted) {
  int error = guarded([&] {
    range_.has_end = range_.has_first = false;
    // The cursor ends with the range, so that nothing after the range is read or locked.
    if (!to) return 0;
    range_.end.clear();
    encoder_.append_image(active_index, to->key, to->length, &range_.end);
    range_.has_end = to->flag == HA_READ_BEFORE_KEY || prefix_end(&range_.end);
    return 0;
  });
  if (error) return error;
  // If the cursor ends with the range, the server must not compare the record with the end of the range: index-only
  // reads (index_merge, row filters, MRR) do not fill prefix parts in the record, despite index_flags(). The cursor of
  // a search for one key, from which the server continues, has another end.
  in_range_check_pushed_down = is_equal || !from || from->flag != HA_READ_KEY_EXACT;
  range_.begins = from != nullptr;
  return handler::read_range_first(from, to, is_equal, sorted);
}
