/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: OPTIMIZE TABLE, which consolidates the indexes one after the other while others write.
   With frondb_optimize_mode=copy the server calls ALTER TABLE .. FORCE instead. */

#include "engine/server.h"
#include "handler/ha_frondb.h"

#include <key.h>
#include <sql_error.h>

#include <mysqld_error.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "engine/db.h"
#include "engine/errors.h"
#include "engine/progress.h"
#include "handler/optimize_variables.h"

using namespace fron;

namespace {

/** The index that is optimized, for the progress of the statement. */
struct Progress {
  THD *thd;
  size_t number, count;
  int percent;
};

int32_t report(void *of, const char *tree, uint64_t done, uint64_t leaves) {
  auto *progress = static_cast<Progress *>(of);
  int percent = leaves ? int(done * 100 / leaves) : 100;
  if (percent != progress->percent) {
    progress->percent = percent;
    char text[100];
    snprintf(text, sizeof text, "Optimization of index %zu of %zu about %d%% done", progress->number, progress->count,
             percent);
    // At most 101 texts for each combination of an index's number and the number of indexes.
    show_in_processlist(progress->thd, text);
  }
  return report_progress(progress->thd, tree, done, leaves);
}

uint64_t value_of(const Stats &stats, const char *name) {
  uint64_t value = 0;
  Error error = frondb_stats_find(stats.get(), name, &value);
  return error ? 0 : value;
}

void note(THD *thd, const std::string &what) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_UNKNOWN_ERROR, "FronDB: %s", what.c_str());
}

/** Returns whether rows that were written before a column was dropped may still have its value. A slot of a dropped
    virtual column has no bytes, nor has a slot that was added because a VARCHAR got longer (ddl/columns.cc). */
bool has_dropped_columns(const Layout &layout) {
  auto takes_space = [](const Slot &slot) { return slot.field == Slot::GONE && (slot.prefix || slot.bytes); };
  return std::any_of(layout.begin(), layout.end(), takes_space);
}

}  // namespace

/** Collects the indexes that the session's variables select, the tree of rows first; MAX_KEY is the hidden primary
    key. */
int ha_frondb::indexes_to_optimize(THD *thd, std::vector<uint> *indexes) const {
  const char *only = session_optimize_index(thd);
  auto add = [&](uint k) {
    if (!*only || is_same_identifier(only, k == MAX_KEY ? "" : table->key_info[k].name.str))
      indexes->push_back(k);
  };
  add(share_->has_hidden_key ? uint(MAX_KEY) : table->s->primary_key);
  for (uint k = 0; k < table->s->keys; k++)
    if (!is_primary(k)) add(k);
  if (!indexes->empty()) return 0;
  my_error(ER_KEY_DOES_NOT_EXISTS, MYF(0), only, table->s->table_name.str);
  return HA_ADMIN_FAILED;
}

int ha_frondb::optimize(THD *thd, HA_CHECK_OPT *) {
  if (session_optimizes_by_copy(thd)) return HA_ADMIN_TRY_ALTER;
  share_keeper_.begin(table);
  std::vector<uint> indexes;
  if (int error = indexes_to_optimize(thd, &indexes)) return error;
  const char *before = thd_proc_info(thd, "Optimizing");
  thd_progress_init(thd, uint(indexes.size()));
  int result = guarded([&] {
    for (size_t i = 0; i < indexes.size(); i++) {
      Progress progress = {thd, i + 1, indexes.size(), -1};
      if (int error = optimize_index(thd, indexes[i], report, &progress)) return error;
      thd_progress_next_stage(thd);
    }
    if (has_dropped_columns(share_->record.form.layout))
      note(thd, "rows keep the space of dropped columns; ALTER TABLE .. FORCE frees it");
    return HA_ADMIN_OK;
  });
  thd_progress_end(thd);
  thd_proc_info(thd, before);
  if (result == HA_ERR_OUT_OF_MEM) print_error(result, MYF(0));
  // Do not return HA_ADMIN_ALREADY_DONE: for a partition it would end the statement before the other partitions.
  return result == HA_ADMIN_OK ? HA_ADMIN_OK : HA_ADMIN_FAILED;
}

/** Optimizes an index. Errors are reported. */
int ha_frondb::optimize_index(THD *thd, uint index, frondb_progress progress, void *data) {
  frondb_tree *tree = share_->indexes[index == MAX_KEY ? 0 : tree_of(index)].tree.get();
  Stats counts;
  if (Error error = frondb_tree_optimize(tree, session_optimize_fraction(thd), session_optimize_throttle(thd), progress,
                                         data, counts.out())) {
    print_error(ha_error(error), MYF(0));
    return HA_ADMIN_FAILED;
  }
  auto leaves = [&](uint64_t n) {
    return std::to_string(n) + (n == 1 ? " leaf" : " leaves") + " of index " + name_of(table, index);
  };
  if (uint64_t held = value_of(counts, "held"))
    note(thd, "an open snapshot can see deleted rows, which stay in " + leaves(held));
  if (uint64_t failed = value_of(counts, "failed")) {
    std::string what = leaves(failed) + " could not be consolidated, and everything else is done. ";
    // The first line of the text names the keys, file and offset of the damage.
    std::string why = frondb_stats_text(counts.get());
    what += why.substr(0, why.find('\n'));
    what += ". CHECK TABLE lists all damage; restore a backup, or save the rest with frondb salvage";
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "FronDB: %s", what.c_str());
  }
  return HA_ADMIN_OK;
}
