/* SPDX-License-Identifier: GPL-2.0-only

   Rows of the server as values of the engine.

     | fields (varint) | NULL bits | field | field | ...

   Fields are in the order of the table's slots (codec/layout.h), each as Field::pack() writes it. NULL values and
   virtual generated columns take no space. Slots of dropped columns are NULL in new rows. The count of slots comes
   first: a row that was written before columns were added ends early, and these columns have the defaults that were
   valid when they were added, which the dictionary keeps. */

#ifndef FRONDB_CODEC_ROW_H
#define FRONDB_CODEC_ROW_H

#include <my_global.h>

#include <string>
#include <string_view>
#include <vector>

#include "codec/layout.h"

struct TABLE;
class Field;
typedef struct st_key KEY;

namespace fron {

/** The longest value that the engine accepts (frondb.h): bytes of a stored row, including BLOBs. */
constexpr size_t ROW_BYTES_MAX = 64 << 20;

/** Fields of a table by their numbers, in the order of their slots. */
using Fields = std::vector<uint>;

/** The fields of a table that a statement wants, and how to skip the bytes of other fields. */
struct Wanted {
  /** For each field, whether it is wanted; empty if all are. Bytes instead of bits, for faster decoding. */
  std::vector<uint8_t> fields;
  /** For each field, the result of describe_bytes(); empty if all are wanted. */
  std::vector<Slot> others;
  /** Number of slots of a row up to the last wanted field: the rest of the row is not read. */
  size_t slots = SIZE_MAX;
  /** Whether a NULL in a field that cannot be NULL leaves the field as it is; otherwise the row counts as damaged. */
  bool passes_odd_null = false;

  bool has(uint field) const { return fields.empty() || fields[field]; }
};

/** Completes a selection whose `fields` are set: how to skip the other fields, and where reading of a row may end. */
void pass_others(const TABLE *table, const Layout &layout, Wanted *wanted);

/** Appends the row in `record`. Unwanted fields are omitted; they must not be wanted when the row is read. */
void pack_row(const TABLE *table, const Layout &layout, const uchar *record, std::string *to,
              const Wanted &wanted = {});

/** Returns whether a row with this form has a NULL in the slot. False if the row is damaged. */
bool is_null_in(const RowForm &form, std::string_view row, size_t slot);

/** Fills the wanted fields of `record` from a row. Blobs point into `row`; blobs of fields that were added after the
    row was written point into the form's defaults. Returns false if the part of the row that is read is damaged; a NULL
    in a field that cannot be NULL is damage too, unless Wanted::passes_odd_null is set. */
bool unpack_row(const TABLE *table, const RowForm &form, std::string_view row, uchar *record,
                const Wanted &wanted = {});

/** Makes the defaults of a table whose layout has new slots at the end. Older slots keep their defaults; the `added`
    fields get the defaults of the definition, with expressions evaluated now. Uses record[0]. Returns false if the
    old defaults are damaged. */
bool pack_defaults(TABLE *table, const std::vector<Field *> &added, RowForm *form);

/** Records in `slot` how to skip the field's bytes in a row. */
void describe_bytes(const Field *field, Slot *slot);

/** Packs and unpacks a list of fields: the covered fields of an index entry, for index-only reads. `widened` says for
    each field whether it is a VARCHAR that was widened beyond 255 bytes, whose entries keep their form; empty if none
    was. The length of such a value takes one byte up to 254; otherwise 255 comes first, then the length in two
    bytes. */
void pack_fields(const TABLE *table, const Fields &fields, const std::vector<bool> &widened, const uchar *record,
                 std::string *to);
bool unpack_fields(const TABLE *table, const Fields &fields, const std::vector<bool> &widened, std::string_view bytes,
                   uchar *record);

/** The longest VARCHAR whose length takes one byte, and the longest whose entries keep their form when it is
    widened. */
constexpr uint SHORT_VARCHAR = 255, ESCAPED_VARCHAR = 254;

/** Returns whether an update changes no stored field. Compares only if `after` is record[0] and comes first in
    memory; otherwise false. */
bool is_same_row(const TABLE *table, const uchar *before, const uchar *after);

/** Makes the key image of the row in `record`, of `length` bytes. Corrects BIT fields, which key_copy() always takes
    from the first record. */
void copy_key(TABLE *table, uint index, const uchar *record, uint length, uchar *image);
void copy_columns(TABLE *table, KEY *key, const uchar *record, uint length, uchar *image);

/** While the object exists, the field points into another record of the table. */
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
