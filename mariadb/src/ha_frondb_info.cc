/* SPDX-License-Identifier: GPL-2.0-only

   See ha_frondb.h. Here: what the optimizer and SHOW TABLE STATUS are told. */

#include "ha_frondb.h"

#include <key.h>

#include <algorithm>

#include "frondb_entry.h"
#include "frondb_error.h"

using namespace fron;

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
  if (flag & HA_STATUS_AUTO && table->found_next_number_field) stats.auto_increment_value = share_->auto_increment;
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
