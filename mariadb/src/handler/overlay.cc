/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: what keeps the indexes and the rows of one transaction's view alike, when it writes a row that
   another one has changed behind its snapshot (docs/decisions/0036).

     row   at the snapshot  (g=1)     in the index at the snapshot  1
           as it is now     (g=9)     the write removes             9, puts 8
           written          (g=8)     so plain reads would see      1 and 8

   The write leads from the newest row to its own. What leads from the snapshot's row to the newest goes to the
   transaction's overlay, which its plain reads see and nobody commits: out with the entries of the one, in with those
   of the other.

   A unique index has one row for a key, and a view may have two: one as of the snapshot that has given the key up
   since, and one that has it now. In an overlay, entries of a unique index stand under the key with the primary
   key behind it, as those with a NULL do; the key alone is the transaction's own write, or the snapshot's. */

#include "handler/ha_frondb.h"

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/connection.h"

using namespace fron;

namespace {

/** A record's bytes in the TABLE's own place for as long as this lives: generated fields are computed there. */
class InFirstRecord {
 public:
  InFirstRecord(TABLE *table, uchar *record) : table_(table), kept_(record) { swap(); }
  ~InFirstRecord() {
    swap();
    // Blobs that are not stored have their bytes with the field, and those are the other row's now.
    for (Field **field = table_->vfield; field && *field; field++)
      if ((*field)->flags & BLOB_FLAG && !(*field)->stored_in_db()) table_->update_virtual_field(*field, true);
  }

 private:
  void swap() { std::swap_ranges(kept_, kept_ + table_->s->reclength, table_->record[0]); }

  TABLE *table_;
  uchar *kept_;
};

}  // namespace

/** Entries of a row in the indexes behind the primary one, by their numbers. */
struct ha_frondb::Entries {
  struct One {
    std::string key, value;
    bool is_unique;
  };
  std::vector<One> all;
};

void ha_frondb::entries_of(const uchar *record, const std::string &primary, Entries *entries) {
  entries->all.resize(table->s->keys);
  for (uint k = 0; k < table->s->keys; k++) {
    Entries::One &one = entries->all[k];
    if (!is_primary(k)) one.is_unique = entry(k, record, primary, &one.key, &one.value);
  }
}

/** The entries of a row as the engine has it. */
int ha_frondb::entries_of_row(std::string_view row, const std::string &primary, Entries *entries) {
  // Bits that no field has are the server's.
  const uchar *first = table->record[0];
  other_record_.assign(first, first + table->s->reclength);
  if (!unpack_row(table, share_->record.form, row, other_record_.data())) return damaged();
  if (!table->vfield) {
    entries_of(other_record_.data(), primary, entries);
    return 0;
  }
  MY_BITMAP *columns = tmp_use_all_columns(table, &table->read_set);
  {
    InFirstRecord here(table, other_record_.data());
    for (Field **field = table->vfield; *field; field++)
      if (!(*field)->stored_in_db()) table->update_virtual_field(*field, true);
    entries_of(table->record[0], primary, entries);
  }
  tmp_restore_column_map(&table->read_set, columns);
  return 0;
}

/** The transaction has written, and so locked, the row of this primary key. If another one has changed it since
    the snapshot, plain reads see it in all indexes as it was before the write: as `newest`, or not at all if
    that is null. */
int ha_frondb::lift_row(const uchar *newest, const std::string &primary) {
  if (table->s->keys <= (share_->has_hidden_key ? 0u : 1u)) return 0;
  frondb_txn *txn = connection_->txn();
  frondb_tree *rows = share_->indexes[0].tree.get();
  bool is_outdated, found;
  if (Error error = frondb_txn_get_outdated(txn, rows, slice(primary), outdated_.get(), &is_outdated, &found))
    return ha_error(error);
  if (!is_outdated) return 0;
  connection_->has_overlay = true;
  Entries seen, now;
  if (found)
    if (int error = entries_of_row(view(frondb_buffer_value(outdated_.get())), primary, &seen)) return error;
  if (newest) entries_of(newest, primary, &now);
  for (uint k = 0; k < table->s->keys; k++) {
    if (is_primary(k)) continue;
    bool stays = found && newest && seen.all[k].key == now.all[k].key && seen.all[k].value == now.all[k].value;
    if (stays) continue;
    if (found)
      if (int error = hide_entry(k, seen.all[k].key, seen.all[k].is_unique, primary)) return error;
    if (newest)
      if (int error = show_entry_of(k, now.all[k].key, now.all[k].value, now.all[k].is_unique, primary)) return error;
  }
  // Says that this was done. The row itself is what the transaction writes.
  return ha_error(frondb_txn_overlay_delete(txn, rows, slice(primary)));
}

/** Plain reads do not see this entry of a row any more, unless the transaction writes it. */
int ha_frondb::hide_entry(uint index, const std::string &key, bool is_unique, const std::string &primary) {
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  if (Error error = frondb_txn_overlay_delete(connection_->txn(), tree, slice(key))) return ha_error(error);
  if (!is_unique) return 0;
  std::string behind = key + primary;
  return ha_error(frondb_txn_overlay_delete(connection_->txn(), tree, slice(behind)));
}

/** Plain reads see this entry of a row. */
int ha_frondb::show_entry_of(uint index, const std::string &key, const std::string &value, bool is_unique,
                             const std::string &primary) {
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  if (!is_unique) return ha_error(frondb_txn_overlay_put(connection_->txn(), tree, slice(key), slice(value)));
  frondb_slice ignored;
  std::string_view covered;
  if (!split_entry(slice(key), slice(value), &ignored, &covered)) return damaged();
  std::string behind = key + primary, without;
  append_head(primary.size(), false, &without);
  without.append(covered);
  return ha_error(frondb_txn_overlay_put(connection_->txn(), tree, slice(behind), slice(without)));
}

/** The transaction has written the entry of a row's key in a unique index: in a plain read it covers the entry that
    another row had there at the snapshot, and still has in this transaction's view; that one moves behind. What
    an overlay has for the row itself is over. */
int ha_frondb::uncover_entry(uint index, const std::string &key, const std::string &primary) {
  frondb_txn *txn = connection_->txn();
  frondb_tree *tree = share_->indexes[tree_of(index)].tree.get();
  bool is_outdated, found;
  if (Error error = frondb_txn_get_outdated(txn, tree, slice(key), outdated_.get(), &is_outdated, &found))
    return ha_error(error);
  if (is_outdated && found) {
    frondb_slice owner;
    std::string_view covered;
    frondb_slice value = frondb_buffer_value(outdated_.get());
    if (!split_entry(slice(key), value, &owner, &covered)) return damaged();
    if (view(owner) != primary) {
      connection_->has_overlay = true;
      std::string other(view(owner));
      if (int error = show_entry_of(index, key, std::string(view(value)), true, other)) return error;
      if (Error error = frondb_txn_overlay_delete(txn, tree, slice(key))) return ha_error(error);
    }
  }
  if (!connection_->has_overlay) return 0;
  std::string behind = key + primary;
  return ha_error(frondb_txn_overlay_delete(txn, tree, slice(behind)));
}
