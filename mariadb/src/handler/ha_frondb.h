/* SPDX-License-Identifier: GPL-2.0-only

   The handler: what the server asks of a table, translated and handed to the engine. Entries of its
   trees are described in table/index.h.

   A handler is used by one thread at a time. What handlers of one table share is Share. */

#ifndef FRONDB_HANDLER_HA_FRONDB_H
#define FRONDB_HANDLER_HA_FRONDB_H

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>

#include <memory>
#include <string>
#include <vector>

#include "codec/key.h"
#include "codec/row.h"
#include "engine/api.h"
#include "table/share.h"

namespace fron {

class Connection;
class IndexBuild;
class Load;
struct BuildKeys;

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
  int read_range_first(const key_range *from, const key_range *to, bool is_equal, bool sorted) override;

  Item *idx_cond_push(uint index, Item *condition) override;
  bool rowid_filter_push(Rowid_filter *filter) override;
  ha_rows multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *init, uint count, uint *bytes,
                                      uint *mode, Cost_estimate *cost) override;
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
  double scan_time() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
  ha_rows estimate_rows_upper_bound() override;
  ha_rows records_in_range(uint index, const key_range *min, const key_range *max,
                           page_range *pages) override;
  int extra(enum ha_extra_function operation) override;
  int external_lock(THD *thd, int type) override;
  int start_stmt(THD *thd, thr_lock_type type) override;
  void unlock_row() override;
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  void release_auto_increment() override;
  /** Statements that run at a time share the numbers out in whatever order. */
  bool autoinc_lock_mode_stmt_unsafe() const override { return true; }
  bool get_error_message(int error, String *text) override;
  void print_error(int error, myf flags) override;
  void update_create_info(HA_CREATE_INFO *info) override;

 private:
  /** The key of a row in an index, appended; whether a part of it is NULL. */
  bool encode_key(uint index, const uchar *record, std::string *to);
  /** Appends what a search for the first `length` bytes of a key image begins with. */
  void encode_image(uint index, const uchar *image, uint length, std::string *to) const;
  int primary_key(const uchar *record, std::string *to);
  /** Key and value of a row's entry in an index other than the primary one. */
  bool entry(uint index, const uchar *record, const std::string &primary, std::string *key,
             std::string *value);
  template <typename Work>
  int whole(Work work);
  /** Makes the key and the value of a new row: `primary_`, `value_`. */
  int encode_new_row(const uchar *record);
  int insert_row(const uchar *record);
  bool is_sequence() const { return table_share->table_type == TABLE_TYPE_SEQUENCE; }
  int write_sequence(const uchar *record);
  int read_sequence(uchar *record);
  int change_row(const uchar *before, const uchar *after);
  int change_entry(uint k, const uchar *before, const uchar *after);
  int remove_row(const uchar *record);
  int insert_entries(const uchar *record, const std::string &primary);
  // Of rows that others have changed behind the snapshot: handler/overlay.cc.
  struct Entries;
  void entries_of(const uchar *record, const std::string &primary, Entries *entries);
  int entries_of_row(std::string_view row, const std::string &primary, Entries *entries);
  int lift_row(const uchar *newest, const std::string &primary);
  int hide_entry(uint index, const std::string &key, bool is_unique, const std::string &primary);
  int show_entry_of(uint index, const std::string &key, const std::string &value, bool is_unique,
                    const std::string &primary);
  int uncover_entry(uint index, const std::string &key, const std::string &primary);
  int insert_into(uint index, const std::string &key, const std::string &value, bool check);
  bool is_primary(uint index) const { return !share_->has_hidden_key && index == table->s->primary_key; }
  /** The tree's place among the share's; the primary one is first. */
  uint tree_of(uint index) const;

  // Reading.
  /** Finds out which fields the statement wants of what is read from a tree; cheap if it is known. */
  void want_fields(uint tree);
  void plan_fields(bool is_all);
  const KEY *key_of(uint tree) const;
  void want_key(const KEY *key);
  int open_cursor(uint tree, std::string_view lo, const std::string *hi);
  int seek(uint tree, std::string_view lo, const std::string *hi);
  int step(bool forward, uchar *record);
  int step_in_index(bool forward, uchar *record);
  int fetch(bool forward);
  int turn(bool forward);
  int return_from_end(bool forward);
  /** Moves on to a state that sees what later statements did: HANDLER reads over many. */
  void park();
  int read_unique(const std::string &key, uchar *record);
  int read_exact(uint tree, const std::string &key, uchar *record);
  int show(frondb_slice key, frondb_slice value, uchar *record);
  int show_entry(frondb_slice key, frondb_slice value, uchar *record);
  bool decode_entry(frondb_slice key, frondb_slice primary, std::string_view covered, uchar *record);
  int check_entry();
  bool computes_fields(uint tree) const;
  void compute_fields(uchar *record);
  /** Somebody may ask for the key of the row shown: a position that no field has, or what is unlocked. */
  bool needs_key() const { return share_->has_hidden_key || row_lock_ != FRONDB_LOCK_NONE; }
  bool has_condition() const { return pushed_idx_cond && pushed_idx_cond_keyno == active_index; }
  bool has_filter() const { return pushed_rowid_filter && rowid_filter_is_active && share_->is_primary_covered; }
  int read_row(uchar *record);
  int decode_row(std::string_view row, uchar *record);
  int get(uint tree, std::string_view key, bool *found);
  bool is_whole_key(uint index, const uchar *key, uint length) const;
  int damaged() const;
  int check_blocks(THD *thd, uint index);
  int check_entries(THD *thd);
  int tell_size(uint flag);
  void tell_create_time();
  int count_range(uint index, const key_range *min, const key_range *max, ha_rows *rows);
  int count_own(frondb_tree *tree, const frondb_slice *to, uint64_t *entries);
  /** The statement has written so many rows more. */
  void count(int64_t rows);
  int begin_statement(THD *thd, thr_lock_type type);
  frondb_lock row_lock_of(THD *thd, thr_lock_type type) const;
  int check_definition(THD *thd);
  const char *why_copied(TABLE *altered, const Alter_inplace_info *info) const;
  int keep_auto_increment_of(const uchar *record);
  uint64_t auto_increment_of(const uchar *record);

  fron::Share *get_share(const char *path, int *error);

  // Rows of a table that is being made.
  void keep_dates();
  bool can_load() const;
  int begin_load();
  int load_row(const uchar *record);
  int end_load();
  void give_up_load();
  int show_duplicate(uint64_t number, std::string_view key);

  // Changing the table.
  int prepare_alter(TABLE *altered, Alter_inplace_info *info);
  int begin_build(TABLE *altered, const std::shared_ptr<fron::IndexBuild> &build, const std::vector<size_t> &places,
                  fron::TableRecord *record, fron::Snapshot *snapshot);
  /** Tells indexes that are being built of a row: as it was, as it is now; null for none. */
  int tell_build(const uchar *before, const uchar *after);
  bool built_entry(const fron::IndexBuild &build, size_t index, const uchar *record, const std::string &primary,
                   std::string *key, std::string *value);
  void know_keys_of(const std::shared_ptr<fron::IndexBuild> &build);
  int build_indexes(const std::shared_ptr<fron::IndexBuild> &build, frondb_snapshot *at, TABLE *altered);
  int finish_build(fron::IndexBuild &build, TABLE *altered);
  int load_rows(fron::IndexBuild &build, frondb_snapshot *at, uint64_t *duplicates);
  int put_rows(fron::IndexBuild &build, frondb_snapshot *at, frondb_bulk_writer *writer);
  int find_duplicate(fron::IndexBuild &build, frondb_snapshot *at, TABLE *altered);
  /** Gives HA_ERR_FOUND_DUPP_KEY, of which nobody has to tell the user any more. */
  int report_duplicate(TABLE *altered, uint number, std::string_view primary, frondb_snapshot *at);

  THR_LOCK_DATA lock_;
  /** What the server asked for last. */
  thr_lock_type lock_type_ = TL_UNLOCK;
  /** How the statement uses the table. */
  thr_lock_type statement_type_ = TL_READ;
  /** Made by clone(), for a statement. */
  bool is_clone_ = false;
  fron::Share *share_ = nullptr;
  fron::Connection *connection_ = nullptr;
  frondb_lock row_lock_ = FRONDB_LOCK_NONE;
  frondb_wait row_wait_ = FRONDB_WAIT;
  /** The server asks for fields of the index alone. */
  bool key_read_ = false;

  /** What is wanted of entries and rows, and for what it was found out: see want_fields(). */
  fron::Wanted wanted_;
  fron::KeyCodec::Targets key_targets_, primary_targets_;
  bool wants_covered_ = false, wanted_all_ = false;
  uint wanted_tree_ = ~0u;
  const void *wanted_filter_ = nullptr;
  std::vector<my_bitmap_map> wanted_bits_;

  fron::Cursor cursor_;
  frondb_rows rows_ = {};
  size_t at_ = 0;
  size_t batch_ = 0;
  bool forward_ = true;
  uint cursor_tree_ = 0;
  /** Where the cursor's range begins, and whether it ends before the tree does. */
  std::string cursor_from_;
  bool cursor_has_end_ = false;
  /** Where the cursor of a search for a whole prefix ends, and a plain step goes on; else empty. */
  std::string exact_end_;
  /** Where the range that is about to be read ends; `has_range_end_` for one search. */
  std::string range_end_;
  bool has_range_end_ = false;
  /** The next search is the first of a range. */
  bool begins_range_ = false;
  /** Without a cursor: the key from which the next step goes on, if there is one. */
  std::string last_key_;
  bool has_last_key_ = false;
  /** HANDLER has read past the last entry (1) or the first (-1). */
  int past_end_ = 0;
  bool is_sql_handler_ = false;
  /** Of each tree whether the state that the statement looks at has it; empty if it has them all. */
  std::vector<bool> seen_trees_;
  /** A scan of a sequence's table has shown its row. */
  bool has_shown_ = false;
  /** The primary key of the row shown last. */
  std::string current_;
  std::string lo_, hi_;
  fron::Buffer buffer_;
  /** Another one: blobs of the row that is written may point into the first. */
  fron::Buffer outdated_;
  /** What computed fields of the row shown last point to. */
  std::vector<std::string> computed_;
  std::vector<uchar> other_record_;
  DsMrr_impl mrr_;
  /** Bytes of a row before it is compressed. */
  uint64_t row_bytes_ = 0;
  /** The statement has written to the table. */
  bool has_written_ = false;
  /** One behind the AUTO_INCREMENT numbers that the statement has reserved; 0 if none. */
  uint64_t reserved_after_ = 0;
  /** What the last try to reserve numbers ended with. */
  int reserve_error_ = 0;

  std::string key_, value_, primary_, other_key_, other_value_, other_primary_;
  std::vector<uchar> image_;
  /** Between BEGIN_COPY and its end; between start_bulk_insert() and its end. */
  bool is_copy_ = false, is_bulk_ = false;
  /** The statement has asked for a CHECK: what it scans afterwards it does not copy. */
  bool is_checked_ = false;
  /** Where rows go in place of the table. */
  std::shared_ptr<fron::Load> load_;
  /** Keys of the indexes that are being built, with this TABLE's fields. */
  std::unique_ptr<fron::BuildKeys> build_keys_;
};

#endif
