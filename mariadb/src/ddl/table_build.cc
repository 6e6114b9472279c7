/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/table_build.h. */

#include "ddl/table_build.h"

#include <mysql/service_progress_report.h>

#include <algorithm>

#include "table/yielding.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/kill.h"
#include "engine/progress.h"
#include "txn/prepared_writes.h"
#include "txn/lock_timeout.h"

namespace fron {
namespace {

/** Number of rows between two checks of KILL and progress reports. */
constexpr size_t ROWS_A_STEP = 128;
constexpr size_t BYTES_A_STEP = 256 << 10;

/** Shows the progress of the statement while the object exists. */
class Progress {
 public:
  Progress(THD *thd, uint stages) : thd_(thd) { thd_progress_init(thd, stages); }
  ~Progress() { thd_progress_end(thd_); }

 private:
  THD *thd_;
};

}  // namespace

TableBuild::TableBuild(THD *thd, Share *share, const TABLE *table, TABLE *altered, const AlterPlan &plan,
                       const RowForm &form, uint32_t *next_index)
    : thd_(thd), share_(share), altered_(altered),
      build_(std::make_shared<IndexBuild>(*share, table, altered, plan, form, next_index)),
      rows_(thd, altered, *build_, plan) {}

int TableBuild::begin() {
  if (Error error = build_->make_trees(altered_)) return ha_error(error);
  frondb_tree *rows = share_->indexes[0].tree.get();
  // Writers are locked out, so there is no transaction to wait for, except one that was prepared by XA and has lost its
  // connection. Such a transaction does not end by itself, and all other statements wait for this one.
  if (int error = check_prepared(rows)) return error;
  Error error = snapshot_behind_writers({rows}, statement_lock_timeout_millis(thd_), &snapshot_);
  if (error && error.kind() == FRONDB_BUSY) return refuse_for_prepared();
  if (error) return ha_error(error);
  share_->set_build(build_);
  may_crash_at("build: begun");
  return 0;
}

int TableBuild::put_rows(Load *load) {
  std::string key, value;
  Cursor cursor;
  frondb_tree *tree = share_->indexes[0].tree.get();
  frondb_estimate estimate;
  if (Error error = frondb_tree_estimate(tree, {}, nullptr, &estimate)) return ha_error(error);
  if (Error error = cursor.open(tree, {}, snapshot_.get())) return ha_error(error);
  Yielding yielding(*share_->rows);
  for (uint64_t done = 0;;) {
    if (is_killed(thd_)) return HA_ERR_ABORTED_BY_USER;
    frondb_rows rows;
    if (Error error = cursor.read(ROWS_A_STEP, BYTES_A_STEP, &rows)) return ha_error(error);
    if (rows.count == 0) return 0;
    yielding.passed(rows.count);
    for (size_t i = 0; i < rows.count; i++) {
      if (int error = rows_.decode(view(rows.entries[i].key), view(rows.entries[i].value), true)) return error;
      for (size_t k = 0; k < build_->indexes.size(); k++) {
        rows_.entry(k, &key, &value);
        if (value.size() > ROW_BYTES_MAX) return HA_ERR_TO_BIG_ROW;
        if (Error error = load->put(build_->indexes[k].index.tree.get(), key, value)) return ha_error(error);
      }
    }
    done += rows.count;
    thd_progress_report(thd_, done, std::max<uint64_t>(done, estimate.entries));
  }
}

int TableBuild::load() {
  Progress progress(thd_, 3);
  Load load;
  bool has_duplicates;
  if (Error error = load.begin(FRONDB_NO_SYNC)) return ha_error(error);
  if (int error = put_rows(&load)) return error;
  thd_progress_next_stage(thd_);
  if (Error error = load.finish(report_progress, thd_, &has_duplicates)) return ha_error(error);
  may_crash_at("build: loaded");
  if (has_duplicates) return report_loaded_twice(&load);
  snapshot_.reset();
  thd_progress_next_stage(thd_);
  return build_->catch_up([this] { return is_killed(thd_); }, statement_lock_timeout_millis(thd_), &rows_);
}

int TableBuild::report_loaded_twice(Load *load) {
  uint64_t number;
  std::string key;
  if (Error error = load->duplicate(&number, &key)) return ha_error(error);
  for (size_t i = 0; i < build_->indexes.size(); i++) {
    uint64_t id;
    if (Error error = frondb_tree_id(build_->indexes[i].index.tree.get(), &id)) return ha_error(error);
    if (id == number) return rows_.report_loaded_twice(i, key, share_->indexes[0].tree.get(), snapshot_.get());
  }
  return ha_internal("a key was loaded twice into a tree that ALTER TABLE does not build");
}

int TableBuild::finish() {
  // All other statements on the table wait for this one, which is nearly finished: ignore KILL.
  return build_->finish([] { return false; }, statement_lock_timeout_millis(thd_), &rows_);
}

void TableBuild::give_up() {
  build_->give_up();
  if (share_->build() == build_) share_->set_build(nullptr);
}

}  // namespace fron
