/* SPDX-License-Identifier: GPL-2.0-only

   See handler/read_free.h. */

#include "handler/read_free.h"

#include <sql_class.h>
#include <handler.h>
#include <log_event.h>
#include <mysqld.h>
#include <rpl_rli.h>
#include <slave.h>

#include <atomic>

namespace fron {
namespace {

my_bool rpl_lookup_rows, rpl_unique_checks;
std::atomic<uint64_t> lookups_skipped{0}, unique_checks_skipped{0};

// The variables are global, because the threads of a replica would keep a session's value until they are restarted.
MYSQL_SYSVAR_BOOL(rpl_lookup_rows, rpl_lookup_rows, PLUGIN_VAR_OPCMDARG,
                  "OFF: a read-only replica that applies row events with full images does not read the rows that it "
                  "updates and deletes.",
                  nullptr, nullptr, true);
MYSQL_SYSVAR_BOOL(rpl_unique_checks, rpl_unique_checks, PLUGIN_VAR_OPCMDARG,
                  "OFF: a read-only replica that applies row events with full images does not check unique keys.",
                  nullptr, nullptr, true);

/** Returns the row event whose rows this thread applies to this table as a replica, and the server's data about the
    table; null if there is none. A trigger of the event's table may meanwhile write to other tables. */
const Rows_log_event *event_of(const TABLE *table, const RPL_TABLE_LIST **mapped) {
  // rgi_slave is null except in threads of a replica, also for a BINLOG statement of a client.
  const rpl_group_info *group = table->in_use->rgi_slave;
  Log_event *event = group ? group->current_event : nullptr;
  if (!event) return nullptr;
  Log_event_type type = event->get_type_code();
  if (!LOG_EVENT_IS_WRITE_ROW(type) && !LOG_EVENT_IS_UPDATE_ROW(type) && !LOG_EVENT_IS_DELETE_ROW(type)) return nullptr;
  auto rows = static_cast<const Rows_log_event *>(event);
  for (const TABLE_LIST *one = group->tables_to_lock; one; one = one->next_global)
    if (one->table == table && one->table_id == rows->get_table_id()) {
      *mapped = static_cast<const RPL_TABLE_LIST *>(one);
      return rows;
    }
  return nullptr;
}

/** Returns whether the event has every column of the table, each with the bytes that are stored here. */
bool has_whole_rows(const TABLE *table, const Rows_log_event *event, const RPL_TABLE_LIST *mapped) {
  size_t columns = table->s->fields;
  const MY_BITMAP *cols = event->get_cols();
  return event->get_width() == columns && mapped->m_tabledef.size() == columns && cols->n_bits == columns &&
         bitmap_is_set_all(cols) && !mapped->m_conv_table;
}

/** Returns whether the replica continues after a missing row or a duplicate key, and so must find it. */
bool expects_errors(const Rows_log_event *event) {
  // The event has its own copy of slave_exec_mode; slave_skip_errors cannot change.
  return event->slave_exec_mode != SLAVE_EXEC_MODE_STRICT || use_slave_mask;
}

/** Returns whether the server uses a row's old values only to write the row. */
bool is_plain(const TABLE *table) {
  const TABLE_SHARE *share = table->s;
  if (share->primary_key >= MAX_KEY || share->table_category != TABLE_CATEGORY_USER) return false;
  // The server computes generated columns from the row that was read. A unique key of long values is such a column,
  // and the server checks it.
  if (table->vfield || share->long_unique_table || table->versioned()) return false;
  // A trigger may change the new row so that it differs from the primary's.
  return !table->triggers || slave_run_triggers_for_rbr == SLAVE_RUN_TRIGGERS_FOR_RBR_NO;
}

}  // namespace

SystemVariables read_free_variables() { return {MYSQL_SYSVAR(rpl_lookup_rows), MYSQL_SYSVAR(rpl_unique_checks)}; }

uint64_t rpl_lookups_skipped() { return lookups_skipped.load(std::memory_order_relaxed); }
uint64_t rpl_unique_checks_skipped() { return unique_checks_skipped.load(std::memory_order_relaxed); }

void ReadFree::count_lookup() { lookups_skipped.fetch_add(1, std::memory_order_relaxed); }
void ReadFree::count_unique_check() { unique_checks_skipped.fetch_add(1, std::memory_order_relaxed); }

bool ReadFree::skips_lookup(TABLE *table) { return !rpl_lookup_rows && applies_to(table); }
bool ReadFree::skips_unique_checks(TABLE *table) { return !rpl_unique_checks && applies_to(table); }

bool ReadFree::applies_to(TABLE *table) {
  // If the server is not read-only, clients could have changed the rows.
  if (!opt_readonly || !is_plain(table)) return false;
  const RPL_TABLE_LIST *mapped = nullptr;
  const Rows_log_event *event = event_of(table, &mapped);
  return event && has_whole_rows(table, event, mapped) && !expects_errors(event) && !has_foreign_keys(table);
}

bool ReadFree::has_foreign_keys(TABLE *table) {
  if (!has_foreign_keys_) {
    List<FOREIGN_KEY_INFO> keys;
    has_foreign_keys_ = table->file->referenced_by_foreign_key() ||
                        table->file->get_foreign_key_list(table->in_use, &keys) || !keys.is_empty();
  }
  return *has_foreign_keys_;
}

}  // namespace fron
