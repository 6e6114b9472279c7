/* SPDX-License-Identifier: GPL-2.0-only

   Tables that take the place of a partition, or of another table: trees keep what they hold, and another definition
   reads it. */

#ifndef FRONDB_DDL_EXCHANGE_H
#define FRONDB_DDL_EXCHANGE_H

#include <string>

struct TABLE;

namespace fron {

/** What of a definition says what is in which tree: two tables may have each other's trees if it is the same. */
std::string tree_contents(const TABLE *table);

}  // namespace fron

#endif
