/* SPDX-License-Identifier: GPL-2.0-only

   Options of tables and indexes in CREATE TABLE, and the session variables for their defaults. The server checks them,
   stores them in the table's definition and fills the structs below.

     COMPRESSION='...'   codec of a table's consolidated data,   frondb_default_compression
                         such as 'zstd:9' or 'aggressive'
     BLOCK_SIZE=n ..     options of its trees that are numbers,  frondb_default_block_size ..
                         also 64K; 0: the library's default
     ENCRYPTED=NO        for definitions of other engines; YES is refused
     ENCRYPTION_KEY_ID, PAGE_COMPRESSED, PAGE_COMPRESSION_LEVEL    InnoDB's: do nothing but warn
     CLUSTERING=YES      for an index: its entries hold the row */

#ifndef FRONDB_TABLE_OPTIONS_H
#define FRONDB_TABLE_OPTIONS_H

#include "engine/api.h"
#include "engine/system_variables.h"

#include <my_global.h>
#include <handler.h>

/** Options of trees that are numbers: field, name in SQL, name in the library, which checks the values. A row makes the
    table option and its session variable frondb_default_FIELD. */
#define SQL_TREE_OPTIONS(X) \
  X(block_size, BLOCK_SIZE, block_bytes) \
  X(fanout, FANOUT, fanout)

/** The server defines the names of these structs, and fills them. */
struct ha_table_option_struct {
  uint compression;
#define NUMBER(field, sql, library) ulonglong field;
  SQL_TREE_OPTIONS(NUMBER)
#undef NUMBER
  uint encrypted;
  ulonglong encryption_key_id;
  bool page_compressed;
  ulonglong page_compression_level;
};

struct ha_index_option_struct {
  bool clustering;
};

namespace fron {

/** The codec that COMPRESSION=zstd, the default, stands for. The library's own `zstd` has a higher level, but SQL has
    had this one since 0.1.0: another level would change the size and the speed of tables. */
inline constexpr char SQL_ZSTD[] = "zstd:1";

/** The options of tables and of indexes, for the handlerton. */
extern ha_create_table_option table_option_list[];
extern ha_create_table_option index_option_list[];

/** Returns the session variables for the defaults. */
SystemVariables table_option_variables();

/** Returns whether the entries of an index hold whole rows. False before the server has parsed its options. */
bool is_clustering(const KEY &key);

/** Makes the options of a new tree of the table; `key` is null for a hidden primary key. */
Error make_tree_options(const TABLE_SHARE *share, const KEY *key, bool is_primary, TreeOptions *options);

/** Returns the first option whose value FronDB refuses: encryption, a number out of range, or a text that is not a
    number. Null if there is none. With IGNORE_BAD_TABLE_OPTIONS, and in threads of a replica, only encryption is
    refused. */
const char *refused_option(const TABLE_SHARE *share);

/** Raises an error if refused_option() finds an option, and returns whether it does. */
bool refuses_options(const TABLE_SHARE *share);

/** Warns, once per statement, of InnoDB's options in a definition, which do nothing in FronDB, and of bad values that
    are not refused. `before` is the former definition, null for a new table. */
void warn_of_options(MYSQL_THD thd, const HA_CREATE_INFO *info, const TABLE_SHARE *share, const TABLE_SHARE *before);

/** Gives a tree of the table the codec and the other changeable options of the table; background work repacks existing
    data. */
Error change_packing(const TABLE_SHARE *share, frondb_tree *tree);

/** Returns whether trees made with the options of both definitions have the same codec and other changeable options. */
bool same_packing(const TABLE_SHARE *a, const TABLE_SHARE *b);

/** Resets the variables for new tables to 0, the default, if a command line or an option file has set them to values
    that no table can have. Called when the plugin starts. */
void correct_defaults();

/** Returns whether trees made with both options have the same values of the options that are fixed when a tree is
    created. */
bool same_fixed_options(const ha_table_option_struct *a, const ha_table_option_struct *b);

}  // namespace fron

#endif
