/* SPDX-License-Identifier: GPL-2.0-only

   Rows of the server as values of the engine.

     | fields (varint) | NULL bits | field | field | ...

   Fields stand in the order of the table's slots (codec/layout.h), each as Field::pack() writes it; those that
   are NULL, and generated ones that are not stored, take no room. Slots whose column is gone are NULL in rows
   that are written now. The count of slots comes first: a row that was written before columns were added
   ends early, and they have the defaults of that time, which the dictionary keeps. */

#ifndef FRONDB_CODEC_ROW_H
#define FRONDB_CODEC_ROW_H

#include <my_global.h>

#include <string>
#include <string_view>
#include <vector>

#include "codec/layout.h"

struct TABLE;
class Field;

namespace fron {

/** Bytes of the longest value that the engine takes (frondb.h): of a row as it is stored, BLOBs included. */
constexpr size_t ROW_BYTES_MAX = 64 << 20;

/** Fields of a table by their numbers, in the order of their slots. */
using Fields = std::vector<uint>;

/** The fields of a table that a statement wants, and how the bytes of the others are passed over. */
struct Wanted {
  /** Of each field whether it is; empty if all are. */
  std::vector<bool> fields;
  /** Of each field what describe_bytes() says; empty if all are wanted. */
  std::vector<Slot> others;

  bool has(uint field) const { return fields.empty() || fields[field]; }
};

/** Appends the row in `record`. */
void pack_row(const TABLE *table, const Layout &layout, const uchar *record, std::string *to);

/** Fills the fields of `record` that are wanted from a row. Blobs point into `row`, or into the form's defaults: of fields that were added
    after `row` was written. False if it is damaged. */
bool unpack_row(const TABLE *table, const RowForm &form, std::string_view row, uchar *record,
                const Wanted &wanted = {});

/** Makes the defaults of a table whose layout has new slots behind: as before for those that there were, as the
    definition says for the `added` ones, expressions as of now. Uses record[0]. False if the old ones are damaged. */
bool pack_defaults(TABLE *table, const std::vector<Field *> &added, RowForm *form);

/** Fills in how the bytes of a field in rows are passed over without it. */
void describe_bytes(const Field *field, Slot *slot);

/** The same for some of the fields: what an index entry has for reads of the index alone. */
void pack_fields(const TABLE *table, const Fields &fields, const uchar *record, std::string *to);
bool unpack_fields(const TABLE *table, const Fields &fields, std::string_view bytes, uchar *record);

/** Whether an update leaves the row as it is: two records of the table, of which the new one is record[0]. */
bool is_same_row(const TABLE *table, const uchar *before, const uchar *after);

/** Makes the image of a key of the row in `record`, of `length` bytes: key_copy(), and the bits that it takes from
    the first record whatever it is told. */
void copy_key(TABLE *table, uint index, const uchar *record, uint length, uchar *image);

/** Moves fields to another record of the table for as long as it lives. */
class AtRecord {
 public:
  AtRecord(Field *field, my_ptrdiff_t offset);
  ~AtRecord();

 private:
  Field *field_;
  my_ptrdiff_t offset_;
};

}  // namespace fron

#endif
