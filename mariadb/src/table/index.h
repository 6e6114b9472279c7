/* SPDX-License-Identifier: GPL-2.0-only

   An index of a table: its tree, the codec of its keys, and the fields that its entries contain.

     primary tree     key: the encoded primary key, or 8 bytes of a hidden one; value: the row
     index tree       key: the encoded index key, then the primary key
     unique index     key: the encoded index key alone, if no part of it is NULL
                      value of both: length of the primary key; the primary key, unless the entry's
                      key has it; and the fields of both keys that cannot be decoded from the keys,
                      for reads of the index alone, or in a clustering index the row */

#ifndef FRONDB_TABLE_INDEX_H
#define FRONDB_TABLE_INDEX_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "codec/key.h"
#include "codec/layout.h"
#include "codec/row.h"
#include "engine/api.h"

namespace fron {

/** Returns whether the rows of a table have a hidden key, because its definition has no primary key. */
inline bool has_hidden_key(const TABLE *table) { return table->s->primary_key >= MAX_KEY; }

/** Returns the primary key; null if it is hidden. */
inline const KEY *primary_key_of(const TABLE *table) {
  return has_hidden_key(table) ? nullptr : &table->key_info[table->s->primary_key];
}

/** Returns the number of an index's tree among the trees of its table; the primary tree is first. */
inline uint tree_of(const TABLE *table, uint index) {
  uint primary = table->s->primary_key;
  return index == primary ? 0 : has_hidden_key(table) || index < primary ? index + 1 : index;
}

/** Returns the name of an index in a message. MAX_KEY stands for the hidden primary key. */
inline const char *name_of(const TABLE *table, uint index) {
  return index == MAX_KEY ? "the hidden primary key" : table->key_info[index].name.str;
}

/** An index as handlers use it. */
struct Index {
  Tree tree;
  KeyCodec codec;
  /** Fields of the index and of the primary key that cannot be decoded from the keys: an entry stores them for
      index-only reads. */
  Fields covered;
  /** For each field of `covered`, whether it was widened (codec/row.h); empty if none was. */
  std::vector<bool> widened;
  bool is_unique = false;
  /** Whether entries hold the whole row instead of `covered`. */
  bool is_clustering = false;
  /** Whether an entry has all parts of the key; false if a part is only a prefix of its field, which an entry does not
      store completely. */
  bool has_all_parts = true;
  /** Whether an entry suffices for an index-only read. False for some keys of partitioned tables, where the server
      compares all parts of the key to merge the partitions. */
  bool is_enough = true;
  /** In a partitioned table: whether an entry has virtual fields of the key, which no row has and which the server does
      not compute in the records that it merges. */
  bool fills_generated = false;
  /** A virtual field of the key whose value cannot be read from an entry, so the handler computes it (ComputedFields).
      `length`: the maximum number of bytes of the field that the key has. Used for partitioned tables and clustering
      indexes only. */
  struct Computed {
    uint field;
    uint length;
  };
  std::vector<Computed> computed;

  /** Fills everything except the tree from the definition of an index, for a table whose rows have this layout. */
  void describe(const TABLE *table, const KEY *key, const Layout &layout);

  /** Makes the value of an entry whose own key parts are already in `key`. If no other row may have the key
      (`is_unique`), the value gets the primary key; otherwise it is appended to `key`. */
  void finish_entry(const TABLE *table, const Layout &layout, const uchar *record, const std::string &primary, bool is_unique,
                    std::string *key, std::string *value) const;

 private:
  void describe_generated(const TABLE *table, const KEY *key);
};

}  // namespace fron

#endif
