/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/exchange.h. The server itself compares columns and keys, but finds keys by name, in any order, and ignores
   the options of keys. So the description has the keys in their order, and whether each is clustering. */

#include "ddl/exchange.h"

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include "table/options.h"

namespace fron {

std::string tree_contents(const TABLE *table) {
  std::string all;
  for (uint k = 0; k < table->s->keys; k++) {
    const KEY &key = table->key_info[k];
    all.append(key.name.str, key.name.length).push_back('\0');
    all.push_back(is_clustering(key) ? 'c' : '-');
  }
  for (uint i = 0; i < table->s->fields; i++) all.push_back(table->field[i]->stored_in_db() ? 's' : 'v');
  return all;
}

}  // namespace fron
