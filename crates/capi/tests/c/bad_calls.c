/* Wrong calls: each gets an error, and none causes harm. */
#include "check.h"

/* Pointers that are not handles: NULL, numbers, addresses, and handles of other types. */
static size_t wrong_handles(void *handles[], frondb_db *db, frondb_error *error) {
  static int memory;
  size_t n = 0;
  handles[n++] = NULL;
  handles[n++] = (void *)(uintptr_t)1;
  handles[n++] = (void *)UINTPTR_MAX;
  handles[n++] = &memory;
  handles[n++] = (char *)db + 1;
  handles[n++] = error;
  return n;
}

static void wrong_types(frondb_db *db, frondb_tree *tree) {
  frondb_error *error = frondb_db_open_tree(db, "nothing", &(frondb_tree *){NULL});
  void *handles[8];
  size_t n = wrong_handles(handles, db, error), i;
  frondb_slice key = frondb_text("k"), slice;
  frondb_buffer *buffer;
  frondb_batch *batch;
  frondb_rows rows;
  frondb_txn *txn;
  size_t len;
  bool found;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_batch_new(&batch));
  for (i = 0; i < n; i++) {
    void *wrong = handles[i];
    FAILS(FRONDB_INVALID, frondb_db_close(wrong));
    FAILS(FRONDB_INVALID, frondb_db_begin(wrong, NULL, &txn));
    FAILS(FRONDB_INVALID, frondb_db_write(wrong, batch, FRONDB_SYNC));
    FAILS(FRONDB_INVALID, frondb_db_write(db, wrong, FRONDB_SYNC));
    FAILS(FRONDB_INVALID, frondb_tree_get(wrong, key, NULL, buffer, &found));
    FAILS(FRONDB_INVALID, frondb_tree_get(tree, key, NULL, wrong, &found));
    FAILS(FRONDB_INVALID, frondb_tree_put(wrong, key, key));
    FAILS(FRONDB_INVALID, frondb_batch_put(wrong, tree, key, key));
    FAILS(FRONDB_INVALID, frondb_batch_put(batch, wrong, key, key));
    FAILS(FRONDB_INVALID, frondb_cursor_next(wrong, &found));
    FAILS(FRONDB_INVALID, frondb_cursor_key(wrong, &slice));
    FAILS(FRONDB_INVALID, frondb_cursor_next_batch(wrong, 1, 1, &rows));
    FAILS(FRONDB_INVALID, frondb_txn_commit(wrong));
    FAILS(FRONDB_INVALID, frondb_txn_put(wrong, tree, key, key));
    FAILS(FRONDB_INVALID, frondb_txn_cancel(wrong));
    FAILS(FRONDB_INVALID, frondb_txn_write_entries(wrong, NULL, 0, true, NULL, NULL));
    FAILS(FRONDB_INVALID, frondb_committing_wait(wrong));
    FAILS(FRONDB_INVALID, frondb_list_get(wrong, 0, &slice));
    FAILS(FRONDB_INVALID, frondb_options_set(wrong, "create", "on"));
    FAILS(FRONDB_INVALID, frondb_tuple_add_null(wrong, false));
    CHECK(frondb_list_count(wrong) == 0 && frondb_stats_count(wrong) == 0);
    CHECK(frondb_stats_text(wrong)[0] == 0);
    CHECK(!frondb_db_is_settled(wrong));
    CHECK(frondb_buffer_value(wrong).len == 0 && frondb_tuple_key(wrong).len == 0);
    CHECK(!frondb_cursor_is_valid(wrong));
    CHECK(frondb_tree_free(wrong) == (wrong == NULL ? FRONDB_OK : FRONDB_INVALID));
    CHECK(frondb_txn_free(wrong) == (wrong == NULL ? FRONDB_OK : FRONDB_INVALID));
    if (wrong != NULL) {
      FAILS(FRONDB_INVALID, frondb_tree_get_into(tree, key, wrong, NULL, 0, &len, &found));
      FAILS(FRONDB_INVALID, frondb_db_begin(db, wrong, &txn));
      CHECK(txn == NULL);
    }
    if (wrong != error) {
      CHECK(frondb_error_kind(wrong) == (wrong == NULL ? FRONDB_OK : FRONDB_INVALID));
      CHECK(frondb_error_message(wrong)[0] != 0 && frondb_error_os_code(wrong) == 0);
    }
  }
  CHECK(frondb_error_free(error) == FRONDB_OK);
  CHECK(frondb_error_free(error) == FRONDB_INVALID);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  CHECK(frondb_batch_free(batch) == FRONDB_OK);
  CHECK(strcmp(frondb_kind_name(99), "?") == 0);
}

static void wrong_memory(frondb_db *db, frondb_tree *tree) {
  frondb_slice key = frondb_text("k"), bad = frondb_bytes(NULL, 1), endless = key;
  frondb_buffer *buffer;
  frondb_batch *batch;
  char *long_key = calloc(1, 40000);
  size_t len;
  bool found;
  CHECK(long_key != NULL);
  endless.len = SIZE_MAX;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_batch_new(&batch));
  FAILS(FRONDB_INVALID, frondb_tree_put(tree, bad, key));
  FAILS(FRONDB_INVALID, frondb_tree_put(tree, key, bad));
  FAILS(FRONDB_INVALID, frondb_tree_put(tree, endless, key));
  FAILS(FRONDB_INVALID, frondb_tree_put(tree, frondb_bytes(long_key, 40000), key));
  FAILS(FRONDB_INVALID, frondb_tree_get(tree, key, NULL, buffer, NULL));
  OK(frondb_tree_put(tree, key, key));
  FAILS(FRONDB_INVALID, frondb_tree_get_into(tree, key, NULL, NULL, 1, &len, &found));
  FAILS(FRONDB_INVALID, frondb_tree_multi_get(tree, NULL, 1, NULL, buffer, &bad));
  FAILS(FRONDB_INVALID, frondb_tree_multi_get(tree, &key, 1, NULL, buffer, NULL));
  FAILS(FRONDB_INVALID, frondb_tree_multi_get(tree, &key, SIZE_MAX, NULL, buffer, &bad));
  FAILS(FRONDB_INVALID, frondb_batch_delete_range(batch, tree, key, &bad));
  FAILS(FRONDB_INVALID, frondb_batch_new(NULL));
  FAILS(FRONDB_INVALID, frondb_db_open(NULL, NULL, &db));
  CHECK(db == NULL);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  CHECK(frondb_batch_free(batch) == FRONDB_OK);
  free(long_key);
}

static size_t count_locks(frondb_db *db) {
  frondb_list *locks;
  size_t count;
  OK(frondb_db_locks(db, 0, &locks));
  count = frondb_list_count(locks);
  CHECK(frondb_list_free(locks) == FRONDB_OK);
  return count;
}

/* A failed call sets its output flags to false and its output handles to NULL, so that no old
 * value looks like a result. */
static void places_are_cleared(frondb_db *db, frondb_tree *tree) {
  frondb_slice key = frondb_text("k"), bad = frondb_bytes(NULL, 1);
  char memory[8];
  frondb_buffer *buffer;
  size_t len;
  bool found;
  void *place;
  OK(frondb_buffer_new(&buffer));
#define CLEARS_FLAG(call)   \
  found = true;             \
  FAILS(FRONDB_INVALID, call); \
  CHECK(!found)
  CLEARS_FLAG(frondb_tree_get(NULL, key, NULL, buffer, &found));
  CLEARS_FLAG(frondb_tree_get(tree, key, NULL, NULL, &found));
  CLEARS_FLAG(frondb_tree_get_into(NULL, key, NULL, memory, sizeof memory, &len, &found));
  CLEARS_FLAG(frondb_tree_exists(NULL, key, NULL, &found));
  CLEARS_FLAG(frondb_prefix_end(bad, buffer, &found));
  CLEARS_FLAG(frondb_cursor_next(NULL, &found));
  CLEARS_FLAG(frondb_txn_get(NULL, tree, key, FRONDB_LOCK_NONE, FRONDB_WAIT, buffer, &found));
  CLEARS_FLAG(frondb_txn_get_into(NULL, tree, key, FRONDB_LOCK_NONE, FRONDB_WAIT, memory,
                                  sizeof memory, &len, &found));
  CLEARS_FLAG(frondb_txn_exists(NULL, tree, key, &found));
  CLEARS_FLAG(frondb_db_run_one(NULL, true, &found));
#define CLEARS_HANDLE(call) \
  place = memory;           \
  FAILS(FRONDB_INVALID, call); \
  CHECK(place == NULL)
  CLEARS_HANDLE(frondb_txn_cursor(NULL, tree, key, NULL, FRONDB_LOCK_NONE, FRONDB_WAIT,
                                  (frondb_cursor **)&place));
  CLEARS_HANDLE(frondb_txn_commit_in_order(NULL, (frondb_committing **)&place));
  CLEARS_HANDLE(frondb_tree_cursor(NULL, key, NULL, NULL, (frondb_cursor **)&place));
  CLEARS_HANDLE(frondb_tree_stats(NULL, (frondb_stats **)&place));
  CLEARS_HANDLE(frondb_tree_verify(NULL, NULL, NULL, (frondb_stats **)&place, NULL));
  CLEARS_HANDLE(frondb_db_verify(NULL, NULL, NULL, NULL, (frondb_list **)&place));
  CLEARS_HANDLE(frondb_db_stats(NULL, (frondb_stats **)&place));
  CLEARS_HANDLE(frondb_db_wear(NULL, 0, (frondb_stats **)&place));
  CLEARS_HANDLE(frondb_db_recovery(NULL, (frondb_stats **)&place));
  CLEARS_HANDLE(frondb_db_list_trees(NULL, (frondb_list **)&place));
  CLEARS_HANDLE(frondb_db_prepared(NULL, (frondb_list **)&place));
  CLEARS_HANDLE(frondb_db_locks(NULL, 0, (frondb_list **)&place));
  CLEARS_HANDLE(frondb_db_transactions(NULL, (frondb_list **)&place));
  CLEARS_HANDLE(frondb_recorded_wear(NULL, 0, (frondb_stats **)&place));
  CLEARS_HANDLE(frondb_device_measure(NULL, NULL, NULL, NULL, (frondb_stats **)&place));
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  CHECK(count_locks(db) == 0);
}

/* A call with a wrong argument does nothing; in particular, none of its reads locks a key. */
static void nothing_is_done(frondb_db *db, frondb_tree *tree) {
  frondb_slice key = frondb_text("k"), value;
  void *handles[8];
  size_t n = wrong_handles(handles, db, NULL), i, len;
  frondb_txn_options *options;
  frondb_buffer *buffer;
  frondb_txn *txn;
  bool found;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_txn_options_new(&options));
  OK(frondb_txn_options_set_isolation(options, FRONDB_SERIALIZABLE));
  OK(frondb_db_begin(db, options, &txn));
  for (i = 0; i < n; i++) {
    FAILS(FRONDB_INVALID, frondb_txn_get(txn, tree, key, FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT,
                                         handles[i], &found));
    FAILS(FRONDB_INVALID, frondb_txn_multi_get(txn, tree, &key, 1, handles[i], &value));
  }
  FAILS(FRONDB_INVALID, frondb_txn_get(txn, tree, key, FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT, buffer,
                                       NULL));
  FAILS(FRONDB_INVALID, frondb_txn_get_into(txn, tree, key, FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT,
                                            NULL, 1, &len, &found));
  FAILS(FRONDB_INVALID, frondb_txn_multi_get(txn, tree, &key, 1, buffer, NULL));
  CHECK(count_locks(db) == 0);
  OK(frondb_txn_get(txn, tree, key, FRONDB_LOCK_NONE, FRONDB_WAIT, buffer, &found));
  CHECK(count_locks(db) == 1);
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  CHECK(frondb_txn_options_free(options) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
}

/* A wrong place for a result fails a call that would have no result, too. */
static void places_are_checked_first(frondb_db *db, frondb_tree *tree, const char *path) {
  frondb_slice key = frondb_text("k");
  void *handles[8];
  size_t n = wrong_handles(handles, db, NULL), i;
  frondb_txn *txn;
  bool is_outdated, found;
  OK(frondb_db_begin(db, NULL, &txn));
  for (i = 0; i < n; i++) {
    FAILS(FRONDB_INVALID, frondb_txn_get_outdated(txn, tree, key, handles[i], &is_outdated, &found));
  }
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_recorded_wear("/no/such/database", 0, NULL));
  FAILS(FRONDB_INVALID, frondb_recorded_wear(path, 0, NULL));
  FAILS(FRONDB_INVALID, frondb_device_measure("/no/such/directory", NULL, NULL, NULL, NULL));
}

/* Only a new tree gets the default options for NULL. */
static void missing_options_do_not_reset(frondb_tree *tree) {
  frondb_tree_options *options;
  frondb_buffer *buffer;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tree_options_of(tree, &options));
  OK(frondb_tree_options_set(options, "codec", "lz4"));
  OK(frondb_tree_set_options(tree, options));
  FAILS(FRONDB_INVALID, frondb_tree_set_options(tree, NULL));
  FAILS(FRONDB_INVALID, frondb_tree_set_options(tree, (frondb_tree_options *)buffer));
  CHECK(frondb_tree_options_free(options) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
}

static void after_the_end(frondb_db *db, frondb_tree *tree) {
  frondb_slice key = frondb_text("k");
  frondb_txn *txn;
  frondb_cursor *cursor;
  bool found;
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_cursor(txn, tree, key, NULL, FRONDB_LOCK_NONE, FRONDB_WAIT, &cursor));
  OK(frondb_txn_commit(txn));
  FAILS(FRONDB_INVALID, frondb_txn_put(txn, tree, key, key));
  FAILS(FRONDB_INVALID, frondb_txn_commit(txn));
  FAILS(FRONDB_INVALID, frondb_txn_set_savepoint(txn, &(uint64_t){0}));
  FAILS(FRONDB_INVALID, frondb_cursor_first(cursor, &found));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  CHECK(frondb_txn_free(txn) == FRONDB_INVALID);
  FAILS(FRONDB_INVALID, frondb_txn_put(txn, tree, key, key));
  FAILS(FRONDB_INVALID, frondb_cursor_first(cursor, &found));
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_cursor_first(cursor, &found));
  OK(frondb_tree_cursor(tree, key, NULL, NULL, &cursor));
  FAILS(FRONDB_INVALID, frondb_cursor_unlock(cursor));
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
}

static void of_another_database(frondb_db *db, frondb_tree *tree, const char *path) {
  char other_path[4096];
  frondb_slice key = frondb_text("k");
  frondb_db *other;
  frondb_tree *foreign;
  frondb_batch *batch;
  frondb_snapshot *snapshot;
  frondb_cursor *cursor;
  frondb_txn *txn;
  bool found;
  sprintf(other_path, "%s-other", path);
  other = open_small(other_path, NULL);
  foreign = make_tree(other, "t");
  OK(frondb_batch_new(&batch));
  OK(frondb_batch_put(batch, foreign, key, key));
  FAILS(FRONDB_INVALID, frondb_db_write(db, batch, FRONDB_SYNC));
  OK(frondb_batch_put(batch, tree, key, key));
  FAILS(FRONDB_INVALID, frondb_db_write(db, batch, FRONDB_SYNC));
  OK(frondb_db_snapshot(other, &snapshot));
  FAILS(FRONDB_INVALID, frondb_tree_exists(tree, key, snapshot, &found));
  FAILS(FRONDB_INVALID, frondb_tree_cursor(tree, key, NULL, snapshot, &cursor));
  CHECK(cursor == NULL);
  OK(frondb_db_begin(db, NULL, &txn));
  FAILS(FRONDB_INVALID, frondb_txn_put(txn, foreign, key, key));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  CHECK(frondb_snapshot_free(snapshot) == FRONDB_OK);
  CHECK(frondb_batch_free(batch) == FRONDB_OK);
  CHECK(frondb_tree_free(foreign) == FRONDB_OK);
  close_all(other);
}

static void after_close(frondb_db *db, frondb_tree *tree) {
  frondb_slice key = frondb_text("k");
  frondb_txn *txn, *late;
  frondb_snapshot *snapshot;
  frondb_cursor *cursor;
  bool found;
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_put(txn, tree, key, key));
  OK(frondb_tree_cursor(tree, key, NULL, NULL, &cursor));
  OK(frondb_cursor_first(cursor, &found));
  OK(frondb_db_close(db));
  OK(frondb_db_close(db));
  FAILS(FRONDB_CLOSED, frondb_tree_put(tree, key, key));
  FAILS(FRONDB_CLOSED, frondb_tree_exists(tree, key, NULL, &found));
  FAILS(FRONDB_CLOSED, frondb_txn_commit(txn));
  FAILS(FRONDB_CLOSED, frondb_db_begin(db, NULL, &late));
  FAILS(FRONDB_CLOSED, frondb_db_snapshot(db, &snapshot));
  FAILS(FRONDB_CLOSED, frondb_cursor_next(cursor, &found));
  CHECK(frondb_db_free(db) == FRONDB_OK);
  CHECK(frondb_db_free(db) == FRONDB_INVALID);
  FAILS(FRONDB_INVALID, frondb_db_close(db));
  /* The remaining handles may be freed in any order. */
  FAILS(FRONDB_CLOSED, frondb_tree_put(tree, key, key));
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  tree = make_tree(db, "t");
  wrong_types(db, tree);
  wrong_memory(db, tree);
  places_are_cleared(db, tree);
  nothing_is_done(db, tree);
  places_are_checked_first(db, tree, argv[1]);
  missing_options_do_not_reset(tree);
  after_the_end(db, tree);
  of_another_database(db, tree, argv[1]);
  after_close(db, tree);
  return done();
}
