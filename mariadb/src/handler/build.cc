/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h and ddl/index_build.h. Here: the statement's side of a build. It loads the rows at a snapshot
   into the new indexes, applies the journals of writers, and reports duplicates. */

#include "handler/ha_frondb.h"

#include <key.h>
#include <mysql/service_progress_report.h>

#include <algorithm>

#include "codec/entry.h"
#include "ddl/bulk_load.h"
#include "ddl/index_build.h"
#include "ddl/yielding.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/progress.h"
#include "table/options.h"
#include "txn/connection.h"
#include "txn/prepared_writes.h"
#include "txn/session_variables.h"

using namespace fron;

namespace {

/** Rows between two checks of KILL and reports of progress. */
constexpr size_t ROWS_A_STEP = 128;
constexpr size_t BYTES_A_STEP = 256 << 10;

/** Shows progress for as long as it lives. */
class Progress {
 public:
  Progress(THD *thd, uint stages) : thd_(thd) { thd_progress_init(thd, stages); }
  ~Progress() { thd_progress_end(thd_); }

 private:
  THD *thd_;
};

}  // namespace

// --- The thread that builds ---

int ha_frondb::begin_build(TABLE *altered, const std::shared_ptr<IndexBuild> &build, const std::vector<size_t> &places,
                           TableRecord *record, Snapshot *snapshot) {
  std::vector<TreeOptions> options;
  for (const BuiltIndex &built : build->indexes) {
    TreeOptions one;
    if (Error error = make_tree_options(altered->s, &altered->key_info[built.number], false, &one)) return ha_error(error);
    options.push_back(std::move(one));
  }
  if (Error error = build->make_trees(options)) return ha_error(error);
  for (size_t i = 0; i < places.size(); i++) record->indexes[places[i]].number = build->indexes[i].record.number;
  frondb_tree *rows = share_->indexes[0].tree.get();
  uint64_t wait = session_lock_timeout_millis(ha_thd());
  // Writers are locked out, so there is no transaction to wait for, except one that was prepared by XA and has lost its
  // connection. Such a transaction does not end by itself, and all other statements wait for this one.
  if (int error = check_prepared(rows)) return error;
  Error error = snapshot_behind_writers({rows}, wait, snapshot);
  if (error && error.kind() == FRONDB_BUSY) return refuse_for_prepared();
  if (error) return ha_error(error);
  share_->set_build(build);
  may_crash_at("build: begun");
  return 0;
}

int ha_frondb::put_rows(IndexBuild &build, frondb_snapshot *at, Load *load) {
  THD *thd = ha_thd();
  std::string primary, key, value;
  Cursor cursor;
  frondb_tree *rows_tree = share_->indexes[0].tree.get();
  frondb_estimate estimate;
  if (Error error = frondb_tree_estimate(rows_tree, {}, nullptr, &estimate)) return ha_error(error);
  if (Error error = cursor.open(rows_tree, {}, at)) return ha_error(error);
  Yielding yielding(*share_->rows);
  for (uint64_t done = 0;;) {
    if (thd_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    frondb_rows rows;
    if (Error error = cursor.read(ROWS_A_STEP, BYTES_A_STEP, &rows)) return ha_error(error);
    if (rows.count == 0) return 0;
    yielding.passed(rows.count);
    for (size_t i = 0; i < rows.count; i++) {
      if (!unpack_row(table, share_->record.form, view(rows.entries[i].value), table->record[0])) return encoder_.damaged(0);
      primary.assign(view(rows.entries[i].key));
      for (size_t k = 0; k < build.indexes.size(); k++) {
        built_.entry(build, k, table->record[0], primary, &key, &value);
        if (Error error = load->put(build.indexes[k].index.tree.get(), key, value)) return ha_error(error);
      }
    }
    done += rows.count;
    thd_progress_report(thd, done, std::max<uint64_t>(done, estimate.entries));
  }
}

int ha_frondb::load_rows(IndexBuild &build, frondb_snapshot *at, bool *has_duplicates) {
  THD *thd = ha_thd();
  Load load;
  if (Error error = load.begin(FRONDB_NO_SYNC)) return ha_error(error);
  if (int error = put_rows(build, at, &load)) return error;
  thd_progress_next_stage(thd);
  return ha_error(load.finish(report_progress, thd, has_duplicates));
}

int ha_frondb::build_indexes(const std::shared_ptr<IndexBuild> &build, frondb_snapshot *at, TABLE *altered) {
  THD *thd = ha_thd();
  Progress progress(thd, 3);
  built_.use(build);
  bool has_duplicates;
  if (int error = load_rows(*build, at, &has_duplicates)) return error;
  may_crash_at("build: loaded");
  if (has_duplicates) return find_duplicate(*build, at, altered);
  thd_progress_next_stage(thd);
  Duplicate duplicate;
  bool found = false;
  auto killed = [thd] { return thd_killed(thd) != 0; };
  if (Error error = build->catch_up(killed, session_lock_timeout_millis(thd), &duplicate, &found)) return ha_error(error);
  if (killed()) return HA_ERR_ABORTED_BY_USER;
  if (!found) return 0;
  return report_duplicate(altered, build->indexes[duplicate.index].number, duplicate.primary, nullptr);
}

int ha_frondb::finish_build(IndexBuild &build, TABLE *altered) {
  Duplicate duplicate;
  bool found = false;
  // All other statements on the table wait for this one, which is nearly done: ignore KILL.
  Error error = build.finish([] { return false; }, session_lock_timeout_millis(ha_thd()), &duplicate, &found);
  if (error && error.kind() == FRONDB_BUSY) return refuse_for_prepared();
  if (error) return ha_error(error);
  if (!found) return 0;
  return report_duplicate(altered, build.indexes[duplicate.index].number, duplicate.primary, nullptr);
}

// --- Duplicates ---

/** Searches for a row whose key in a unique index belongs to another row, since the load reports only how many
    duplicates there are. */
int ha_frondb::find_duplicate(IndexBuild &build, frondb_snapshot *at, TABLE *altered) {
  std::string primary, key, value;
  Cursor cursor;
  if (Error error = cursor.open(share_->indexes[0].tree.get(), {}, at)) return ha_error(error);
  for (;;) {
    if (thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
    frondb_rows rows;
    if (Error error = cursor.read(ROWS_A_STEP, BYTES_A_STEP, &rows)) return ha_error(error);
    if (rows.count == 0) return ha_internal("duplicate keys were counted, but a second read of the rows found none");
    for (size_t i = 0; i < rows.count; i++) {
      if (!unpack_row(table, share_->record.form, view(rows.entries[i].value), table->record[0])) return encoder_.damaged(0);
      primary.assign(view(rows.entries[i].key));
      for (size_t k = 0; k < build.indexes.size(); k++) {
        if (!built_.entry(build, k, table->record[0], primary, &key, &value)) continue;
        bool is_there;
        frondb_tree *tree = build.indexes[k].index.tree.get();
        if (Error error = read_key(tree, key, nullptr, buffer_, &is_there)) return ha_error(error);
        if (!is_there || buffer_.value() == value) continue;
        return report_duplicate(altered, build.indexes[k].number, primary, at);
      }
    }
  }
}

/** Reports a row whose key another row has too. */
int ha_frondb::report_duplicate(TABLE *altered, uint number, std::string_view primary, frondb_snapshot *at) {
  KEY *key = &altered->key_info[number];
  bool found;
  Error error = read_key(share_->indexes[0].tree.get(), primary, at, buffer_, &found);
  if (!error && found && unpack_row(altered, share_->record.form, buffer_.value(), altered->record[0]))
    print_keydup_error(altered, key, MYF(0));
  else
    my_error(ER_DUP_UNKNOWN_IN_INDEX, MYF(0), key->name.str);
  return HA_ERR_FOUND_DUPP_KEY;
}
