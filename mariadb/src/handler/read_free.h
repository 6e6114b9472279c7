/* SPDX-License-Identifier: GPL-2.0-only

   Read-free replication: the reads that a replica can omit while it applies row events.

     the primary's row event           | before image | after image |
     ordinary replica                  read the row by the before image's key, then write
     frondb_rpl_lookup_rows = OFF      take the before image as the row, then write
     frondb_rpl_unique_checks = OFF    write new keys without checking whether they exist

   The writes are the same as on an ordinary replica and lock the same keys: every write of a row locks its primary
   key.

   Invariant: nothing is skipped unless the event has all columns of the table as they are stored here, and no part of
   the server needs the row that is stored, or the error that a check would return. Otherwise the replica works as
   usual, without a message. Each variable is a plain global: while it is ON, it costs one load per row. */

#ifndef FRONDB_HANDLER_READ_FREE_H
#define FRONDB_HANDLER_READ_FREE_H

#include "engine/system_variables.h"

#include <cstdint>
#include <optional>

#include <my_global.h>
#include <mysql/plugin.h>

struct TABLE;

namespace fron {

SystemVariables read_free_variables();

/** Return the numbers of rows that were not looked up, and of keys that were written without a check, since the
    server's start. */
uint64_t rpl_lookups_skipped();
uint64_t rpl_unique_checks_skipped();

/** Decides for one open table which reads are skipped. Used by the handler's thread. */
class ReadFree {
 public:
  /** Called when a statement begins: foreign keys may have been added or dropped since the last one. */
  void begin_statement() { has_foreign_keys_.reset(); }

  /** Returns whether the record of the event being applied can be used as the row. */
  bool skips_lookup(TABLE *table);
  /** Returns whether the writes of the event being applied need no check of unique keys. */
  bool skips_unique_checks(TABLE *table);

  static void count_lookup();
  static void count_unique_check();

 private:
  bool applies_to(TABLE *table);
  bool has_foreign_keys(TABLE *table);

  /** Whether the table has foreign keys; empty until the statement needs to know it. */
  std::optional<bool> has_foreign_keys_;
};

}  // namespace fron

#endif
