/* SPDX-License-Identifier: GPL-2.0-only

   See handler/overlay.h. */

#include "handler/overlay.h"

#include <algorithm>

#include "codec/entry.h"
#include "engine/errors.h"
#include "txn/connection.h"

namespace fron {
namespace {

/** While the object exists, a record is swapped into the TABLE's first record, because the server computes generated
    fields only there. */
class InFirstRecord {
 public:
  InFirstRecord(TABLE *table, uchar *record) : table_(table), kept_(record) { swap(); }
  ~InFirstRecord() {
    swap();
    // The bytes of virtual blobs are kept in the field, which now has the bytes of the other row, so compute them
    // again.
    for (Field **field = table_->vfield; field && *field; field++)
      if ((*field)->flags & BLOB_FLAG && !(*field)->stored_in_db()) table_->update_virtual_field(*field, true);
  }

 private:
  void swap() { std::swap_ranges(kept_, kept_ + table_->s->reclength, table_->record[0]); }

  TABLE *table_;
  uchar *kept_;
};

}  // namespace

Error Overlay::open(RowEncoder *encoder) {
  encoder_ = encoder;
  return outdated_.make();
}

/** Entries of a row in all indexes except the primary one, by the numbers of the indexes. */
struct Overlay::Entries {
  struct One {
    std::string key, value;
    bool is_unique;
  };
  std::vector<One> all;
};

void Overlay::entries_of(const uchar *record, const std::string &primary, Entries *entries) {
  TABLE *table = encoder_->table();
  entries->all.resize(table->s->keys);
  for (uint k = 0; k < table->s->keys; k++) {
    Entries::One &one = entries->all[k];
    if (!encoder_->is_primary(k)) one.is_unique = encoder_->entry(k, record, primary, &one.key, &one.value);
  }
}

/** Makes the entries of an encoded row. */
int Overlay::entries_of_row(std::string_view row, const std::string &primary, Entries *entries) {
  TABLE *table = encoder_->table();
  // Copy the whole record first: it also has bits of the server that belong to no field.
  const uchar *first = table->record[0];
  other_record_.assign(first, first + table->s->reclength);
  if (!unpack_row(table, encoder_->share().record.form, row, other_record_.data())) return encoder_->damaged(0);
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

int Overlay::lift_row(Connection *connection, const uchar *newest, const std::string &primary) {
  const TABLE *table = encoder_->table();
  if (table->s->keys <= (encoder_->share().has_hidden_key ? 0u : 1u)) return 0;
  frondb_txn *txn = connection->txn();
  frondb_tree *rows = encoder_->rows();
  bool is_outdated, found;
  if (Error error = frondb_txn_get_outdated(txn, rows, slice(primary), outdated_.get(), &is_outdated, &found))
    return ha_error(error);
  if (!is_outdated) return 0;
  connection->has_overlay = true;
  Entries seen, now;
  if (found)
    if (int error = entries_of_row(outdated_.value(), primary, &seen)) return error;
  if (newest) entries_of(newest, primary, &now);
  for (uint k = 0; k < table->s->keys; k++) {
    if (encoder_->is_primary(k)) continue;
    bool stays = found && newest && seen.all[k].key == now.all[k].key && seen.all[k].value == now.all[k].value;
    if (stays) continue;
    if (found)
      if (int error = hide_entry(connection, k, seen.all[k].key, seen.all[k].is_unique, primary)) return error;
    if (newest)
      if (int error = show_entry(connection, k, now.all[k].key, now.all[k].value, now.all[k].is_unique, primary)) return error;
  }
  // Record that the row was handled: frondb_txn_get_outdated() does not report it again. This overlay entry hides
  // nothing, because plain reads prefer the transaction's own write of the row.
  return ha_error(frondb_txn_overlay_delete(txn, rows, slice(primary)));
}

/** Hides an entry of a row from plain reads, unless the transaction writes the entry. */
int Overlay::hide_entry(Connection *connection, uint index, const std::string &key, bool is_unique, const std::string &primary) {
  frondb_tree *tree = encoder_->tree(index);
  if (Error error = frondb_txn_overlay_delete(connection->txn(), tree, slice(key))) return ha_error(error);
  if (!is_unique) return 0;
  std::string behind = key + primary;
  return ha_error(frondb_txn_overlay_delete(connection->txn(), tree, slice(behind)));
}

/** Shows an entry of a row to plain reads. */
int Overlay::show_entry(Connection *connection, uint index, const std::string &key, const std::string &value,
                        bool is_unique, const std::string &primary) {
  frondb_tree *tree = encoder_->tree(index);
  if (!is_unique) return ha_error(frondb_txn_overlay_put(connection->txn(), tree, slice(key), slice(value)));
  frondb_slice ignored;
  std::string_view covered;
  if (!split_entry(slice(key), slice(value), &ignored, &covered)) return encoder_->damaged(tree_of(encoder_->table(), index));
  std::string behind = key + primary, without;
  append_head(primary.size(), false, &without);
  without.append(covered);
  return ha_error(frondb_txn_overlay_put(connection->txn(), tree, slice(behind), slice(without)));
}

int Overlay::uncover_entry(Connection *connection, uint index, const std::string &key, const std::string &primary) {
  frondb_txn *txn = connection->txn();
  frondb_tree *tree = encoder_->tree(index);
  bool is_outdated, found;
  if (Error error = frondb_txn_get_outdated(txn, tree, slice(key), outdated_.get(), &is_outdated, &found))
    return ha_error(error);
  if (is_outdated && found) {
    frondb_slice owner;
    std::string_view covered;
    frondb_slice value = outdated_.slice();
    if (!split_entry(slice(key), value, &owner, &covered)) return encoder_->damaged(tree_of(encoder_->table(), index));
    connection->has_overlay = true;
    std::string other(view(owner));
    if (other != primary)
      if (int error = show_entry(connection, index, key, std::string(view(value)), true, other)) return error;
    // Record that the entry was handled, also if it was the row's own: frondb_txn_get_outdated() does not report it
    // again. A later write of the key by this transaction hides no other row's entry of the snapshot.
    if (Error error = frondb_txn_overlay_delete(txn, tree, slice(key))) return ha_error(error);
  }
  if (!connection->has_overlay) return 0;
  std::string behind = key + primary;
  return ha_error(frondb_txn_overlay_delete(txn, tree, slice(behind)));
}

}  // namespace fron
