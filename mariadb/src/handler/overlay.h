/* SPDX-License-Identifier: GPL-2.0-only

   Keeps the indexes and the rows of a transaction's view consistent when it writes a row that another transaction has
   changed since its snapshot (mariadb/docs/design.md, Overlays).

     row   at the snapshot  (g=1)     in the index at the snapshot  1
           as it is now     (g=9)     the write removes             9, puts 8
           written          (g=8)     so plain reads would see      1 and 8

   The write changes the newest row into the written one. The difference between the snapshot's row and the newest
   row goes to the transaction's overlay, which its plain reads see and which is never committed: the overlay hides
   the entries of the snapshot's row and shows the entries of the newest row.

   A unique index has one row for each key, but a view may have two: a row of the snapshot that has lost the key since,
   and the row that has it now. In an overlay the entries of a unique index have the primary key after the key, like
   entries with a NULL; the key alone is the transaction's own write, or the snapshot's entry. */

#ifndef FRONDB_HANDLER_OVERLAY_H
#define FRONDB_HANDLER_OVERLAY_H

#include <my_global.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/api.h"
#include "table/row_encoder.h"

namespace fron {

class Connection;

class Overlay {
 public:
  Error open(RowEncoder *encoder);
  void close() { outdated_.reset(); }

  /** Called when the transaction has written, and so locked, the row with this primary key. If another transaction
      has changed the row since the snapshot, makes plain reads see the row in all indexes as it was before the
      write: as `newest`, or not at all if `newest` is null. */
  int lift_row(Connection *connection, const uchar *newest, const std::string &primary);

  /** Called when the transaction has written the entry of `key`, of the row `primary`, in a unique index. The first
      such write hides from plain reads the entry that another row had under the key at the snapshot and still has in
      this transaction's view. So the overlay shows that entry under the key followed by the other row's primary key.
      Removes the entry that the overlay shows for the row itself, if any. */
  int uncover_entry(Connection *connection, uint index, const std::string &key, const std::string &primary);

 private:
  struct Entries;
  void entries_of(const uchar *record, const std::string &primary, Entries *entries);
  int entries_of_row(std::string_view row, const std::string &primary, Entries *entries);
  int hide_entry(Connection *connection, uint index, const std::string &key, bool is_unique,
                 const std::string &primary);
  int show_entry(Connection *connection, uint index, const std::string &key, const std::string &value, bool is_unique,
                 const std::string &primary);

  RowEncoder *encoder_ = nullptr;
  /** A buffer of its own, because blobs of the row that is written may point into the handler's buffer. */
  Buffer outdated_;
  std::vector<uchar> other_record_;
};

}  // namespace fron

#endif
