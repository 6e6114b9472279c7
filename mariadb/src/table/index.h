/* SPDX-License-Identifier: GPL-2.0-only

   An index of a table: its tree, the codec of its keys, and which fields its entries hold.

     primary tree     key: the encoded primary key, or 8 bytes of a hidden one; value: the row
     index tree       key: the encoded index key, and behind it the primary one
     unique index     key: the encoded index key alone, if no part of it is NULL
                      value of both: length of the primary key, the key itself in a unique index,
                      and those fields of both keys that do not come back from the keys, for reads of
                      the index alone; in a clustering index the row */

#ifndef FRONDB_TABLE_INDEX_H
#define FRONDB_TABLE_INDEX_H

#include <my_global.h>
#include <sql_class.h>

#include <vector>

#include "codec/key.h"
#include "codec/layout.h"
#include "codec/row.h"
#include "engine/api.h"

namespace fron {

/** Whether the rows of a table have a hidden key, since its definition has no primary one. */
inline bool has_hidden_key(const TABLE *table) { return table->s->primary_key >= MAX_KEY; }

/** The primary key; null if it is hidden. */
inline const KEY *primary_key_of(const TABLE *table) {
  return has_hidden_key(table) ? nullptr : &table->key_info[table->s->primary_key];
}

/** Number of an index's tree among those of its table; the primary one is first. */
inline uint tree_of(const TABLE *table, uint index) {
  uint primary = table->s->primary_key;
  return index == primary ? 0 : has_hidden_key(table) || index < primary ? index + 1 : index;
}

/** An index as handlers use it. */
struct Index {
  Tree tree;
  KeyCodec codec;
  /** Of its key and the primary one; what an entry holds for reads of the index alone, because it cannot be
      told from the keys. */
  Fields covered;
  bool is_unique = false;
  /** Entries hold the whole row in place of the fields covered. */
  bool is_clustering = false;
  /** An entry has all parts of the key; one that is shortened is in no entry. */
  bool has_all_parts = true;
  /** An entry is enough for whoever reads by the index alone. Not where partitions are merged in its order: the
      server compares all parts of the key. */
  bool is_enough = true;
  /** Of a table whose partitions are merged in its order: an entry has generated fields of the key that no row
      has, which the server does not compute in the records that it merges. */
  bool fills_generated = false;
  /** Of such a table, or of a clustering key: a generated field of the key that no entry has whole, and the bytes
      that the key has of it. */
  struct Computed {
    uint field;
    uint length;
  };
  std::vector<Computed> computed;

  /** Fills in what the definition says of an index of a table whose rows have this layout. */
  void describe(const TABLE *table, const KEY *key, const Layout &layout);

 private:
  void describe_generated(const TABLE *table, const KEY *key);
};

}  // namespace fron

#endif
