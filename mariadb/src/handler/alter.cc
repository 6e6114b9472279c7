/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: ALTER TABLE without a copy of the table.

     check     decides whether the change needs a copy, and whether writers may continue
     prepare   no statement uses the table: creates new trees; from now on writers keep a journal
     main      writers continue: loads the rows into the new trees (ddl/table_build.h)
     commit    no statement uses the table: applies the rest of the journal, then writes one batch of records for all
               partitions

   The table is unchanged until the records are written. After a crash the server calls check_version() to learn which
   of its two definitions is valid. */

#include "handler/ha_frondb.h"

#include <algorithm>

#include "ddl/alter_plan.h"
#include "ddl/refused_indexes.h"
#include "ddl/table_build.h"
#include "dictionary/dictionary.h"
#include "engine/crash_points.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "foreign/addition.h"
#include "ddl/changed_columns.h"
#include "foreign/clauses.h"
#include "foreign/define.h"
#include "table/options.h"
#include "txn/connection.h"
#include "txn/prepared_writes.h"

using namespace fron;

/** The state of an ALTER of one table or partition. Freed by the server. */
class fron::Alteration : public inplace_alter_handler_ctx {
 public:
  explicit Alteration(Share *of) : share(of), change{of->name, of->record} {}

  Share *share;
  AlterPlan plan;
  TableChange change;
  /** Trees of dropped indexes, and of indexes that are rebuilt. */
  std::vector<std::string> dropped;
  /** Builds trees from the rows; null if rows need not be read. */
  std::unique_ptr<TableBuild> build;
  /** Foreign keys that existing rows must have parents for; null if there are none. */
  std::unique_ptr<ForeignKeyAddition> addition;
};

// --- Check ---

enum_alter_inplace_result ha_frondb::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) {
  if (refuses_indexes(altered)) return HA_ALTER_ERROR;
  AlterPlan plan = plan_alter(ha_thd(), table, altered, info, *share_);
  // The server shows the reason to a statement with ALGORITHM=INPLACE or LOCK=NONE.
  if ((info->unsupported_reason = plan.copied_because)) {
    Connection *connection = Connection::of(ha_thd());
    if (connection) connection->copies_dates = copies_values(altered, info) ? ha_thd()->query_id : 0;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  // The server shows this reason to a statement that allows less than a rebuild (ALGORITHM=NOCOPY or INSTANT).
  if (plan.rebuilds) {
    info->unsupported_reason = "rows must be rewritten";
    return HA_ALTER_INPLACE_COPY_NO_LOCK;
  }
  bool reads_rows = plan.reads_rows() || info->handler_flags & ALTER_ADD_FOREIGN_KEY;
  if (reads_rows) info->unsupported_reason = "rows must be read";
  return reads_rows ? HA_ALTER_INPLACE_NOCOPY_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}

bool ha_frondb::can_convert_nocopy(const Field &field, const Column_definition &wanted) const {
  return is_read_as(field, wanted);
}

Compare_keys ha_frondb::compare_key_parts(const Field &before, const Column_definition &after,
                                          const KEY_PART_INFO &part_before, const KEY_PART_INFO &part_after) const {
  // If rows can be read with the new definition, plan_alter() decides whether the index must be rebuilt.
  bool is_other = !before.is_equal(after);
  if (is_other && !is_read_as(before, after)) return Compare_keys::NotEqual;
  if (part_before.length == part_after.length) return Compare_keys::Equal;
  bool is_whole = part_before.length == before.key_length() && part_after.length == after.length;
  return is_whole && is_other ? Compare_keys::EqualButKeyPartLength : Compare_keys::NotEqual;
}

// --- Prepare ---

namespace {

/** Returns whether a more specific error was already reported where it was found. */
bool is_reported(int error) {
  return error == HA_ERR_FOUND_DUPP_KEY || error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_DROP_INDEX_FK ||
         error == HA_ERR_CANNOT_ADD_FOREIGN || error == ALTER_ERROR_REPORTED;
}

/** Makes the list of the altered table's trees: existing trees that stay, and the trees of `built`, which already have
    numbers. Adds the names of existing trees that do not stay to `dropped`. */
int list_trees(const TABLE *table, const TABLE *altered, const Alter_inplace_info *info, const std::vector<BuiltIndex> &built,
               TableRecord *record, std::vector<std::string> *dropped) {
  std::vector<IndexRecord> before;
  before.swap(record->indexes);
  std::vector<bool> stays(before.size());
  // Adds an index: its number in the altered table, its position among the former trees, and its name.
  auto add = [&](uint number, size_t place, const char *name) {
    auto made = std::find_if(built.begin(), built.end(), [number](const BuiltIndex &one) { return one.number == number; });
    if (made == built.end() && place == before.size()) return false;
    if (made == built.end()) stays[place] = true;
    record->indexes.push_back({made == built.end() ? before[place].number : made->record.number, name});
    return true;
  };
  bool is_hidden = has_hidden_key(altered);
  add(is_hidden ? MAX_KEY : altered->s->primary_key, 0, is_hidden ? "" : altered->key_info[altered->s->primary_key].name.str);
  for (uint k = 0; k < altered->s->keys; k++) {
    if (k == altered->s->primary_key) continue;
    const char *name = altered->key_info[k].name.str;
    uint old = is_added(info, name) ? MAX_KEY : index_of_name(table, old_name(info, name));
    if (!add(k, old == MAX_KEY ? before.size() : tree_of(table, old), name))
      return ha_internal("ALTER TABLE keeps an index that FronDB's dictionary does not have");
  }
  for (size_t i = 0; i < before.size(); i++)
    if (!stays[i]) dropped->push_back(Dictionary::tree_name(record->number, before[i].number));
  return 0;
}

}  // namespace

bool ha_frondb::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  int error = guarded([&] { return prepare_alter(altered, info); });
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}

int ha_frondb::prepare_alter(TABLE *altered, Alter_inplace_info *info) {
  warn_of_options(ha_thd(), info->create_info, altered->s, table->s);
  auto alteration = new Alteration(share_);
  if (!alteration) return HA_ERR_OUT_OF_MEM;
  info->handler_ctx = alteration;
  alteration->plan = plan_alter(ha_thd(), table, altered, info, *share_);
  const AlterPlan &plan = alteration->plan;
  if (plan.copied_because) return ha_internal("ALTER TABLE cannot be done in place any more");
  TableRecord &record = alteration->change.record;
  record.definition.assign(reinterpret_cast<const char *>(altered->s->tabledef_version.str),
                           altered->s->tabledef_version.length);
  if (!change_form(table, altered, plan.old, &record.form)) return encoder_.damaged(0);
  if (int error = check_changed_columns(ha_thd(), table, altered, info, plan.old, share_->name)) return error;
  if (int error = prepare_foreign_keys(altered, info, alteration)) return error;
  std::vector<BuiltIndex> none;
  if (plan.reads_rows()) {
    alteration->build =
        std::make_unique<TableBuild>(ha_thd(), share_, table, altered, plan, record.form, &record.next_index);
    if (int error = alteration->build->begin()) return error;
  }
  if (plan.rebuilds) record.form = {};
  else if (!plan.not_null.empty()) record.row_epoch++;
  return list_trees(table, altered, info, alteration->build ? alteration->build->indexes() : none, &record,
                    &alteration->dropped);
}

int ha_frondb::prepare_foreign_keys(TABLE *altered, Alter_inplace_info *info, Alteration *alteration) {
  if (int error = hold_parents(ha_thd(), altered, info->alter_info, share_->name)) return error;
  // Here the change only refuses the statement or finds the new foreign keys. It is computed again at the commit, when
  // no other statement uses the table.
  ForeignKeyChange ignored;
  std::vector<ForeignKeyPtr> added;
  if (int error = define_in_place(ha_thd(), altered, info, share_->name, &ignored, &added)) return error;
  if (added.empty() || !checks_foreign_keys(ha_thd())) return 0;
  // A prepared transaction without a connection may have written rows that were not checked against the foreign keys.
  if (int error = check_prepared(share_->indexes[0].tree.get())) return error;
  alteration->addition = std::make_unique<ForeignKeyAddition>(added);
  alteration->addition->begin();
  return 0;
}

// --- Main ---

bool ha_frondb::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  auto alteration = static_cast<Alteration *>(info->handler_ctx);
  if (!alteration) return false;
  int error = guarded([&] {
    int failed = alteration->build ? alteration->build->load() : 0;
    if (failed || !alteration->addition) return failed;
    may_crash_at("foreign key: begun");
    return alteration->addition->validate(ha_thd(), table, *share_);
  });
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}

// --- Commit ---

namespace {

/** Returns all alterations of the statement: one, or one for each partition. */
std::vector<Alteration *> all_of(const Alter_inplace_info *info) {
  std::vector<Alteration *> all;
  if (!info->group_commit_ctx) {
    if (info->handler_ctx) all.push_back(static_cast<Alteration *>(info->handler_ctx));
    return all;
  }
  for (inplace_alter_handler_ctx **at = info->group_commit_ctx; *at; at++) all.push_back(static_cast<Alteration *>(*at));
  return all;
}

/** Opens the tree of an index as the ALTER leaves it. */
Error open_index_of(const TableRecord &record, const std::string &name, Tree *tree) {
  for (const IndexRecord &index : record.indexes)
    if (is_same_name(index.name, name)) return open_tree(Dictionary::tree_name(record.number, index.number), tree);
  return {};
}

/** Gives the existing trees the codec and the block size of the altered table's options. If a tree fails, the trees
    before it keep the new options, which changes only their size on disk. */
Error change_packing_of(const TABLE *altered, const Alteration &alteration) {
  if (!alteration.plan.changes_packing) return {};
  for (const Index &index : alteration.share->indexes)
    if (Error error = change_packing(altered->s, index.tree.get())) return error;
  return {};
}

/** Ends the journals of writers and retires them. With `all`, also retires the trees of dropped indexes, otherwise
    the trees of new indexes. */
void end_build(Alteration *alteration, bool all) {
  alteration->addition.reset();
  std::vector<std::string> names = alteration->dropped;
  if (!all) names.clear();
  if (alteration->build) {
    alteration->build->give_up();
    for (const std::string &journal : alteration->build->journals()) names.push_back(journal);
    if (!all)
      for (const BuiltIndex &built : alteration->build->indexes())
        if (built.index.tree) names.push_back(Dictionary::tree_name(alteration->change.record.number, built.record.number));
  }
  dictionary().retire(names);
}

}  // namespace

bool ha_frondb::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  int error = guarded([&] {
    if (commit) return commit_alter(altered, info);
    // Called for each partition, even for one that was not prepared.
    if (auto alteration = static_cast<Alteration *>(info->handler_ctx)) end_build(alteration, false);
    return 0;
  });
  if (error && !is_reported(error)) print_error(error, MYF(0));
  return error != 0;
}

int ha_frondb::commit_alter(TABLE *altered, Alter_inplace_info *info) {
  std::vector<Alteration *> all = all_of(info);
  std::vector<TableChange> changes;
  bool replaces_trees = false;
  for (Alteration *alteration : all) {
    if (alteration->build)
      if (int failed = alteration->build->finish()) return failed;
    replaces_trees |= alteration->build && !alteration->dropped.empty();
    changes.push_back(alteration->change);
    if (!alteration->addition) continue;
    const TableRecord &record = alteration->change.record;
    auto open = [&record](const std::string &index, Tree *tree) { return open_index_of(record, index, tree); };
    if (int failed = alteration->addition->finish(ha_thd(), open)) return failed;
  }
  ForeignKeyChange foreign;
  FenceHolder fence;
  if (int failed = define_in_place(ha_thd(), altered, info, share_->name, &foreign, nullptr)) return failed;
  if (replaces_trees ? is_parent(share_->name) : moves_parents(share_->name, foreign))
    if (int failed = fence.take(ha_thd(), {share_->name})) return failed;
  // The next two steps are not undone, so the wait for the fence, which a KILL or the timeout can end, comes before
  // them.
  if (info->create_info->used_fields & HA_CREATE_USED_AUTO)
    for (Alteration *alteration : all)
      if (int failed = alteration->share->raise_auto_increment(info->create_info->auto_increment_value)) return failed;
  for (const Alteration *alteration : all)
    if (Error failed = change_packing_of(altered, *alteration)) return ha_error(failed);
  may_crash_at("alter: packing changed");
  std::lock_guard<std::mutex> changing(dictionary().foreign_keys().changing());
  foreign = {};
  if (int failed = define_in_place(ha_thd(), altered, info, share_->name, &foreign, nullptr)) return failed;
  if (Error failed = dictionary().alter(changes, foreign)) return ha_error(failed);
  // The change is done for all partitions; later errors cannot undo it.
  info->group_commit_ctx = nullptr;
  for (Alteration *alteration : all) end_build(alteration, true);
  may_crash_at("alter: trees dropped");
  return 0;
}
