/* SPDX-License-Identifier: GPL-2.0-only

   Writes a row and its index entries in one call of the engine.

     1  encode     the row and the entries that change, into scratch that lives as long as the handler
     2  apply      frondb_txn_write_entries(): the row first, then the indexes in their order
     3  overlay    only if another transaction has changed one of the keys since the snapshot: handler/overlay.h */

#ifndef FRONDB_HANDLER_ROW_WRITER_H
#define FRONDB_HANDLER_ROW_WRITER_H

#include <my_global.h>

#include <string>
#include <vector>

#include "handler/overlay.h"
#include "handler/read_free.h"
#include "table/row_encoder.h"
#include "table/statement_use.h"

namespace fron {

class Connection;

class RowWriter {
 public:
  Error open(RowEncoder *encoder, Share *share, ReadFree *read_free, const StatementUse *use);
  void close() { overlay_.close(); }

  /** Write a row. Each function returns 0 or an HA_ERR_ number, and notes a duplicate key in the connection. `shown`
      is the primary key of the row read last; it is used only if the table has hidden keys. */
  int insert(Connection *connection, const uchar *record);
  /** Inserts a row whose writes encode_insert() has made. */
  int insert(Connection *connection, const std::vector<frondb_write> &writes);
  int change(Connection *connection, const uchar *before, const uchar *after, const std::string &shown);
  int remove(Connection *connection, const uchar *record, const std::string &shown);

  /** Makes the writes of a new row. */
  int encode_insert(const uchar *record);
  const std::vector<frondb_write> &writes() const { return writes_; }
  /** Encodes a new row into primary() and row(), and assigns a hidden key if the table has hidden keys. */
  int encode_new_row(const uchar *record);
  /** Return the primary key of the row written last, before and after the write, and the encoded row. */
  const std::string &primary_before() const { return primary_before_; }
  const std::string &primary() const { return primary_; }
  const std::string &row() const { return row_; }
  /** Returns the number of rows whose writes were applied. A later step of such a row, the overlay, may have failed. */
  uint64_t written() const { return written_; }

 private:
  /** An entry of an index, as the row had it or has it now. */
  struct Entry {
    std::string key, value;
    bool is_unique = false;
  };

  /** Begins the writes of a row. `checks_unique`: new unique keys must not exist yet. */
  void begin(bool checks_unique);
  void add(frondb_operation operation, uint index, bool checks_outdated, std::string_view key,
           std::string_view value = {});
  /** Adds a write of a value, which must not be too long. */
  int add_value(uint index, bool is_new_key, bool checks_outdated, std::string_view key, std::string_view value);
  int apply_insert(Connection *connection);
  int add_change(uint index, const uchar *before, const uchar *after);
  /** Returns whether the statement can continue after a failed row: after a duplicate in a unique index other than
      the primary one; after any error with IGNORE, in a trigger or function with an error handler, and on a replica
      that skips errors. */
  bool can_go_on() const;
  /** Passes the writes to the engine. After an error, none of them remains if the statement can continue. */
  int apply(Connection *connection);
  void row_key(const uchar *record, const std::string &shown, std::string *to);
  bool has_other_indexes() const;
  int uncover(Connection *connection, uint index, const Entry &entry, const std::string &primary);

  RowEncoder *encoder_ = nullptr;
  Share *share_ = nullptr;
  ReadFree *read_free_ = nullptr;
  const StatementUse *use_ = nullptr;
  Overlay overlay_;

  std::string primary_before_, primary_, row_;
  /** By index number: a row's entries before and after a write, and which of them an update changes. */
  std::vector<Entry> before_, after_;
  std::vector<bool> is_changed_;
  std::vector<frondb_write> writes_;
  /** For each write, the number of its index. */
  std::vector<uint> indexes_;
  bool checks_unique_ = true;
  /** Whether plain reads may need the overlay after these writes. */
  bool needs_overlay_ = false;
  uint64_t written_ = 0;
};

}  // namespace fron

#endif
