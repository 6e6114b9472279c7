/* SPDX-License-Identifier: GPL-2.0-only

   Generated fields of an index that neither entries nor rows contain. The server computes such fields only in its own
   record, and not for an index-only read. Where the server merges partitions, it would compare the field values of
   another row. */

#ifndef FRONDB_HANDLER_COMPUTED_FIELDS_H
#define FRONDB_HANDLER_COMPUTED_FIELDS_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "table/index.h"

namespace fron {

class ComputedFields {
 public:
  /** Computes the fields of an index in the record of a row whose other fields are complete. This object keeps the
      bytes of blobs until the next call. */
  void fill(TABLE *table, const Index &index, uchar *record);

 private:
  std::vector<std::string> blobs_;
};

}  // namespace fron

#endif
