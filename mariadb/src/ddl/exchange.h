/* SPDX-License-Identifier: GPL-2.0-only

   EXCHANGE PARTITION and CONVERT TABLE: a table replaces a partition, or the reverse. The trees stay unchanged and are
   read with the other definition. */

#ifndef FRONDB_DDL_EXCHANGE_H
#define FRONDB_DDL_EXCHANGE_H

#include <string>

struct TABLE;

namespace fron {

/** Describes the contents of a table's trees. Two tables can exchange their trees if their descriptions are equal. */
std::string tree_contents(const TABLE *table);

}  // namespace fron

#endif
