/* SPDX-License-Identifier: GPL-2.0-only

   Maps the slots of a row to columns. A new table has one slot for each column, in the order of the columns. An ALTER
   without a copy moves columns to other numbers, drops columns, and adds slots at the end; existing rows stay
   unchanged. Slots keep their places and are never reused, so a row records only how many slots it has. The table's
   record in the dictionary has the layout. */

#ifndef FRONDB_CODEC_LAYOUT_H
#define FRONDB_CODEC_LAYOUT_H

#include <cstdint>
#include <string>
#include <vector>

namespace fron {

/** A slot of rows. */
struct Slot {
  /** Instead of a column's number: the column was dropped. */
  static constexpr uint32_t GONE = UINT32_MAX;

  /** Number of the column in the table's definition. */
  uint32_t field;
  /** For a slot whose value is skipped, because its column was dropped or is not wanted (codec/row.h): the number of
      length bytes before the value; if 0, the value has `bytes` bytes. */
  uint32_t prefix = 0;
  uint32_t bytes = 0;
  /** For a VARCHAR that was widened beyond 255 bytes: rows with at most this many slots were written before that, and
      have one length byte instead of two. Index entries escape the lengths of such a column (codec/row.h). */
  uint32_t short_until = 0;
};

/** The slots of a table's rows. Empty if the slots are the columns in their order. */
using Layout = std::vector<Slot>;

/** The layout and the defaults with which rows of any age are read. */
struct RowForm {
  Layout layout;
  /** A row with all slots. Its values fill the slots that older rows lack; see unpack_row(). Empty if there are no
      defaults. */
  std::string defaults;
};

/** Returns whether the layout is empty, or has each of `fields` columns exactly once. */
bool is_layout_of(const Layout &layout, size_t fields);

}  // namespace fron

#endif
