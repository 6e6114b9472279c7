/* SPDX-License-Identifier: GPL-2.0-only

   The handler: the server's interface to one open table. Its public functions are the server's, in the server's order;
   the private ones are grouped by the file that has them. table/index.h describes the trees, and Share is the state
   that all handlers of a table share. One thread uses a handler at a time. */

#ifndef FRONDB_HANDLER_HA_FRONDB_H
#define FRONDB_HANDLER_HA_FRONDB_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/api.h"
#include "engine/server.h"
#include "handler/gathered_rows.h"
#include "handler/computed_fields.h"
#include "handler/read_free.h"
#include "handler/read_position.h"
#include "table/row_encoder.h"
#include "handler/row_writer.h"
#include "handler/share_keeper.h"
#include "table/statement_use.h"
#include "foreign/checks.h"
#include "handler/wanted_fields.h"
#include "table/share.h"

namespace fron {

class Alteration;
class IndexBuild;
class Load;

/** The rows of a table that ALTER by copy or CREATE TABLE .. SELECT creates: see handler/load.cc. */
struct BulkCopy {
  /** `is_copy`: between HA_EXTRA_BEGIN_COPY and HA_EXTRA_END_COPY. `is_bulk`: between start_bulk_insert() and
      end_bulk_insert(). */
  bool is_copy = false, is_bulk = false;
  /** The bulk load that receives the rows instead of the table's trees; null if there is none. */
  std::shared_ptr<Load> load;
  /** Scratch memory for an entry. */
  std::string key, value;

  bool takes_rows() const { return is_copy && (is_bulk || load); }
};

/** AUTO_INCREMENT numbers that the statement has reserved. */
struct Reservation {
  /** One more than the last reserved number; 0 if none are reserved. */
  uint64_t after = 0;
  /** Result of the last reservation: 0 or an HA_ERR_ number. */
  int error = 0;
};

/** The range that the server is about to read. */
struct RangeToRead {
  /** The end of the range, if `has_end`; used by the next search only. */
  std::string end;
  bool has_end = false;
  /** Whether the next search is the first of a range. */
  bool begins = false;
  /** The first key of a range that the next search reads backward, if `has_first`. */
  std::string first;
  bool has_first = false;
};

/** The short range that the optimizer requested last: usually the statement reads it next. */
struct CountedRange {
  uint tree = ~0u;
  std::string lo, hi;
  /** Approximate number of its rows; 0 for a long range. */
  size_t rows = 0;

  bool is(uint other, std::string_view from, const std::string *to) const {
    return rows > 0 && tree == other && to && lo == from && hi == *to;
  }
};

}  // namespace fron

class ha_frondb final : public handler {
 public:
  ha_frondb(handlerton *hton, TABLE_SHARE *share);
  ~ha_frondb() override;

  const char *index_type(uint) override { return "BTREE"; }
  ulonglong table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }

  int open(const char *path, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int create(const char *path, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *path) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;
  Compare_keys compare_key_parts(const Field &before, const Column_definition &after, const KEY_PART_INFO &part_before,
                                 const KEY_PART_INFO &part_after) const override;
  bool can_convert_nocopy(const Field &field, const Column_definition &wanted) const override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;

  int write_row(const uchar *record) override;
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  int update_row(const uchar *before, const uchar *after) override;
  int delete_row(const uchar *record) override;

  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  int rnd_pos_by_record(uchar *record) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *a, const uchar *b) override;

  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read(uchar *record, const uchar *key, uint length, ha_rkey_function flag) override;
  int index_next(uchar *record) override;
  int index_prev(uchar *record) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int index_next_same(uchar *record, const uchar *key, uint length) override;
  int prepare_range_scan(const key_range *from, const key_range *to) override;
  int read_range_first(const key_range *from, const key_range *to, bool is_equal, bool sorted) override;

  Item *idx_cond_push(uint index, Item *condition) override;
  bool rowid_filter_push(Rowid_filter *filter) override;
  ha_rows multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *init, uint count, uint *bytes,
                                      uint *mode, RANGES_LIMIT_PARAMETER Cost_estimate *cost) override;
  ha_rows multi_range_read_info(uint index, uint count, uint keys, uint parts, uint *bytes, uint *mode,
                                Cost_estimate *cost) override;
  int multi_range_read_init(RANGE_SEQ_IF *ranges, void *init, uint count, uint mode,
                            HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t size) override;
  handler *clone(const char *name, MEM_ROOT *root) override;

  int check(THD *thd, HA_CHECK_OPT *options) override;
  int analyze(THD *thd, HA_CHECK_OPT *options) override;
  int optimize(THD *thd, HA_CHECK_OPT *options) override;
  int info(uint flag) override;
#if FRONDB_SERVER_11_8
  IO_AND_CPU_COST scan_time() override;
  ulonglong row_blocks() override;
#else
  double scan_time() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
#endif
  ha_rows estimate_rows_upper_bound() override;
  ha_rows records_in_range(uint index, const key_range *min, const key_range *max,
                           page_range *pages) override;
  int extra(enum ha_extra_function operation) override;
  void column_bitmaps_signal(SIGNAL_PARAMETER) override;
  int external_lock(THD *thd, int type) override;
  int start_stmt(THD *thd, thr_lock_type type) override;
  void unlock_row() override;
  void try_semi_consistent_read(bool yes) override;
  bool was_semi_consistent_read() override;
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) override;
  /** Returns 0, because FronDB locks rows and has no table locks of its own. So LOCK TABLES waits in the server for
      open transactions. */
  uint lock_count() const override { return 0; }
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  void release_auto_increment() override;
  bool autoinc_lock_mode_stmt_unsafe() const override;
  char *get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char *text) override;
  int get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  int get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  bool referenced_by_foreign_key() const noexcept override;
  bool is_fk_defined_on_table_or_index(uint index) override;
  bool can_switch_engines() override;
  bool get_foreign_dup_key(char *table, uint table_size, char *key, uint key_size) override;
  bool get_error_message(int error, String *text) override;
  void print_error(int error, myf flags) override;
  void update_create_info(HA_CREATE_INFO *info) override;

 private:
  fron::Share *get_share(const char *path, int *error);
  bool is_primary(uint index) const { return encoder_.is_primary(index); }
  /** Returns the number of an index's tree among the trees of the table; the tree of the primary index is first. */
  uint tree_of(uint index) const { return fron::tree_of(table, index); }
  bool is_sequence() const { return table_share->table_type == TABLE_TYPE_SEQUENCE; }
  /** Returns the error for an entry or row that was read and cannot be decoded. */
  int damaged() const;

  // Statements: statement.cc.
  int begin_statement(THD *thd, thr_lock_type type);
  frondb_lock row_lock_of(THD *thd, thr_lock_type type) const;
  int check_definition(THD *thd);

  // Uniqueness that the server checks: server_checks.cc.
  bool is_server_check(const uchar *record, ha_rkey_function flag) const;
  int lock_checked_key(const uchar *key, uint length, std::string *end, bool *has_end);

  // Tables: ha_frondb.cc.
  int create_with_foreign_keys(const char *path, const TABLE *form, const HA_CREATE_INFO *info,
                               const std::vector<frondb_tree_options *> &options, fron::TableRecord *record);

  // Writing: write.cc, sequence.cc, auto_increment.cc.
  int insert_row(const uchar *record);
  int change_row(const uchar *before, const uchar *after, const std::string &shown, const fron::Cause &cause);
  int remove_row(const uchar *record, const std::string &shown, const fron::Cause &cause);
  /** Runs `write` between the checks of foreign keys. After an error the row is unchanged, or
      Connection::must_roll_back is set. */
  template <typename Write>
  int write_checked(const uchar *before, const uchar *after, const fron::Cause &cause, Write write);
  /** Reports a write to the ALTER that reads the rows, if any. `before` and `after` are the row before and after the
      write, null for no row. */
  int notify_build(const uchar *before, const std::string &primary_before, const uchar *after);
  /** Counts a write that added `rows` rows: 1 for an insert, 0 for an update, -1 for a delete. */
  void count(int64_t rows);
  int write_sequence(const uchar *record);
  int read_sequence(uchar *record);
  bool locks_counter() const;
  template <typename Use>
  int use_counter(Use use);
  int keep_auto_increment_of(const uchar *record);
  uint64_t auto_increment_of(const uchar *record);

  // Actions of foreign keys: cascade.cc. Called for the table of the children.
  int act(const fron::Children &children, const fron::Cause &cause);
  int act_on_row(const fron::Children &children, const std::string &primary, const fron::Cause &cause);
  int act_on_children(const fron::Children &children, const fron::Cause &cause);
  void end_version();
  int insert_history();
  int load_child(const std::string &primary, bool *found);
  bool has_key_of_parent(const fron::Children &children);
  int set_columns(const fron::Children &children, bool *is_changed);
  void compute_virtual_fields();
  void renew_virtual_fields();

  // Reading: read.cc, fetch.cc.
  /** Determines which fields of a tree the statement wants; cheap if nothing has changed since the last call. */
  void want_fields(uint tree);
  int open_cursor(uint tree, std::string_view lo, const std::string *hi, bool forward = true);
  int seek(uint tree, std::string_view lo, const std::string *hi);
  /** Returns the number of entries of a range that the first fetch should read; 0 if unknown. */
  size_t first_fetch(uint tree, std::string_view lo, const std::string *hi) const;
  int step(bool forward, uchar *record);
  int read_again(uchar *record);
  int step_in_index(bool forward, uchar *record);
  int read_unique(const std::string &key, uchar *record);
  int read_exact(uint tree, const std::string &key, uchar *record);
  int show(frondb_slice key, frondb_slice value, uchar *record);
  int show_entry(frondb_slice key, frondb_slice value, uchar *record);
  int check_entry();
  bool computes_fields(uint tree) const;
  /** Returns whether the key of the returned row must be kept: as the row's position, if no field contains the key,
      or to unlock the row. */
  bool needs_key() const { return share_->has_hidden_key || use_.locks_rows(); }
  bool has_condition() const { return pushed_idx_cond && pushed_idx_cond_keyno == active_index; }
  bool has_filter() const { return pushed_rowid_filter && rowid_filter_is_active && share_->is_primary_covered; }
  int read_row(uchar *record);
  int decode_row(std::string_view row, uchar *record);
  int get(uint tree, std::string_view key, bool *found);
  bool is_whole_key(uint index, const uchar *key, uint length) const;

  // CHECK and statistics: admin.cc, info.cc.
  int check_blocks(THD *thd, uint index);
  bool renew_entry(const frondb_entry &entry, std::string *value);
  int check_entries(THD *thd);
  int indexes_to_optimize(THD *thd, std::vector<uint> *indexes) const;
  int optimize_index(THD *thd, uint index, frondb_progress progress, void *data);
  int report_size(uint flag);
  bool needs_statistics(uint flag) const;
  void report_create_time();
  int count_range(uint index, const key_range *min, const key_range *max, ha_rows *rows);
  bool may_read_ahead() const;
  bool reads_at_once() const;
  bool reads_plainly() const;
  int count_committed(frondb_tree *tree, const frondb_slice *to, ha_rows *rows);
  int add_own(frondb_tree *tree, const frondb_slice *to, ha_rows *rows);

  // Rows of a table that is being made: load.cc.
  void keep_dates();
  bool never_reads_rows() const;
  bool can_load() const;
  int begin_load();
  int load_row(const uchar *record);
  int end_load();
  void give_up_load();
  int show_duplicate(frondb_txn *txn, uint64_t number, std::string_view key);

  // Rows of a statement that may fill an empty table: bulk_insert.cc.
  void announce_rows(ha_rows rows);
  int can_gather(bool *can);
  int bulk_row(const uchar *record);
  int begin_bulk();
  int write_in_bulk(const std::vector<frondb_write> &writes);
  int write_gathered();
  bool show_row(std::string_view row);
  int end_bulk();
  int finish_bulk();
  int end_bulk_before_read();
  void fail_bulk();
  void give_up_bulk();

  // Changing the table: alter.cc.
  int prepare_alter(TABLE *altered, Alter_inplace_info *info);
  int prepare_foreign_keys(TABLE *altered, Alter_inplace_info *info, fron::Alteration *alteration);
  int commit_alter(TABLE *altered, Alter_inplace_info *info);

  fron::Share *share_ = nullptr;
  fron::StatementUse use_;
  fron::ShareKeeper share_keeper_;
  fron::RowEncoder encoder_;

  // Reading.
  fron::ReadPosition position_;
  fron::WantedFields wanted_;
  fron::ComputedFields computed_;
  fron::RangeToRead range_;
  fron::CountedRange counted_;
  /** The primary key of the row returned last. */
  std::string current_;
  /** A row or entry read by its key. */
  fron::Buffer buffer_;
  /** Scratch memory for the keys of a search or a range. */
  std::string lo_, hi_;
  DsMrr_impl mrr_;
  /** Whether a scan of a sequence's table has returned its row. */
  bool has_shown_ = false;
  /** Bytes of a row before it is compressed. */
  uint64_t row_bytes_ = 0;

  // Writing.
  fron::ReadFree read_free_;
  fron::RowWriter writer_;
  fron::ForeignChecks foreign_;
  /** The encoded row of a child that an action changes; its blobs point here. */
  std::vector<char> child_row_;
  /** Scratch memory: the key of that child. */
  std::string child_key_;
  fron::BulkCopy copy_;
  fron::BulkInsert bulk_;
  fron::Reservation reservation_;
};

#endif
