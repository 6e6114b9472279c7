/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: the table of a SEQUENCE, which has one row. The server caches a range of numbers and
   writes the row only from time to time, within the statement that requests the next number.

   The row does not belong to the statement's transaction: a number must not be assigned again after a rollback, and
   other transactions must not wait for this one. So each write commits by itself, and reads take the newest row. A
   write does not wait for the disk: statements that use the number commit later, and the log keeps the order of
   commits. */

#include "handler/ha_frondb.h"

#include "codec/entry.h"
#include "engine/db.h"
#include "engine/errors.h"

using namespace fron;

namespace {

/** The hidden key of the only row. */
constexpr uint64_t SEQUENCE_KEY = 1;

}  // namespace

int ha_frondb::write_sequence(const uchar *record) {
  std::string row;
  encoder_.encode_row(record, &row);
  current_.clear();
  append_big_endian(SEQUENCE_KEY, &current_);
  Batch batch;
  if (Error error = batch.make()) return ha_error(error);
  frondb_tree *rows = share_->indexes[0].tree.get();
  if (Error error = batch.put(rows, current_, row)) return ha_error(error);
  if (Error error = write_batch(batch, FRONDB_NO_SYNC)) return ha_error(error);
  // Record the change here: no transaction counts the row, so no end of a transaction records the time of the change.
  share_->rows->set(1);
  share_->rows->changed();
  share_->rows->committed();
  use_.has_written = true;
  return 0;
}

int ha_frondb::read_sequence(uchar *record) {
  current_.clear();
  append_big_endian(SEQUENCE_KEY, &current_);
  bool found;
  frondb_tree *rows = share_->indexes[0].tree.get();
  if (Error error = read_key(rows, current_, nullptr, buffer_, &found)) return ha_error(error);
  if (!found) return HA_ERR_END_OF_FILE;
  return unpack_row(table, share_->record.form, buffer_.value(), record) ? 0 : encoder_.damaged(0);
}
