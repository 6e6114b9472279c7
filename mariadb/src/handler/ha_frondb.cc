/* SPDX-License-Identifier: GPL-2.0-only

   See handler/ha_frondb.h. Here: opening and closing, capabilities, and creating, renaming and emptying tables. */

#include "handler/ha_frondb.h"

#include <key.h>
#include <sql_table.h>

#include <algorithm>
#include <set>

#include "ddl/exchange.h"
#include "ddl/galera.h"
#include "ddl/lost_tables.h"
#include "ddl/refused_indexes.h"
#include "dictionary/dictionary.h"
#include "engine/errors.h"
#include "foreign/define.h"
#include "txn/fence.h"
#include "foreign/rename.h"
#include "table/options.h"
#include "txn/connection.h"
#include "txn/handlerton.h"
#include "txn/prepared_writes.h"

using namespace fron;

namespace {

constexpr uint HIDDEN_KEY_BYTES = 8;

/** Returns the length of a row's position: its primary key as the server stores it, or the hidden key. */
uint position_bytes(const TABLE *table) {
  const KEY *primary = primary_key_of(table);
  return primary ? primary->key_length : HIDDEN_KEY_BYTES;
}

}  // namespace

Share *ha_frondb::get_share(const char *path, int *error) {
  lock_shared_ha_data();
  auto share = static_cast<Share *>(get_ha_share_ptr());
  if (!share) {
    auto made = new Share;
    *error = made->open(table, Dictionary::key_of_path(path));
    if (*error) {
      delete made;
    } else {
      share = made;
      set_ha_share_ptr(share);
    }
  }
  unlock_shared_ha_data();
  return share;
}

ha_frondb::ha_frondb(handlerton *ht, TABLE_SHARE *share) : handler(ht, share) {}
ha_frondb::~ha_frondb() = default;

// --- Capabilities ---

ulonglong ha_frondb::table_flags() const {
  ulonglong more = 0;
  // The optimizer assumes that every clustered index is ordered by row position, and would merge such an index with
  // others.
  uint keys = table_share && table_share->key_info ? table_share->keys : 0;
  for (uint k = 0; k < keys; k++)
    if (k != table_share->primary_key && is_clustering(table_share->key_info[k])) more |= HA_NON_COMPARABLE_ROWID;
  // Without a TABLE_SHARE, the table is being defined: see ddl/refused_indexes.h.
  if (!table_share) more |= HA_CAN_FULLTEXT | HA_CAN_RTREEKEYS;
  // A statement may be logged as text only if the rows that it reads cannot change before it commits.
  const THD *thd = ha_thd();
  if (thd && thd_tx_isolation(thd) > ISO_READ_COMMITTED) more |= HA_BINLOG_STMT_CAPABLE;
  return more | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
         HA_PRIMARY_KEY_IN_READ_INDEX | HA_TABLE_SCAN_ON_INDEX | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE |
         HA_CAN_VIRTUAL_COLUMNS | HA_BINLOG_ROW_CAPABLE | HA_REUSES_FILE_NAMES | HA_CAN_GEOMETRY |
         HA_CAN_SKIP_LOCKED | HA_CAN_SQL_HANDLER | HA_AUTO_PART_KEY | HA_ONLINE_ANALYZE |
         HA_CONCURRENT_OPTIMIZE | HA_CAN_ONLINE_BACKUPS | HA_CAN_TABLES_WITHOUT_ROLLBACK;
}

ulong ha_frondb::index_flags(uint index, uint part, bool) const {
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  if (index == table_share->primary_key) return flags | HA_CLUSTERED_INDEX | HA_KEYREAD_ONLY;
  flags |= HA_DO_INDEX_COND_PUSHDOWN | HA_DO_RANGE_FILTER_PUSHDOWN;
  const KEY *key = &table_share->key_info[index];
  if (is_clustering(*key)) {
    flags |= HA_CLUSTERED_INDEX;
    // The index's entries have no virtual fields, except fields that are decoded from the key.
    if (part >= key->user_defined_key_parts || key->key_part[part].field->stored_in_db()) flags |= HA_KEYREAD_ONLY;
    return flags;
  }
  return part < key->user_defined_key_parts && is_whole_field(key->key_part[part]) ? flags | HA_KEYREAD_ONLY
                                                                            : flags;
}

// --- Tables ---

namespace {

/** The trees of a new table: the primary one first, then the other indexes. */
class Plan {
 public:
  Error make(const TABLE *form) {
    bool hidden = form->s->primary_key >= MAX_KEY;
    if (Error error = add(form->s, hidden ? nullptr : &form->key_info[form->s->primary_key], true)) return error;
    for (uint k = 0; k < form->s->keys; k++)
      if (hidden || k != form->s->primary_key)
        if (Error error = add(form->s, &form->key_info[k], false)) return error;
    return {};
  }
  std::vector<frondb_tree_options *> options() const {
    std::vector<frondb_tree_options *> all;
    for (const TreeOptions &one : options_) all.push_back(one.get());
    return all;
  }
  TableRecord record;

 private:
  Error add(const TABLE_SHARE *share, const KEY *key, bool is_primary) {
    TreeOptions options;
    if (Error error = make_tree_options(share, key, is_primary, &options)) return error;
    options_.push_back(std::move(options));
    record.indexes.push_back({record.next_index++, key ? key->name.str : ""});
    return {};
  }
  std::vector<TreeOptions> options_;
};

/** Warns that a directory option is ignored, with the server's own warning. */
void warn_of_directory(THD *thd, const char *directory, const char *option) {
  if (directory)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED, "<%s> option ignored", option);
}

}  // namespace

int ha_frondb::create(const char *path, TABLE *form, HA_CREATE_INFO *info) {
  // The server reads it afterwards, for the table of a VECTOR index.
  ref_length = position_bytes(form);
  if (is_refused_in_cluster(ha_thd(), info)) return HA_WRONG_CREATE_OPTION;
  if (refuses_indexes(form)) return HA_WRONG_CREATE_OPTION;
  if (refuses_options(form->s)) return HA_WRONG_CREATE_OPTION;
  warn_of_options(ha_thd(), info, form->s, nullptr);
  // FronDB's tables have no files of their own.
  warn_of_directory(ha_thd(), info->data_file_name, "DATA DIRECTORY");
  warn_of_directory(ha_thd(), info->index_file_name, "INDEX DIRECTORY");
  Plan plan;
  if (Error error = plan.make(form)) return ha_error(error);
  plan.record.definition.assign(reinterpret_cast<const char *>(form->s->tabledef_version.str),
                                form->s->tabledef_version.length);
  if (int error = guarded([&] { return create_with_foreign_keys(path, form, info, plan.options(), &plan.record); })) return error;
  if (info->auto_increment_value && form->found_next_number_field)
    if (Error error = dictionary().keep_counter(plan.record.number, Dictionary::AUTO_INCREMENT,
                                                info->auto_increment_value))
      return ha_error(error);
  return 0;
}

int ha_frondb::create_with_foreign_keys(const char *path, const TABLE *form, const HA_CREATE_INFO *info,
                                        const std::vector<frondb_tree_options *> &options, TableRecord *record) {
  std::string key = Dictionary::key_of_path(path);
  if (int error = hold_parents(ha_thd(), form, info->alter_info, key)) return error;
  ForeignKeyChange foreign;
  // A transaction may create a temporary table while others wait for that transaction, so do not wait for them here.
  std::unique_lock<std::mutex> changing(dictionary().foreign_keys().changing(), std::defer_lock);
  if (!(info->options & HA_LEX_CREATE_TMP_TABLE)) changing.lock();
  if (int error = define_for_create(ha_thd(), form, info, key, &foreign)) return error;
  return ha_error(dictionary().create(key, record, options, foreign));
}

int ha_frondb::delete_table(const char *path) { return hton()->drop_table(hton(), path); }

int ha_frondb::rename_table(const char *from, const char *to) {
  int error =
      guarded([&] { return rename_with_fences(ha_thd(), Dictionary::key_of_path(from), Dictionary::key_of_path(to)); });
  // The server's own error would be ER_ERROR_ON_RENAME. The first error of a statement is the one that a client gets.
  if (error == HA_ERR_ABORTED_BY_USER) ha_thd()->send_kill_message();
  if (error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT) raise_bare(error, "renaming a table");
  return error;
}

int ha_frondb::truncate() {
  position_.close();
  if (int error = check_prepared(share_->name)) return error;
  bool found;
  FenceHolder fence;
  if (referenced_by_foreign_key())
    if (int error = fence.take(ha_thd(), {share_->name})) return error;
  if (Error error = dictionary().truncate(share_->name, &found)) return ha_error(error);
  if (!found) return HA_ERR_NO_SUCH_TABLE;
  // Reopen the share, so that all open handlers of the table use the new trees. No handler uses the share meanwhile,
  // because the server keeps out all other statements.
  std::lock_guard<std::mutex> guard(share_->counting);
  std::string name = share_->name;
  return share_->open(table, name);
}

bool ha_frondb::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) {
  // If this function called the data compatible, nothing would set the counter.
  if (info->used_fields & HA_CREATE_USED_AUTO) return COMPATIBLE_DATA_NO;
  // Called by EXCHANGE PARTITION and CONVERT TABLE. Each tree records its own options, so the options of the tables may
  // differ; the contents of the trees must not. Both tables are locked now.
  if (changes != IS_EQUAL_YES) return COMPATIBLE_DATA_NO;
  bool is_same = false;
  int error = guarded([&] {
    const Connection *connection = Connection::find(ha_thd());
    is_same = connection && connection->partitioned == tree_contents(table);
    return 0;
  });
  return !error && is_same ? COMPATIBLE_DATA_YES : COMPATIBLE_DATA_NO;
}

int ha_frondb::open(const char *path, int, uint) {
  int error = 0;
  share_ = get_share(path, &error);
  if (!share_) {
    if (error == HA_ERR_NO_SUCH_TABLE) explain_lost_table(Dictionary::key_of_path(path));
    return error;
  }
  if (Error failed = buffer_.make()) return ha_error(failed);
  encoder_.open(table, share_);
  wanted_.open(&encoder_);
  position_.attach(share_, &use_);
  if (Error failed = writer_.open(&encoder_, share_, &read_free_, &use_)) return ha_error(failed);
  foreign_.open(&encoder_, &use_);
  ref_length = position_bytes(table);
  return info(HA_STATUS_OPEN | HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
}

int ha_frondb::close() {
  give_up_load();
  give_up_bulk();
  mrr_.dsmrr_close();
  position_.close();
  buffer_.reset();
  writer_.close();
  foreign_.close();
  return 0;
}

int ha_frondb::reset() {
  share_keeper_.end();
  if (use_.has_written) share_->keep_if_due();
  mrr_.dsmrr_close();
  position_.reset();
  range_.has_end = use_.is_sql_handler = use_.is_checked = false;
  give_up_load();
  give_up_bulk();
  bulk_.expects_duplicates = false;
  use_.key_read = use_.has_written = use_.is_semi_consistent = use_.writes_duplicates = false;
  // Keep the connection of a statement that still uses the table: a replica resets its temporary tables within a
  // statement that has locked them, when it reads the statistics of the server's own tables.
  if (use_.asked_lock == TL_UNLOCK) use_.connection = nullptr;
  return 0;
}
