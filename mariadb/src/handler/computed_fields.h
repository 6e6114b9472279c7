/* SPDX-License-Identifier: GPL-2.0-only

   Generated fields of an index that are in no entry and no row. The server computes them in its own record only, and
   not for a read of the index alone; where it merges partitions it would compare those of another row. */

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
  /** Computes the fields of an index in the record of a row that is complete except for them. The bytes of blobs
      stay here until the next call. */
  void fill(TABLE *table, const Index &index, uchar *record);

 private:
  std::vector<std::string> blobs_;
};

}  // namespace fron

#endif
