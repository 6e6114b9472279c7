/* SPDX-License-Identifier: GPL-2.0-only

   Entries for indexes that an ALTER is building, encoded with the fields of one handler's TABLE, and the
   notification of the build about each row that a writer writes. */

#ifndef FRONDB_HANDLER_BUILT_ENTRIES_H
#define FRONDB_HANDLER_BUILT_ENTRIES_H

#include <my_global.h>
#include <sql_class.h>

#include <memory>
#include <string>
#include <vector>

#include "ddl/index_build.h"
#include "handler/row_encoder.h"

namespace fron {

class BuiltEntries {
 public:
  void open(RowEncoder *encoder) { encoder_ = encoder; }
  /** From now on, entries are those of this build. */
  void use(const std::shared_ptr<IndexBuild> &build);
  /** Key and value of a row's entry. Returns whether no other row may have the key. */
  bool entry(const IndexBuild &build, size_t index, const uchar *record, const std::string &primary, std::string *key,
             std::string *value);
  /** Notifies the build of a write to a row. `before` is null for an insert, `after` for a delete. Returns 0 or an
      HA_ERR_ number. */
  int notify(const std::shared_ptr<IndexBuild> &build, frondb_txn *txn, const uchar *before,
             const std::string &primary_before, const uchar *after, const std::string &primary_after);

 private:
  RowEncoder *encoder_ = nullptr;
  std::shared_ptr<IndexBuild> of_;
  std::vector<std::vector<KEY_PART_INFO>> parts_;
  std::vector<KEY> keys_;
  std::vector<uchar> image_;
};

}  // namespace fron

#endif
