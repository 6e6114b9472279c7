/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: CHECK and ANALYZE TABLE, with progress and KILL.

     CHECK QUICK, FAST    reads and verifies every block of the rows
     CHECK                the same, and every block of every index
     CHECK EXTENDED       the same, and decodes every row and compares the indexes with the rows
     ANALYZE              measures the statistics with a larger sample, and keeps them */

#include "handler/ha_frondb.h"

#include <key.h>
#include <my_check_opt.h>
#include <sql_error.h>

#include <mysqld_error.h>

#include "codec/entry.h"
#include "codec/entry_sum.h"
#include "engine/db.h"
#include "engine/errors.h"
#include "engine/progress.h"

using namespace fron;

namespace {

constexpr size_t SCAN_ROWS = 256;
constexpr size_t SCAN_BYTES = 1 << 20;
/** Maximum number of faults reported for a tree. */
constexpr size_t FAULTS_NAMED = 10;

/** Reports a finding of a check to the client and to the server's log. */
void complain(THD *thd, const char *table, const char *what) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "FronDB: %s", what);
  sql_print_error("FronDB: table %s: %s", table, what);
}

/** Reports why a check ends early, and returns its result. A KILL is also reported as a row of the result. */
int give_up(THD *thd, const char *table, const Error &error) {
  if (error.kind() == FRONDB_CANCELLED)
    thd->send_kill_message();
  else
    complain(thd, table, error.message());
  return error.kind() == FRONDB_CORRUPTION ? HA_ADMIN_CORRUPT : HA_ADMIN_FAILED;
}

}  // namespace

int ha_frondb::check(THD *thd, HA_CHECK_OPT *options) {
  use_.is_checked = true;
  bool is_quick = options->flags & (T_QUICK | T_FAST), is_extended = options->flags & T_EXTEND;
  std::vector<uint> indexes = {share_->has_hidden_key ? uint(MAX_KEY) : table->s->primary_key};
  for (uint k = 0; k < table->s->keys && !is_quick; k++)
    if (!is_primary(k)) indexes.push_back(k);
  thd_progress_init(thd, uint(indexes.size() * (is_extended ? 2 : 1)));
  int result = HA_ADMIN_OK;
  int error = guarded([&] {
    for (uint index : indexes) {
      int one = check_blocks(thd, index);
      if (one == HA_ADMIN_CORRUPT) result = one;
      if (one != HA_ADMIN_OK && one != HA_ADMIN_CORRUPT) return one;
      thd_progress_next_stage(thd);
    }
    // Trees with unreadable blocks are not compared.
    return is_extended && result == HA_ADMIN_OK ? check_entries(thd) : result;
  });
  thd_progress_end(thd);
  if (error == HA_ADMIN_CORRUPT) share_keeper_.begin(table);
  if (error != HA_ERR_OUT_OF_MEM) return error;
  print_error(error, MYF(0));
  return HA_ADMIN_FAILED;
}

int ha_frondb::check_blocks(THD *thd, uint index) {
  frondb_tree *tree = share_->indexes[index == MAX_KEY ? 0 : tree_of(index)].tree.get();
  fron::List list;
  std::vector<frondb_slice> faults;
  Error error = frondb_tree_verify(tree, report_progress, thd, nullptr, list.out());
  if (!error) error = list.read(&faults, FAULTS_NAMED);
  if (error) return give_up(thd, share_->name.c_str(), error);
  for (frondb_slice fault : faults) {
    std::string what = "index " + std::string(name_of(table, index)) + ": " + std::string(view(fault));
    complain(thd, share_->name.c_str(), what.c_str());
  }
  return faults.empty() ? HA_ADMIN_OK : HA_ADMIN_CORRUPT;
}

namespace {

/** Reads a whole tree at a snapshot. `each` returns the result of CHECK for an entry. */
template <typename Each>
int scan(THD *thd, frondb_tree *tree, frondb_snapshot *snapshot, uint64_t about, const char *name, Each each) {
  Cursor cursor;
  frondb_rows rows;
  uint64_t done = 0;
  Error error = cursor.open(tree, {}, snapshot);
  for (;;) {
    if (!error) error = cursor.read(SCAN_ROWS, SCAN_BYTES, &rows);
    if (error) return give_up(thd, name, error);
    if (rows.count == 0) return HA_ADMIN_OK;
    for (size_t i = 0; i < rows.count; i++)
      if (int result = each(rows.entries[i])) return result;
    done += rows.count;
    if (report_progress(thd, "", done, std::max(done, about))) {
      thd->send_kill_message();
      return HA_ADMIN_FAILED;
    }
  }
}

}  // namespace

/** Packs the row of a clustering entry as rows are packed now: an ALTER leaves older entries unchanged. */
bool ha_frondb::renew_entry(const frondb_entry &entry, std::string *value) {
  frondb_slice primary = {};
  std::string_view row;
  std::string renewed;
  if (!split_entry(entry.key, entry.value, &primary, &row)) return false;
  if (!unpack_row(table, share_->record.form, row, table->record[0])) return false;
  encoder_.encode_row(table->record[0], &renewed);
  value->resize(value->size() - row.size());
  value->append(renewed);
  return true;
}

/** Compares the indexes with the rows, at one snapshot. */
int ha_frondb::check_entries(THD *thd) {
  fron::Snapshot snapshot;
  if (Error error = frondb_db_snapshot(db(), snapshot.out())) return give_up(thd, share_->name.c_str(), error);
  std::vector<EntrySum> wanted(table->s->keys);
  std::string key, value;
  uint64_t count = 0;
  MY_BITMAP *columns = tmp_use_all_columns(table, &table->read_set);
  int result = scan(thd, share_->indexes[0].tree.get(), snapshot.get(), stats.records, share_->name.c_str(),
                    [&](const frondb_entry &row) {
    count++;
    current_.assign(view(row.key));
    if (!unpack_row(table, share_->record.form, view(row.value), table->record[0])) {
      complain(thd, share_->name.c_str(), "a row cannot be decoded");
      return HA_ADMIN_CORRUPT;
    }
    if (table->vfield) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    for (uint k = 0; k < table->s->keys; k++) {
      if (is_primary(k)) continue;
      encoder_.entry(k, table->record[0], current_, &key, &value);
      wanted[k].add(key, value);
    }
    return HA_ADMIN_OK;
  });
  tmp_restore_column_map(&table->read_set, columns);
  thd_progress_next_stage(thd);
  for (uint k = 0; k < table->s->keys; k++) {
    if (is_primary(k) || (result != HA_ADMIN_OK && result != HA_ADMIN_CORRUPT)) continue;
    EntrySum there;
    int one = scan(thd, share_->indexes[tree_of(k)].tree.get(), snapshot.get(), count, share_->name.c_str(),
                   [&](const frondb_entry &of) {
      value.assign(view(of.value));
      if (encoder_.index(k).is_clustering && !renew_entry(of, &value)) {
        complain(thd, share_->name.c_str(), "an entry cannot be decoded");
        return HA_ADMIN_CORRUPT;
      }
      there.add(view(of.key), value);
      return HA_ADMIN_OK;
    });
    if (one != HA_ADMIN_OK) {
      result = one;
    } else if (there != wanted[k]) {
      std::string what = "index " + std::string(name_of(table, k)) + " has " + std::to_string(there.count) +
                         " entries, which are not those of the " + std::to_string(count) + " rows";
      complain(thd, share_->name.c_str(), what.c_str());
      result = HA_ADMIN_CORRUPT;
    }
    thd_progress_next_stage(thd);
  }
  return result;
}

int ha_frondb::analyze(THD *thd, HA_CHECK_OPT *) {
  // OPTIMIZE with frondb_optimize_mode=copy ends with this call, and then marks the share (handler/share_keeper.h).
  // ANALYZE does not.
  if (thd_sql_command(thd) != SQLCOM_ANALYZE) share_keeper_.begin(table);
  int error = guarded([&] { return share_->measure(table, SAMPLE_ANALYZE); });
  if (error) {
    print_error(error, MYF(0));
    return HA_ADMIN_FAILED;
  }
  share_->give_statistics(table);
  return HA_ADMIN_OK;
}
