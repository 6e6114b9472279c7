/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/index_build.h. */

#include "ddl/index_build.h"

#include <algorithm>

#include "ddl/tree_writer.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "table/options.h"
#include "txn/prepared_writes.h"

namespace fron {
namespace {

/** When a round, which applies one generation of the journal, has applied fewer changes than this, the rest is left to
    finish(), while writers are locked out. */
constexpr uint64_t CHANGES_LEFT = 4096;
constexpr int ROUNDS_MAX = 8;
/** Milliseconds between two checks of KILL while waiting for writers. */
constexpr uint64_t SLICE_MILLIS = 100;
/** Number of changes between two checks of KILL. */
constexpr uint64_t CHANGES_A_STEP = 1024;

/** Returns whether a wait for writers ended because a writer has not finished. FRONDB_BUSY counts too: with the
    binary log every writer is prepared for a moment before it commits. */
bool is_late_writer(const Error &error) {
  frondb_kind kind = error.kind();
  return kind == FRONDB_LOCK_TIMEOUT || kind == FRONDB_DEADLOCK || kind == FRONDB_BUSY;
}

}  // namespace

// --- Trees ---

IndexBuild::IndexBuild(const Share &share, const TABLE *table, const TABLE *altered, const AlterPlan &plan,
                       const RowForm &form, uint32_t *next_index)
    : table_(share.record.number), next_index_(next_index), form_(form), form_before_(share.record.form),
      journal_([this](std::string *name, Tree *tree) { return make_journal_tree(name, tree); }) {
  // Rewritten rows have the columns in their order.
  if (!plan.rebuilds) layout_ = form.layout;
  if (plan.rebuilds) add(altered, has_hidden_key(altered) ? MAX_KEY : altered->s->primary_key, true);
  for (uint number : plan.built) add(altered, number, false);
  want(table, altered, plan);
  wanted_.passes_odd_null = plan.converts_null;
}

void IndexBuild::add(const TABLE *altered, uint number, bool is_rows) {
  indexes.emplace_back();
  BuiltIndex &built = indexes.back();
  built.number = number;
  built.is_rows = is_rows;
  if (number == MAX_KEY) return;
  built.record.name = altered->key_info[number].name.str;
  built.index.describe(altered, &altered->key_info[number], layout_);
}

/** Determines which fields of rows are wanted: the fields of the entries, and the fields that are checked. */
void IndexBuild::want(const TABLE *table, const TABLE *altered, const AlterPlan &plan) {
  bool wants_all = plan.rebuilds;
  wanted_.fields.assign(altered->s->fields, 0);
  wanted_of_writers_.fields.assign(table->s->fields, 0);
  for (const BuiltIndex &built : indexes) {
    if (built.number == MAX_KEY || built.index.is_clustering || has_virtual_part(altered, altered->key_info[built.number])) {
      wants_all = true;
      break;
    }
    const KEY &key = altered->key_info[built.number];
    for (uint i = 0; i < key.user_defined_key_parts; i++) wanted_.fields[key.key_part[i].fieldnr - 1] = 1;
    for (uint field : built.index.covered) wanted_.fields[field] = 1;
  }
  if (wants_all) {
    wanted_ = wanted_of_writers_ = {};
    return;
  }
  for (uint field : plan.not_null) wanted_.fields[field] = 1;
  for (uint i = 0; i < altered->s->fields; i++)
    if (wanted_.fields[i] && plan.old[i] != Slot::GONE) wanted_of_writers_.fields[plan.old[i]] = 1;
  pass_others(altered, form_.layout, &wanted_);
}

Error IndexBuild::make_tree(frondb_tree_options *options, std::string *name, uint32_t *number, Tree *tree) {
  for (;;) {
    *number = (*next_index_)++;
    *name = Dictionary::tree_name(table_, *number);
    Error error = create_tree(*name, options, tree);
    // The name exists if an abandoned build used the number and a transaction still needs its tree.
    if (!error || error.kind() != FRONDB_EXISTS) return error;
  }
}

Error IndexBuild::make_journal_tree(std::string *name, Tree *tree) {
  TreeOptions options;
  uint32_t number;
  if (Error error = frondb_tree_options_new(options.out())) return error;
  return make_tree(options.get(), name, &number, tree);
}

Error IndexBuild::make_trees(const TABLE *altered) {
  for (BuiltIndex &built : indexes) {
    const KEY *key = built.number == MAX_KEY ? nullptr : &altered->key_info[built.number];
    TreeOptions options;
    std::string name;
    if (Error error = make_tree_options(altered->s, key, built.is_rows, &options)) return error;
    if (Error error = make_tree(options.get(), &name, &built.record.number, &built.index.tree)) return error;
  }
  return journal_.begin();
}

// --- Writers ---

int IndexBuild::note(frondb_txn *txn, const TABLE *table, const Layout &layout, const uchar *before,
                     const std::string &primary_before, const uchar *after, const std::string &primary_after) {
  std::string row_before, row_after;
  if (before) pack_row(table, layout, before, &row_before, wanted_of_writers_);
  if (after) pack_row(table, layout, after, &row_after, wanted_of_writers_);
  bool moves = before && after && primary_before != primary_after;
  if (before && after && !moves) {
    if (row_before == row_after) return 0;
    return ha_error(journal_.note(txn, {primary_before, &row_before, &row_after}));
  }
  if (before)
    if (Error error = journal_.note(txn, {primary_before, &row_before, nullptr})) return ha_error(error);
  return after ? ha_error(journal_.note(txn, {primary_after, nullptr, &row_after})) : 0;
}

// --- Catching up ---

int IndexBuild::apply(frondb_snapshot *at, const Killed &killed, BuiltRows *rows, uint64_t *changes) {
  std::vector<TreeWriter> writers;
  for (const BuiltIndex &built : indexes) writers.emplace_back(built.index.tree.get());
  for (TreeWriter &writer : writers)
    if (Error error = writer.begin()) return ha_error(error);
  std::vector<std::string> old_keys(indexes.size()), old_values(indexes.size());
  std::string key, value;
  // Both passes decode both images, because the second pass must know, too, which entries are unchanged.
  auto pass = [&](bool removes) {
    return journal_.each(at, [&](const RowChange &change) {
      if (++*changes % CHANGES_A_STEP == 0 && killed()) return HA_ERR_ABORTED_BY_USER;
      if (change.before) {
        if (int error = rows->decode(change.primary, *change.before, false)) return error;
        for (size_t i = 0; i < indexes.size(); i++) rows->entry(i, &old_keys[i], &old_values[i]);
      }
      if (change.after)
        if (int error = rows->decode(change.primary, *change.after, !removes)) return error;
      for (size_t i = 0; i < indexes.size(); i++) {
        bool is_unique = change.after && rows->entry(i, &key, &value);
        if (change.before && change.after && key == old_keys[i] && value == old_values[i]) continue;
        if (removes && change.before)
          if (Error error = writers[i].remove(old_keys[i])) return ha_error(error);
        if (removes || !change.after) continue;
        bool is_there = false;
        if (is_unique)
          if (Error error = writers[i].has(key, &is_there)) return ha_error(error);
        if (is_there) return rows->report_duplicate(i);
        if (Error error = writers[i].put(key, value, is_unique)) return ha_error(error);
      }
      return 0;
    });
  };
  for (bool removes : {true, false}) {
    *changes = 0;
    if (int error = pass(removes)) return error;
    for (TreeWriter &writer : writers)
      if (Error error = writer.finish()) return ha_error(error);
  }
  return 0;
}

int IndexBuild::catch_up(const Killed &killed, uint64_t wait_millis, BuiltRows *rows) {
  for (int round = 0; round < ROUNDS_MAX; round++) {
    if (Error error = journal_.close()) return ha_error(error);
    Snapshot snapshot;
    for (uint64_t waited = 0; !snapshot; waited += SLICE_MILLIS) {
      if (killed()) return HA_ERR_ABORTED_BY_USER;
      // A writer has not ended in time: leave the rest to finish(), while writers are locked out.
      if (waited >= wait_millis) return 0;
      Error error = snapshot_behind_writers({journal_.oldest()}, SLICE_MILLIS, &snapshot);
      if (error && !is_late_writer(error)) return ha_error(error);
    }
    uint64_t changes;
    if (int error = apply(snapshot.get(), killed, rows, &changes)) return error;
    journal_.oldest_is_done();
    if (changes < CHANGES_LEFT) return 0;
  }
  return 0;
}

int IndexBuild::finish(const Killed &killed, uint64_t wait_millis, BuiltRows *rows) {
  while (!journal_.all_are_done()) {
    Snapshot snapshot;
    // Writers are locked out, so this waits only for a commit in progress, or for an XA transaction that is prepared
    // and has lost its connection.
    Error error = snapshot_behind_writers({journal_.oldest()}, wait_millis, &snapshot);
    if (error && error.kind() == FRONDB_BUSY) return refuse_for_prepared();
    if (error) return ha_error(error);
    uint64_t changes;
    if (int failed = apply(snapshot.get(), killed, rows, &changes)) return failed;
    journal_.oldest_is_done();
  }
  return 0;
}

}  // namespace fron
