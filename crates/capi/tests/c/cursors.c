/* Cursors, step by step and in batches, in both directions, plain and of transactions. */
#include "check.h"

#define ROWS 10000u

static void fill(frondb_db *db, frondb_tree *tree, uint32_t first, uint32_t step) {
  frondb_batch *batch;
  unsigned char key[4];
  char value[32];
  uint32_t i;
  OK(frondb_batch_new(&batch));
  for (i = first; i < ROWS; i += step) {
    sprintf(value, "value %u", (unsigned)i);
    OK(frondb_batch_put(batch, tree, number_key(key, i), frondb_text(value)));
  }
  OK(frondb_db_write(db, batch, FRONDB_NO_SYNC));
  CHECK(frondb_batch_free(batch) == FRONDB_OK);
}

static void check_row(const frondb_entry *row, uint32_t number) {
  char value[32];
  CHECK(key_number(row->key) == number);
  sprintf(value, "value %u", (unsigned)number);
  CHECK(is(row->value, value));
}

/* Reads all rows in batches of several sizes, in both directions. */
static void scan_batches(frondb_cursor *cursor) {
  const size_t sizes[] = {1, 7, 100, 1 << 20};
  frondb_rows rows;
  bool found;
  size_t s, i;
  uint32_t next;
  for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    OK(frondb_cursor_first(cursor, &found));
    CHECK(found);
    for (next = 0;;) {
      OK(frondb_cursor_next_batch(cursor, sizes[s], 1 << 20, &rows));
      CHECK(rows.is_end == (rows.count < sizes[s]));
      if (rows.count == 0) break;
      CHECK(rows.count <= sizes[s]);
      for (i = 0; i < rows.count; i++) check_row(&rows.entries[i], next++);
    }
    CHECK(next == ROWS);
    OK(frondb_cursor_last(cursor, &found));
    for (;;) {
      OK(frondb_cursor_prev_batch(cursor, sizes[s], 1 << 20, &rows));
      CHECK(rows.is_end == (rows.count < sizes[s]));
      if (rows.count == 0) break;
      for (i = 0; i < rows.count; i++) check_row(&rows.entries[i], --next);
    }
    CHECK(next == 0);
  }
}

static void steps_and_batches(frondb_cursor *cursor) {
  frondb_rows rows;
  frondb_entry entry;
  frondb_slice key, value;
  unsigned char memory[4];
  bool found;
  /* After a seek, a batch begins with the cursor's entry; after a step, with the entry that
   * follows. */
  OK(frondb_cursor_seek(cursor, number_key(memory, 500), &found));
  OK(frondb_cursor_key(cursor, &key));
  OK(frondb_cursor_value(cursor, &value));
  CHECK(found && key_number(key) == 500 && is(value, "value 500"));
  OK(frondb_cursor_entry(cursor, &entry));
  check_row(&entry, 500);
  OK(frondb_cursor_next_batch(cursor, 2, 1000, &rows));
  CHECK(rows.count == 2);
  check_row(&rows.entries[0], 500);
  check_row(&rows.entries[1], 501);
  OK(frondb_cursor_key(cursor, &key));
  CHECK(key_number(key) == 501 && frondb_cursor_is_valid(cursor));
  OK(frondb_cursor_next(cursor, &found));
  OK(frondb_cursor_next_batch(cursor, 1, 1000, &rows));
  check_row(&rows.entries[0], 503);
  OK(frondb_cursor_prev_batch(cursor, 2, 1000, &rows));
  check_row(&rows.entries[0], 502);
  check_row(&rows.entries[1], 501);
  OK(frondb_cursor_prev(cursor, &found));
  OK(frondb_cursor_key(cursor, &key));
  CHECK(key_number(key) == 500);
  /* bytes_max limits a batch, except for the batch's first entry. The next batch continues where
   * the limited one ended. */
  OK(frondb_cursor_seek_for_prev(cursor, number_key(memory, 42), &found));
  OK(frondb_cursor_next_batch(cursor, 100, 30, &rows));
  CHECK(rows.count == 2 && !rows.is_end);
  check_row(&rows.entries[1], 43);
  OK(frondb_cursor_next_batch(cursor, 100, 1, &rows));
  CHECK(rows.count == 1);
  check_row(&rows.entries[0], 44);
  FAILS(FRONDB_INVALID, frondb_cursor_next_batch(cursor, 0, 100, &rows));
  CHECK(rows.count == 0);
  /* The ends. */
  OK(frondb_cursor_seek(cursor, number_key(memory, ROWS), &found));
  CHECK(!found && !frondb_cursor_is_valid(cursor));
  OK(frondb_cursor_key(cursor, &key));
  CHECK(key.len == 0);
  OK(frondb_cursor_next_batch(cursor, 1, 1, &rows));
  CHECK(rows.count == 0 && rows.is_end);
  OK(frondb_cursor_last(cursor, &found));
  OK(frondb_cursor_next(cursor, &found));
  CHECK(!found);
}

/* A batch that ends because the next entry exceeds bytes_max leaves the cursor at the batch's
 * last entry. Whatever call follows, no entry is skipped or returned twice. */
static void batches_that_bytes_end(frondb_cursor *cursor) {
  frondb_rows rows;
  frondb_entry entry;
  frondb_slice key;
  unsigned char memory[4];
  bool found;
  int way;
  for (way = 0; way < 6; way++) {
    OK(frondb_cursor_seek(cursor, number_key(memory, 500), &found));
    OK(frondb_cursor_next_batch(cursor, 100, 30, &rows));
    CHECK(rows.count == 2);
    check_row(&rows.entries[1], 501);
    if (way == 0) {
      OK(frondb_cursor_next(cursor, &found));
      OK(frondb_cursor_key(cursor, &key));
      CHECK(found && key_number(key) == 502);
    } else if (way == 1) {
      OK(frondb_cursor_prev(cursor, &found));
      OK(frondb_cursor_key(cursor, &key));
      CHECK(found && key_number(key) == 500);
    } else if (way == 2) {
      OK(frondb_cursor_prev_batch(cursor, 100, 30, &rows));
      check_row(&rows.entries[0], 500);
      check_row(&rows.entries[1], 499);
      OK(frondb_cursor_next_batch(cursor, 1, 1, &rows));
      check_row(&rows.entries[0], 500);
    } else if (way == 3) {
      OK(frondb_cursor_key(cursor, &key));
      CHECK(key_number(key) == 501 && frondb_cursor_is_valid(cursor));
      OK(frondb_cursor_next_batch(cursor, 1, 1, &rows));
      check_row(&rows.entries[0], 502);
    } else if (way == 4) {
      OK(frondb_cursor_entry(cursor, &entry));
      check_row(&entry, 501);
      OK(frondb_cursor_prev(cursor, &found));
      OK(frondb_cursor_entry(cursor, &entry));
      check_row(&entry, 500);
    } else {
      OK(frondb_cursor_value(cursor, &key));
      CHECK(is(key, "value 501"));
      OK(frondb_cursor_next(cursor, &found));
      OK(frondb_cursor_value(cursor, &key));
      CHECK(is(key, "value 502"));
    }
  }
}

/* A batch does not contain an entry that was rolled back after the cursor found it. */
static void batches_behind_a_rollback(frondb_db *db) {
  frondb_tree *tree = make_tree(db, "undone");
  frondb_txn *txn;
  frondb_cursor *cursor;
  frondb_rows rows;
  uint64_t savepoint;
  bool found;
  int fresh;
  PUT(tree, "a", "1");
  PUT(tree, "c", "3");
  for (fresh = 0; fresh < 2; fresh++) {
    OK(frondb_db_begin(db, NULL, &txn));
    OK(frondb_txn_set_savepoint(txn, &savepoint));
    OK(frondb_txn_put(txn, tree, frondb_text("b"), frondb_text("2")));
    OK(frondb_txn_cursor(txn, tree, frondb_bytes(NULL, 0), NULL, FRONDB_LOCK_NONE, FRONDB_WAIT,
                         &cursor));
    if (fresh) {
      OK(frondb_cursor_seek(cursor, frondb_text("b"), &found));
      CHECK(found);
    } else {
      OK(frondb_cursor_next_batch(cursor, 100, 1, &rows));
      CHECK(rows.count == 1 && is(rows.entries[0].key, "a"));
    }
    OK(frondb_txn_roll_back_to(txn, savepoint));
    OK(frondb_cursor_next_batch(cursor, 100, 1, &rows));
    CHECK(rows.count == 1 && is(rows.entries[0].key, "c"));
    CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
    CHECK(frondb_txn_free(txn) == FRONDB_OK);
  }
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
}

static void bounds_and_snapshots(frondb_db *db, frondb_tree *tree) {
  frondb_snapshot *snapshot;
  frondb_cursor *cursor, *other;
  frondb_slice hi;
  frondb_rows rows;
  unsigned char lo_memory[4], hi_memory[4], memory[4];
  bool found;
  hi = number_key(hi_memory, 20);
  OK(frondb_db_snapshot(db, &snapshot));
  OK(frondb_tree_cursor(tree, number_key(lo_memory, 10), &hi, snapshot, &cursor));
  /* The cursor has no position, so the first batch begins at the start of the range. */
  OK(frondb_cursor_next_batch(cursor, 100, 10000, &rows));
  CHECK(rows.count == 10);
  check_row(&rows.entries[0], 10);
  check_row(&rows.entries[9], 19);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);

  OK(frondb_tree_delete(tree, number_key(memory, 0)));
  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, snapshot, &cursor));
  CHECK(frondb_snapshot_free(snapshot) == FRONDB_OK);
  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &other));
  OK(frondb_cursor_next_batch(cursor, 1, 100, &rows));
  check_row(&rows.entries[0], 0);
  OK(frondb_cursor_next_batch(other, 1, 100, &rows));
  check_row(&rows.entries[0], 1);
  OK(frondb_cursor_prev(other, &found));
  CHECK(!found);
  CHECK(frondb_cursor_free(other) == FRONDB_OK);
  /* A cursor still works when the handle of its tree has been freed. It fails after a close. */
  OK(frondb_cursor_next(cursor, &found));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  OK(frondb_cursor_next(cursor, &found));
  OK(frondb_db_close(db));
  FAILS(FRONDB_CLOSED, frondb_cursor_next_batch(cursor, 100, 1 << 20, &rows));
  FAILS(FRONDB_CLOSED, frondb_cursor_next(cursor, &found));
  CHECK(!found);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
}

/* Batches also return large values, which have their own extents. */
static void large_values(frondb_db *db) {
  frondb_tree *tree = make_tree(db, "large");
  frondb_cursor *cursor;
  frondb_rows rows;
  unsigned char key[4];
  size_t len = 300 << 10, i;
  char *value = malloc(len);
  uint32_t row;
  CHECK(value != NULL);
  for (row = 0; row < 5; row++) {
    memset(value, 'a' + (int)row, len);
    OK(frondb_tree_put(tree, number_key(key, row), frondb_bytes(value, len)));
  }
  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
  OK(frondb_cursor_next_batch(cursor, 5, 5 << 20, &rows));
  CHECK(rows.count == 5);
  for (i = 0; i < 5; i++) {
    memset(value, 'a' + (int)i, len);
    CHECK(rows.entries[i].value.len == len && memcmp(rows.entries[i].value.data, value, len) == 0);
  }
  free(value);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  frondb_cursor *cursor;
  frondb_txn *txn;
  unsigned char key[4];
  char value[32];
  uint32_t i;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  large_values(db);
  batches_behind_a_rollback(db);
  tree = make_tree(db, "rows");
  /* Some rows are in runs, some in memory, and some are the transaction's own writes. */
  fill(db, tree, 0, 3);
  OK(frondb_db_flush(db));
  fill(db, tree, 1, 3);
  OK(frondb_db_begin(db, NULL, &txn));
  for (i = 2; i < ROWS; i += 3) {
    sprintf(value, "value %u", (unsigned)i);
    OK(frondb_txn_put(txn, tree, number_key(key, i), frondb_text(value)));
  }
  OK(frondb_txn_cursor(txn, tree, frondb_bytes(NULL, 0), NULL, FRONDB_LOCK_NONE, FRONDB_WAIT,
                       &cursor));
  scan_batches(cursor);
  steps_and_batches(cursor);
  batches_that_bytes_end(cursor);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  OK(frondb_txn_cursor(txn, tree, frondb_bytes(NULL, 0), NULL, FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT,
                       &cursor));
  scan_batches(cursor);
  steps_and_batches(cursor);
  batches_that_bytes_end(cursor);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
  scan_batches(cursor);
  steps_and_batches(cursor);
  batches_that_bytes_end(cursor);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  bounds_and_snapshots(db, tree);
  CHECK(frondb_db_free(db) == FRONDB_OK);
  return done();
}
