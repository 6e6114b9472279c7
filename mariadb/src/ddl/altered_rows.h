/* SPDX-License-Identifier: GPL-2.0-only

   The rows of a table as an ALTER leaves them: decoded with the altered definition, checked, and encoded as entries of
   the trees that are built. Uses record[0] of the altered TABLE. Used only by the ALTER's thread. */

#ifndef FRONDB_DDL_ALTERED_ROWS_H
#define FRONDB_DDL_ALTERED_ROWS_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <string_view>
#include <vector>

#include "ddl/alter_plan.h"
#include "ddl/index_build.h"

namespace fron {

class AlteredRows : public BuiltRows {
 public:
  AlteredRows(THD *thd, TABLE *altered, const IndexBuild &build, const AlterPlan &plan);

  int decode(std::string_view primary, std::string_view row, bool is_first) override;
  bool entry(size_t index, std::string *key, std::string *value) override;
  int report_duplicate(size_t index) override;

  /** Reports a duplicate that the load has found: two rows have an entry with this key. `rows` is the table's tree of
      rows, and `at` the snapshot at which the load has read it. */
  int report_loaded_twice(size_t index, std::string_view key, frondb_tree *rows, frondb_snapshot *at);
  /** Returns the error for a row that cannot be decoded. */
  int damaged() const;

 private:
  int check_nulls(std::string_view row, bool is_first);
  int compute_virtual();
  void encode_key(const Index &index, KEY *info, std::string *to);

  THD *thd_;
  TABLE *altered_;
  const IndexBuild &build_;
  bool rebuilds_, converts_null_;
  /** Whether the server gets the row's number for errors of virtual columns. In a non-strict mode these errors are
      warnings, for which InnoDB reports row 0. */
  bool names_rows_;
  /** A column that becomes NOT NULL, and its slot. */
  struct NotNull {
    size_t slot;
    Field *field;
    /** Whether the decoded row has a NULL in the column. */
    bool is_null = false;
  };
  std::vector<NotNull> not_null_;
  /** Virtual fields of the indexes. */
  std::vector<Field *> virtual_;
  std::vector<uchar> image_;
  std::string primary_;
  ulong rows_ = 0;
};

}  // namespace fron

#endif
