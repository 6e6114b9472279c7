/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: conditions and filters that the server pushes down to index reads, and
   multi-range reads, which the server implements on top of handlers (DsMrr_impl). */

#include "handler/ha_frondb.h"

using namespace fron;

Item *ha_frondb::idx_cond_push(uint index, Item *condition) {
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = index;
  // If an entry lacks parts of the key, the end of the range is checked on the row.
  in_range_check_pushed_down = share_->indexes[tree_of(index)].has_all_parts;
  return nullptr;
}

bool ha_frondb::rowid_filter_push(Rowid_filter *filter) {
  pushed_rowid_filter = filter;
  return false;
}

ha_rows ha_frondb::multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *init, uint count,
                                               uint *bytes, uint *mode, RANGES_LIMIT_PARAMETER Cost_estimate *cost) {
  mrr_.init(this, table);
  // The server's MRR over partitions fails with 1032 if it can choose among keys, also with InnoDB (prefix_keys.rs).
  // Probably the server sizes the buffers of the partitions for the last key that it asked about, and reads by another
  // key.
  if (table->part_info)
    return handler::multi_range_read_info_const(index, ranges, init, count, bytes, mode, RANGES_LIMIT_ARGUMENT cost);
  return mrr_.dsmrr_info_const(index, ranges, init, count, bytes, mode, RANGES_LIMIT_ARGUMENT cost);
}

ha_rows ha_frondb::multi_range_read_info(uint index, uint count, uint keys, uint parts, uint *bytes, uint *mode,
                                         Cost_estimate *cost) {
  mrr_.init(this, table);
  if (table->part_info) return handler::multi_range_read_info(index, count, keys, parts, bytes, mode, cost);
  return mrr_.dsmrr_info(index, count, keys, parts, bytes, mode, cost);
}

int ha_frondb::multi_range_read_init(RANGE_SEQ_IF *ranges, void *init, uint count, uint mode,
                                     HANDLER_BUFFER *buffer) {
  return mrr_.dsmrr_init(this, ranges, init, count, mode, buffer);
}

int ha_frondb::multi_range_read_next(range_id_t *range) { return mrr_.dsmrr_next(range); }

int ha_frondb::multi_range_read_explain_info(uint mode, char *text, size_t size) {
  return mrr_.dsmrr_explain_info(mode, text, size);
}

handler *ha_frondb::clone(const char *name, MEM_ROOT *root) {
  handler *copy = handler::clone(name, root);
  if (copy) {
    // The server does not call store_lock() for the copy.
    auto other = static_cast<ha_frondb *>(copy);
    other->use_.is_clone = true;
    other->use_.type = use_.type;
    other->use_.is_repeated = use_.is_repeated;
    other->use_.row_lock = use_.row_lock;
    other->use_.row_wait = use_.row_wait;
    other->use_.connection = use_.connection;
  }
  return copy;
}
