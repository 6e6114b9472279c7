/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/copied_parents.h. */

#include "foreign/copied_parents.h"

#include <algorithm>

#include "codec/entry.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "foreign/binding.h"
#include "foreign/text.h"
#include "foreign/trees.h"

namespace fron {
namespace {

bool keeps_values(const PartShape &before, const PartShape &after) {
  return before.matches(after) && before.length <= after.length;
}

}  // namespace

int CopiedParents::open(THD *thd, const ForeignKey &key) {
  if (thd_sql_command(thd) != SQLCOM_ALTER_TABLE || thd->lex->ignore) return 0;
  std::string table = altered_table(thd);
  Definition before;
  BindingFault fault;
  if (!before.open(thd, table) || !bind_side(before.table(), true, key.referenced, &key.child_side.parts, &side_, &fault)) return 0;
  const std::vector<PartShape> &was = side_.parts, &is = key.parent_side.parts;
  if (!std::equal(was.begin(), was.end(), is.begin(), is.end(), keeps_values)) return 0;
  return open_index(table, side_.index, &tree_);
}

int CopiedParents::find(const ColumnKey &columns, const std::vector<uchar> &image, bool *found) const {
  *found = false;
  std::string prefix;
  if (!columns.encode_as(image, side_.parts, &prefix)) return 0;
  PrefixRange range(prefix);
  Cursor cursor;
  if (Error error = frondb_tree_cursor(tree_.get(), range.from(), range.to(), nullptr, cursor.out())) return ha_error(error);
  for (;;) {
    if (Error error = frondb_cursor_next(cursor.get(), found)) return ha_error(error);
    if (!*found || side_.current.empty()) return 0;
    frondb_slice key, value;
    if (Error error = frondb_cursor_key(cursor.get(), &key)) return ha_error(error);
    if (Error error = frondb_cursor_value(cursor.get(), &value)) return ha_error(error);
    if (is_current(side_, key, value)) return 0;
  }
}

}  // namespace fron
