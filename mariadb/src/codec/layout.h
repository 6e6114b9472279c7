/* SPDX-License-Identifier: GPL-2.0-only

   Where the columns of a table stand in its rows. A row has slots. A new table's are its columns in their order;
   ALTER without a copy moves columns to other numbers, lets them go and adds slots behind, and rows that are there
   stay as they are. Slots keep their places and are never used again, so a row says no more than how many it has.
   Kept in the table's record in the dictionary (frondb_dictionary), used by frondb_row. */

#ifndef FRONDB_CODEC_LAYOUT_H
#define FRONDB_CODEC_LAYOUT_H

#include <cstdint>
#include <string>
#include <vector>

namespace fron {

/** A slot of rows. */
struct Slot {
  /** In place of the number of a column that is gone. */
  static constexpr uint32_t GONE = UINT32_MAX;

  /** Number of the column in the table's definition. */
  uint32_t field;
  /** So many bytes of length stand before its bytes; if none, it has `bytes`. For slots whose column is gone. */
  uint32_t prefix;
  uint32_t bytes;
};

/** The slots of a table's rows. Empty: its columns, in their order. */
using Layout = std::vector<Slot>;

/** What is needed to read rows of all ages. */
struct RowForm {
  Layout layout;
  /** A row of all slots, for rows with less; see unpack_row(). Empty if there are none. */
  std::string defaults;
};

/** Whether a layout has each of so many columns once. */
bool is_layout_of(const Layout &layout, size_t fields);

}  // namespace fron

#endif
