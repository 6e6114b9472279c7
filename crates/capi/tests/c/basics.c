/* Opening, trees, single keys, batches, snapshots, statistics, lists and tuples. */
#include <errno.h>

#include "check.h"

static void options_and_errors(const char *path) {
  frondb_options *options;
  frondb_db *db, *second;
  frondb_error *error;
  frondb_sync_mode mode;
  uint64_t millis;
  char long_name[300];
  OK(frondb_options_new(&options));
  OK(frondb_options_set(options, "create", "off"));
  FAILS(FRONDB_NOT_FOUND, frondb_db_open(path, options, &db));
  CHECK(db == NULL);
  OK(frondb_options_set(options, "create", "on"));
  OK(frondb_options_set(options, "create_new", "on"));
  OK(frondb_options_set(options, "memory_bytes", "1"));
  FAILS(FRONDB_INVALID, frondb_db_open(path, options, &db));
  OK(frondb_options_set(options, "memory_bytes", "16M"));
  OK(frondb_options_set(options, "write_buffer_bytes", "1M"));
  OK(frondb_options_set(options, "background_threads", "0"));
  OK(frondb_options_set(options, "log_compression", "on"));
  OK(frondb_options_set(options, "verify_fast_codecs", "on"));
  OK(frondb_options_set(options, "log_segment_bytes", "1M"));
  OK(frondb_options_set(options, "direct_io", "off"));
  OK(frondb_options_set(options, "reserve_bytes", "1M"));
  OK(frondb_options_set(options, "sync", "100ms"));
  FAILS(FRONDB_INVALID, frondb_options_set(options, "sync", "sometimes"));
  FAILS(FRONDB_INVALID, frondb_options_set(options, "memory", "1G"));
  OK(frondb_db_open(path, options, &db));

  error = frondb_db_open(path, NULL, &second);
  CHECK(frondb_error_kind(error) == FRONDB_BUSY);
  CHECK(strstr(frondb_error_message(error), "in use") != NULL);
  CHECK(!frondb_error_place(error, NULL));
  CHECK(frondb_error_free(error) == FRONDB_OK);

  OK(frondb_db_sync_mode(db, &mode, &millis));
  CHECK(mode == FRONDB_SYNC_EVERY_MILLIS && millis == 100);
  OK(frondb_db_set_sync_mode(db, FRONDB_SYNC_ALWAYS, 0));
  OK(frondb_db_sync_mode(db, &mode, &millis));
  CHECK(mode == FRONDB_SYNC_ALWAYS && millis == 0);

  close_all(db);
  FAILS(FRONDB_EXISTS, frondb_db_open(path, options, &db));
  CHECK(frondb_options_free(options) == FRONDB_OK);

  /* The operating system's error is passed through. */
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  error = frondb_db_open(long_name, NULL, &db);
  CHECK(frondb_error_kind(error) == FRONDB_IO && frondb_error_os_code(error) == ENAMETOOLONG);
  CHECK(frondb_error_free(error) == FRONDB_OK);
}

static void trees(frondb_db *db) {
  frondb_tree_options *options, *same;
  frondb_tree *tree, *again;
  frondb_buffer *buffer;
  frondb_list *names;
  frondb_slice name;
  uint64_t id, other_id;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tree_options_new_secondary(&options));
  OK(frondb_tree_options_set(options, "codec", "zstd:3"));
  OK(frondb_tree_options_set(options, "run_codec", "none"));
  OK(frondb_tree_options_set(options, "block_bytes", "8K"));
  OK(frondb_tree_options_set(options, "fanout", "8"));
  OK(frondb_tree_options_set(options, "filter", "prefix:4"));
  OK(frondb_tree_options_set(options, "leaf_bytes_min", "1M"));
  OK(frondb_tree_options_set(options, "growth_percent", "0"));
  FAILS(FRONDB_INVALID, frondb_tree_options_set(options, "no such", "1"));
  FAILS(FRONDB_INVALID, frondb_tree_options_set(options, "writes_before_base", "300"));
  FAILS(FRONDB_INVALID, frondb_tree_options_set(options, "codec", "zip"));
  FAILS(FRONDB_INVALID, frondb_tree_options_set(options, "codec", "zstd:99"));
  FAILS(FRONDB_INVALID, frondb_tree_options_set(options, "filter", "some"));
  OK(frondb_db_create_tree(db, "one", options, &tree));
  FAILS(FRONDB_EXISTS, frondb_db_create_tree(db, "one", options, &again));
  OK(frondb_tree_options_of(tree, &same));
  OK(frondb_db_create_tree(db, "two", same, &again));
  CHECK(frondb_tree_options_free(same) == FRONDB_OK);
  OK(frondb_tree_id(tree, &id));
  OK(frondb_tree_id(again, &other_id));
  CHECK(id != other_id);
  CHECK(frondb_tree_free(again) == FRONDB_OK);
  OK(frondb_tree_options_set(options, "leaf_bytes_max", "4K"));
  FAILS(FRONDB_INVALID, frondb_db_create_tree(db, "three", options, &again));
  CHECK(frondb_tree_options_free(options) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_db_create_tree(db, "", NULL, &again));
  FAILS(FRONDB_INVALID, frondb_db_create_tree(db, "\xff", NULL, &again));

  OK(frondb_db_rename_tree(db, "one", "uno"));
  OK(frondb_tree_name(tree, buffer));
  CHECK(is(frondb_buffer_value(buffer), "uno"));
  FAILS(FRONDB_NOT_FOUND, frondb_db_open_tree(db, "one", &again));
  OK(frondb_db_open_tree(db, "uno", &again));
  CHECK(frondb_tree_free(again) == FRONDB_OK);
  OK(frondb_db_list_trees(db, &names));
  CHECK(frondb_list_count(names) == 2);
  OK(frondb_list_get(names, 0, &name));
  CHECK(is(name, "two") && name.data[name.len] == 0);
  OK(frondb_list_get(names, 1, &name));
  CHECK(is(name, "uno"));
  FAILS(FRONDB_INVALID, frondb_list_get(names, 2, &name));
  CHECK(frondb_list_free(names) == FRONDB_OK);

  /* Changes codec and block size while the tree is open. */
  OK(frondb_tree_options_of(tree, &same));
  OK(frondb_tree_options_set(same, "codec", "zstd:9"));
  OK(frondb_tree_options_set(same, "block_bytes", "4096"));
  OK(frondb_tree_set_options(tree, same));
  OK(frondb_tree_options_set(same, "fanout", "9"));
  FAILS(FRONDB_INVALID, frondb_tree_set_options(tree, same));
  FAILS(FRONDB_INVALID, frondb_tree_set_options(tree, NULL));
  FAILS(FRONDB_INVALID, frondb_tree_set_options(NULL, same));
  OK(frondb_tree_options_set(same, "fanout", "8"));
  OK(frondb_tree_set_options(tree, same));

  OK(frondb_db_drop_tree(db, "uno"));
  FAILS(FRONDB_NOT_FOUND, frondb_db_drop_tree(db, "uno"));
  FAILS(FRONDB_NOT_FOUND, frondb_tree_set_options(tree, same));
  CHECK(frondb_tree_options_free(same) == FRONDB_OK);
  FAILS(FRONDB_NOT_FOUND, frondb_tree_put(tree, frondb_text("a"), frondb_text("b")));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  OK(frondb_db_drop_tree(db, "two"));
}

static void keys(frondb_db *db) {
  frondb_tree *tree = make_tree(db, "keys");
  frondb_buffer *buffer;
  frondb_snapshot *before;
  frondb_slice wanted[3], values[3], end = frondb_text("c");
  frondb_estimate estimate;
  char small[3];
  size_t len;
  bool found;
  OK(frondb_buffer_new(&buffer));
  CHECK(frondb_buffer_value(buffer).len == 0);
  PUT(tree, "a", "1");
  OK(frondb_tree_put(tree, frondb_bytes("z\0z", 3), frondb_bytes("\0", 1)));
  OK(frondb_tree_put(tree, frondb_bytes(NULL, 0), frondb_text("of the empty key")));
  OK(frondb_db_snapshot(db, &before));
  PUT(tree, "a", "2");
  PUT(tree, "b", "");

  OK(frondb_tree_get(tree, frondb_text("a"), NULL, buffer, &found));
  CHECK(found && is(frondb_buffer_value(buffer), "2"));
  OK(frondb_tree_get(tree, frondb_text("a"), before, buffer, &found));
  CHECK(found && is(frondb_buffer_value(buffer), "1"));
  OK(frondb_tree_get(tree, frondb_text("nothing"), NULL, buffer, &found));
  CHECK(!found && frondb_buffer_value(buffer).len == 0);
  OK(frondb_tree_get(tree, frondb_bytes("z\0z", 3), NULL, buffer, &found));
  CHECK(found && frondb_buffer_value(buffer).len == 1 && *frondb_buffer_value(buffer).data == 0);
  OK(frondb_tree_get_into(tree, frondb_bytes(NULL, 0), NULL, small, sizeof small, &len, &found));
  CHECK(found && len == strlen("of the empty key") && memcmp(small, "of ", 3) == 0);
  OK(frondb_tree_get_into(tree, frondb_text("a"), NULL, NULL, 0, &len, &found));
  CHECK(found && len == 1);

  OK(frondb_tree_exists(tree, frondb_text("b"), NULL, &found));
  CHECK(found);
  OK(frondb_tree_exists(tree, frondb_text("b"), before, &found));
  CHECK(!found);
  wanted[0] = frondb_text("b");
  wanted[1] = frondb_text("nothing");
  wanted[2] = frondb_text("a");
  OK(frondb_tree_multi_get(tree, wanted, 3, NULL, buffer, values));
  CHECK(values[0].data != NULL && values[0].len == 0);
  CHECK(values[1].data == NULL && is(values[2], "2"));
  OK(frondb_tree_multi_get(tree, wanted, 3, before, buffer, values));
  CHECK(values[0].data == NULL && is(values[2], "1"));
  OK(frondb_tree_multi_get(tree, NULL, 0, NULL, buffer, NULL));

  OK(frondb_tree_estimate(tree, frondb_text("a"), &end, &estimate));
  CHECK(estimate.entries >= 1 && estimate.entries <= 4);
  frondb_first_entries first;
  OK(frondb_tree_estimate_first(tree, frondb_text("a"), &end, 100, &first));
  CHECK(first.count == estimate.entries && first.is_all && !first.is_estimate);
  OK(frondb_tree_estimate_first(tree, frondb_text("a"), NULL, 1, &first));
  CHECK(first.count <= 1 && !first.is_all);
  frondb_message_counts part, whole;
  OK(frondb_tree_messages(tree, frondb_text("a"), &end, &part));
  OK(frondb_tree_messages(tree, frondb_bytes(NULL, 0), NULL, &whole));
  CHECK(part.all >= 1 && part.all <= whole.all && whole.base <= whole.all);
  OK(frondb_tree_messages(tree, end, &end, &part));
  CHECK(part.all == 0);
  frondb_list *cuts;
  OK(frondb_tree_split_keys(tree, 2, &cuts));
  frondb_slice cut;
  CHECK(frondb_list_count(cuts) == 1);
  OK(frondb_list_get(cuts, 0, &cut));
  CHECK(cut.len > 0);
  frondb_list_free(cuts);
  OK(frondb_tree_split_keys(tree, 1, &cuts));
  CHECK(frondb_list_count(cuts) == 0);
  frondb_list_free(cuts);
  OK(frondb_tree_delete_range(tree, frondb_text("a"), &end));
  OK(frondb_tree_exists(tree, frondb_text("a"), NULL, &found));
  CHECK(!found);
  OK(frondb_tree_delete(tree, frondb_bytes("z\0z", 3)));
  OK(frondb_tree_exists(tree, frondb_bytes("z\0z", 3), NULL, &found));
  CHECK(!found);
  OK(frondb_tree_delete_range(tree, frondb_bytes(NULL, 0), NULL));
  OK(frondb_tree_exists(tree, frondb_bytes(NULL, 0), NULL, &found));
  CHECK(!found);
  CHECK(frondb_snapshot_free(before) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
}

static void batches(frondb_db *db) {
  frondb_tree *rows = make_tree(db, "rows"), *index = make_tree(db, "index");
  frondb_batch *batch;
  frondb_batch_size size;
  frondb_db *fast;
  frondb_tree *unsynced;
  frondb_slice hi = frondb_text("r5");
  uint64_t most;
  char key[8];
  int i;
  OK(frondb_batch_new(&batch));
  for (i = 0; i < 10; i++) {
    sprintf(key, "r%d", i);
    OK(frondb_batch_put(batch, rows, frondb_text(key), frondb_text("row")));
    OK(frondb_batch_put(batch, index, frondb_text(key + 1), frondb_text(key)));
  }
  OK(frondb_batch_delete(batch, rows, frondb_text("r9")));
  OK(frondb_batch_delete_range(batch, rows, frondb_text("r2"), &hi));
  OK(frondb_batch_measure(batch, &size));
  CHECK(size.writes == 22 && size.log_bytes > 22 && size.memory_bytes > 22);
  OK(frondb_db_batch_bytes_max(db, &most));
  CHECK(most >= 1 << 20);
  OK(frondb_db_write(db, batch, FRONDB_NO_SYNC));
  CHECK(has(rows, "r1", "row") && !has(rows, "r2", "row") && has(rows, "r5", "row"));
  CHECK(!has(rows, "r9", "row") && has(index, "9", "r9"));
  OK(frondb_batch_set_frees_space(batch));
  OK(frondb_batch_exempt_from_pacing(batch));
  OK(frondb_batch_clear(batch));
  OK(frondb_batch_measure(batch, &size));
  CHECK(size.writes == 0);
  OK(frondb_db_write(db, batch, FRONDB_SYNC));
  FAILS(FRONDB_INVALID, frondb_db_write(db, batch, 5));
  CHECK(frondb_batch_free(batch) == FRONDB_OK);

  OK(frondb_db_with_commit_sync(db, FRONDB_NO_SYNC, &fast));
  OK(frondb_db_open_tree(fast, "rows", &unsynced));
  CHECK(frondb_db_free(fast) == FRONDB_OK);
  PUT(unsynced, "r1", "changed");
  CHECK(has(rows, "r1", "changed"));
  CHECK(frondb_tree_free(unsynced) == FRONDB_OK);
  OK(frondb_db_sync(db));
  CHECK(frondb_tree_free(rows) == FRONDB_OK);
  CHECK(frondb_tree_free(index) == FRONDB_OK);
}

static int seen(void *user_data, const char *tree, uint64_t done_bytes, uint64_t to_do) {
  CHECK(tree[0] != 0 && done_bytes <= to_do);
  ++*(int *)user_data;
  return 0;
}

static int stop(void *user_data, const char *tree, uint64_t done_bytes, uint64_t to_do) {
  (void)user_data, (void)tree, (void)done_bytes, (void)to_do;
  return 1;
}

static void stats(frondb_db *db) {
  frondb_stats *stats;
  frondb_list *faults;
  frondb_tree *tree;
  const char *name;
  uint64_t value, trees_open;
  size_t i;
  int calls = 0;
  bool did = true;
  OK(frondb_db_flush(db));
  OK(frondb_db_checkpoint(db));
  OK(frondb_db_wait_settled(db));
  CHECK(frondb_db_is_settled(db));
  while (did) OK(frondb_db_run_one(db, true, &did));
  OK(frondb_db_stats(db, &stats));
  CHECK(frondb_stats_count(stats) > 30);
  OK(frondb_stats_find(stats, "trees", &trees_open));
  CHECK(trees_open == 3);
  FAILS(FRONDB_NOT_FOUND, frondb_stats_find(stats, "no such", &value));
  for (i = 0; i < frondb_stats_count(stats); i++) {
    OK(frondb_stats_get(stats, i, &name, &value));
    if (strcmp(name, "trees") == 0) CHECK(value == trees_open);
  }
  FAILS(FRONDB_INVALID, frondb_stats_get(stats, i, &name, NULL));
  CHECK(strstr(frondb_stats_text(stats), "memory_total") != NULL);
  CHECK(frondb_stats_free(stats) == FRONDB_OK);

  OK(frondb_db_wear(db, 600, &stats));
  {
    const char *causes[] = {"log", "flush", "merge", "relocation", "manifest", "private_runs", "large_values"};
    uint64_t all, sum = 0;
    char of[64];
    OK(frondb_stats_find(stats, "total_bytes", &all));
    for (i = 0; i < 7; i++) {
      snprintf(of, sizeof of, "total_%s_bytes", causes[i]);
      OK(frondb_stats_find(stats, of, &value));
      sum += value;
    }
    CHECK(all > 0 && all == sum);
    OK(frondb_stats_find(stats, "last_hour_user_bytes", &value));
  }
  CHECK(strstr(frondb_stats_text(stats), "600 TBW") != NULL);
  CHECK(frondb_stats_free(stats) == FRONDB_OK);
  OK(frondb_db_wear(db, 0, &stats));
  CHECK(strstr(frondb_stats_text(stats), "TBW") == NULL);
  CHECK(strstr(frondb_stats_text(stats), "amplification") != NULL);
  CHECK(frondb_stats_free(stats) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_db_wear(db, -1, &stats));

  OK(frondb_db_open_tree(db, "rows", &tree));
  OK(frondb_tree_stats(tree, &stats));
  OK(frondb_stats_find(stats, "entries", &value));
  CHECK(value > 0);
  CHECK(frondb_stats_free(stats) == FRONDB_OK);

  OK(frondb_db_verify(db, seen, &calls, &stats, &faults));
  CHECK(calls > 0 && frondb_list_count(faults) == 0);
  OK(frondb_stats_find(stats, "runs", &value));
  CHECK(value > 0);
  CHECK(frondb_stats_free(stats) == FRONDB_OK && frondb_list_free(faults) == FRONDB_OK);
  OK(frondb_tree_verify(tree, NULL, NULL, NULL, NULL));
  FAILS(FRONDB_CANCELLED, frondb_tree_verify(tree, stop, NULL, NULL, NULL));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
}

/* Checks the parts of the key that tuples() has made. */
static void decoded(frondb_tuple *tuple, frondb_slice key) {
  static const unsigned char two_pow_64[] = {0x29, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  frondb_part part;
  OK(frondb_tuple_decode(tuple, key));
  CHECK(frondb_tuple_count(tuple) == 8);
  CHECK(frondb_tuple_key(tuple).len == key.len);
  OK(frondb_tuple_get(tuple, 0, &part));
  CHECK(part.type == FRONDB_PART_STRING && !part.descending && is(part.bytes, "cpu"));
  OK(frondb_tuple_get(tuple, 1, &part));
  CHECK(part.type == FRONDB_PART_INT && part.integer == -5 && part.unsigned_integer == 0);
  OK(frondb_tuple_get(tuple, 2, &part));
  CHECK(part.type == FRONDB_PART_INT && part.integer == 7 && part.unsigned_integer == 7);
  CHECK(part.descending && part.bytes.data == NULL);
  OK(frondb_tuple_get(tuple, 3, &part));
  CHECK(part.type == FRONDB_PART_NULL && !part.descending);
  OK(frondb_tuple_get(tuple, 4, &part));
  CHECK(part.type == FRONDB_PART_BOOL && part.boolean);
  OK(frondb_tuple_get(tuple, 5, &part));
  CHECK(part.type == FRONDB_PART_FLOAT && part.number == 0.5);
  OK(frondb_tuple_get(tuple, 6, &part));
  CHECK(part.type == FRONDB_PART_DOUBLE && part.number == 0.5 && part.descending);
  OK(frondb_tuple_get(tuple, 7, &part));
  CHECK(part.type == FRONDB_PART_BYTES && part.bytes.len == 2);
  CHECK(memcmp(part.bytes.data, "\0x", 2) == 0);
  FAILS(FRONDB_INVALID, frondb_tuple_get(tuple, 8, &part));
  FAILS(FRONDB_INVALID, frondb_tuple_get(tuple, 0, NULL));
  FAILS(FRONDB_INVALID, frondb_tuple_get(NULL, 0, &part));
  /* Added parts follow the decoded parts. */
  OK(frondb_tuple_add_uint(tuple, UINT64_MAX, false));
  OK(frondb_tuple_get(tuple, 8, &part));
  CHECK(part.type == FRONDB_PART_UINT && part.unsigned_integer == UINT64_MAX);
  CHECK(part.integer == 0);
  OK(frondb_tuple_decode(tuple, frondb_bytes(two_pow_64, sizeof two_pow_64)));
  OK(frondb_tuple_get(tuple, 0, &part));
  CHECK(part.type == FRONDB_PART_WIDE && is(part.bytes, "18446744073709551616"));
  FAILS(FRONDB_INVALID, frondb_tuple_decode(tuple, frondb_text("no tuple")));
  CHECK(frondb_tuple_count(tuple) == 0 && frondb_tuple_key(tuple).len == 0);
}

static void tuples(void) {
  frondb_tuple *tuple;
  frondb_buffer *buffer;
  unsigned char first[64];
  size_t first_len;
  bool found;
  OK(frondb_tuple_new(&tuple));
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tuple_add_string(tuple, frondb_text("cpu"), false));
  OK(frondb_tuple_add_int(tuple, -5, false));
  OK(frondb_tuple_add_uint(tuple, 7, true));
  OK(frondb_tuple_add_null(tuple, false));
  OK(frondb_tuple_add_bool(tuple, true, false));
  OK(frondb_tuple_add_float(tuple, 0.5F, false));
  OK(frondb_tuple_add_double(tuple, 0.5, true));
  OK(frondb_tuple_add_bytes(tuple, frondb_bytes("\0x", 2), false));
  first_len = frondb_tuple_key(tuple).len;
  CHECK(first_len > 20 && first_len <= sizeof first);
  memcpy(first, frondb_tuple_key(tuple).data, first_len);
  OK(frondb_tuple_clear(tuple));
  OK(frondb_tuple_add_string(tuple, frondb_text("cpu"), false));
  OK(frondb_tuple_add_int(tuple, -5, false));
  /* The key lies between the prefix and the prefix's end. */
  CHECK(memcmp(frondb_tuple_key(tuple).data, first, frondb_tuple_key(tuple).len) == 0);
  OK(frondb_prefix_end(frondb_tuple_key(tuple), buffer, &found));
  CHECK(found && memcmp(first, frondb_buffer_value(buffer).data,
                        frondb_buffer_value(buffer).len) < 0);
  OK(frondb_prefix_end(frondb_bytes("\xff", 1), buffer, &found));
  CHECK(!found);
  /* A greater descending part sorts first. */
  OK(frondb_tuple_add_uint(tuple, 8, true));
  CHECK(memcmp(frondb_tuple_key(tuple).data, first, frondb_tuple_key(tuple).len) < 0);
  FAILS(FRONDB_INVALID, frondb_tuple_add_string(tuple, frondb_text("\xff"), false));
  decoded(tuple, frondb_bytes(first, first_len));
  CHECK(frondb_tuple_free(tuple) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
}

static bool holds(frondb_buffer *buffer, const char *text) {
  return is(frondb_buffer_value(buffer), text);
}

/* Calls that return the previous value, and opening a tree that may not exist. */
static void exchanges(frondb_db *db) {
  frondb_tree *tree, *again;
  frondb_txn *txn;
  frondb_buffer *key, *value;
  bool found;
  OK(frondb_buffer_new(&key));
  OK(frondb_buffer_new(&value));
  OK(frondb_db_open_or_create_tree(db, "queue", NULL, &tree));
  OK(frondb_tree_replace(tree, frondb_text("1"), frondb_text("a"), value, &found));
  CHECK(!found);
  OK(frondb_tree_replace(tree, frondb_text("1"), frondb_text("b"), value, &found));
  CHECK(found && holds(value, "a"));
  OK(frondb_db_open_or_create_tree(db, "queue", NULL, &again));
  CHECK(has(again, "1", "b"));
  CHECK(frondb_tree_free(again) == FRONDB_OK);
  OK(frondb_tree_take(tree, frondb_text("1"), value, &found));
  CHECK(found && holds(value, "b"));
  OK(frondb_tree_take(tree, frondb_text("1"), value, &found));
  CHECK(!found && frondb_buffer_value(value).len == 0);
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_replace(txn, tree, frondb_text("2"), frondb_text("two"), value, &found));
  CHECK(!found);
  OK(frondb_txn_put(txn, tree, frondb_text("3"), frondb_text("three")));
  OK(frondb_txn_pop(txn, tree, false, FRONDB_SKIP_LOCKED, key, value, &found));
  CHECK(found && holds(key, "2") && holds(value, "two"));
  OK(frondb_txn_take(txn, tree, frondb_text("3"), value, &found));
  CHECK(found && holds(value, "three"));
  OK(frondb_txn_pop(txn, tree, true, FRONDB_WAIT, key, value, &found));
  CHECK(!found && frondb_buffer_value(key).len == 0);
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK && frondb_tree_free(tree) == FRONDB_OK);
  CHECK(frondb_buffer_free(key) == FRONDB_OK && frondb_buffer_free(value) == FRONDB_OK);
}

/* Reads the wear of a database that is not open. */
static void recorded(const char *path) {
  frondb_stats *wear;
  uint64_t bytes;
  OK(frondb_recorded_wear(path, 600, &wear));
  OK(frondb_stats_find(wear, "total_bytes", &bytes));
  CHECK(bytes > 0 && strstr(frondb_stats_text(wear), "600 TBW") != NULL);
  CHECK(frondb_stats_free(wear) == FRONDB_OK);
  FAILS(FRONDB_NOT_FOUND, frondb_recorded_wear("/no/such/database", 0, &wear));
  CHECK(wear == NULL);
  FAILS(FRONDB_INVALID, frondb_recorded_wear(path, -1, &wear));
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  frondb_stats *recovery;
  uint64_t created, replayed;
  CHECK(argc == 2);
  CHECK(strcmp(frondb_version(), FRONDB_VERSION) == 0);
  options_and_errors(argv[1]);
  db = open_small(argv[1], NULL);
  trees(db);
  keys(db);
  batches(db);
  stats(db);
  tuples();
  OK(frondb_db_open_tree(db, "rows", &tree));
  PUT(tree, "kept", "by the log");
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  /* The database is freed without a close, so the next open replays the log. */
  CHECK(frondb_db_free(db) == FRONDB_OK);
  db = open_small(argv[1], NULL);
  OK(frondb_db_recovery(db, &recovery));
  OK(frondb_stats_find(recovery, "created", &created));
  OK(frondb_stats_find(recovery, "records", &replayed));
  CHECK(created == 0 && replayed > 0 && frondb_stats_text(recovery)[0] != 0);
  CHECK(frondb_stats_free(recovery) == FRONDB_OK);
  OK(frondb_db_open_tree(db, "rows", &tree));
  CHECK(has(tree, "kept", "by the log"));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  exchanges(db);
  close_all(db);
  recorded(argv[1]);
  return done();
}
