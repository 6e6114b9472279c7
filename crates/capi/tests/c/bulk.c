/* Bulk loads from several threads, bulk statements of transactions, and the snapshot with which an
 * index build begins. */
#include <pthread.h>

#include "check.h"

#define ROWS 20000u

static frondb_tree *tree;

static void *load_half(void *argument) {
  frondb_bulk_writer *writer = argument;
  unsigned char key[4];
  uint32_t i, odd;
  /* Writes keys in descending order: one thread the even keys, the other one the odd keys. */
  static uint32_t next_half;
  odd = __atomic_fetch_add(&next_half, 1, __ATOMIC_RELAXED);
  for (i = ROWS; i-- > 0;) {
    if (i % 2 == odd) {
      OK(frondb_bulk_writer_put(writer, tree, number_key(key, i), frondb_bytes(key, 4)));
    }
  }
  OK(frondb_bulk_writer_finish(writer));
  return NULL;
}

static int stop(void *user_data, const char *name, uint64_t done_entries, uint64_t to_do) {
  CHECK(name[0] == 0 && done_entries <= to_do);
  return *(int *)user_data;
}

static int cancel(void *bulk, const char *name, uint64_t done_entries, uint64_t to_do) {
  CHECK(name[0] == 0 && done_entries <= to_do);
  CHECK(frondb_bulk_free(bulk) == FRONDB_BUSY);
  OK(frondb_bulk_cancel(bulk));
  return 0;
}

static frondb_write write_of(frondb_tree *to, unsigned char key[4], uint32_t number, const char *value) {
  frondb_write write;
  memset(&write, 0, sizeof write);
  write.tree = to;
  write.key = number_key(key, number);
  write.value = frondb_text(value);
  write.operation = FRONDB_WRITE_INSERT;
  return write;
}

/* `tree` has entries, `empty` has none. */
static void bulk_statements(frondb_db *db, frondb_tree *empty) {
  frondb_txn *txn;
  frondb_bulk_statement *statement;
  frondb_stats *report;
  frondb_buffer *buffer;
  frondb_write writes[2];
  unsigned char keys[2][4];
  uint64_t savepoint, entries, id, of;
  bool found;
  int answer = 1;
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tree_id(empty, &of));
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_begin_bulk(txn, &tree, 1, &statement));
  CHECK(statement == NULL);
  FAILS(FRONDB_INVALID, frondb_txn_begin_bulk(txn, NULL, 1, &statement));
  FAILS(FRONDB_INVALID, frondb_txn_begin_bulk(txn, &empty, 1, NULL));

  /* A duplicate key, which a rollback to the savepoint undoes. */
  OK(frondb_txn_set_savepoint(txn, &savepoint));
  OK(frondb_txn_begin_bulk(txn, &empty, 1, &statement));
  CHECK(statement != NULL);
  writes[0] = write_of(empty, keys[0], 2, "x");
  writes[1] = write_of(empty, keys[1], 2, "y");
  OK(frondb_bulk_statement_write(statement, writes, 2));
  writes[1].operation = FRONDB_WRITE_DELETE;
  FAILS(FRONDB_INVALID, frondb_bulk_statement_write(statement, &writes[1], 1));
  writes[0].tree = tree;
  FAILS(FRONDB_INVALID, frondb_bulk_statement_write(statement, writes, 1));
  FAILS(FRONDB_INVALID, frondb_bulk_statement_write(statement, NULL, 1));
  OK(frondb_bulk_statement_write(statement, NULL, 0));
  OK(frondb_bulk_statement_finish(statement, NULL, NULL, &report));
  OK(frondb_stats_find(report, "duplicates", &entries));
  CHECK(entries == 1 && frondb_stats_free(report) == FRONDB_OK);
  OK(frondb_bulk_statement_duplicate(statement, &id, buffer, &found));
  CHECK(found && id == of && key_number(frondb_buffer_value(buffer)) == 2);
  FAILS(FRONDB_INVALID, frondb_bulk_statement_finish(statement, NULL, NULL, NULL));
  CHECK(frondb_bulk_statement_free(statement) == FRONDB_OK);
  OK(frondb_txn_get(txn, empty, number_key(keys[0], 2), FRONDB_LOCK_NONE, FRONDB_WAIT, buffer, &found));
  CHECK(found && frondb_buffer_value(buffer).data[0] == 'y');
  OK(frondb_txn_roll_back_to(txn, savepoint));

  /* A statement that is stopped, one that is freed, and one that is committed. */
  OK(frondb_txn_begin_bulk(txn, &empty, 1, &statement));
  writes[0] = write_of(empty, keys[0], 1, "x");
  OK(frondb_bulk_statement_write(statement, writes, 1));
  FAILS(FRONDB_CANCELLED, frondb_bulk_statement_finish(statement, stop, &answer, NULL));
  CHECK(frondb_bulk_statement_free(statement) == FRONDB_OK);
  OK(frondb_txn_begin_bulk(txn, &empty, 1, &statement));
  OK(frondb_bulk_statement_write(statement, writes, 1));
  CHECK(frondb_bulk_statement_free(statement) == FRONDB_OK);
  OK(frondb_txn_begin_bulk(txn, &empty, 1, &statement));
  OK(frondb_bulk_statement_write(statement, writes, 1));
  OK(frondb_bulk_statement_finish(statement, NULL, NULL, NULL));
  OK(frondb_tree_get(empty, number_key(keys[0], 1), NULL, buffer, &found));
  CHECK(!found);
  OK(frondb_txn_commit(txn));
  OK(frondb_tree_get(empty, number_key(keys[0], 1), NULL, buffer, &found));
  CHECK(found);
  CHECK(frondb_bulk_statement_free(statement) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_bulk_statement_finish(statement, NULL, NULL, NULL));
  CHECK(frondb_bulk_statement_free(NULL) == FRONDB_OK);
  CHECK(frondb_txn_free(txn) == FRONDB_OK && frondb_buffer_free(buffer) == FRONDB_OK);
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_bulk *bulk;
  frondb_bulk_writer *writers[2];
  frondb_stats *report;
  frondb_cursor *cursor;
  frondb_rows rows;
  frondb_snapshot *snapshot;
  frondb_txn *txn;
  frondb_tree *made, *opened;
  pthread_t threads[2];
  unsigned char key[4];
  frondb_buffer *buffer;
  uint64_t entries, id, of;
  bool found;
  uint32_t next = 0;
  size_t k;
  int i, answer = 0;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  tree = make_tree(db, "loaded");
  FAILS(FRONDB_INVALID, frondb_db_bulk_load(db, 0, false, 7, &bulk));
  OK(frondb_db_bulk_load(db, 1 << 20, true, FRONDB_SYNC, &bulk));
  for (i = 0; i < 2; i++) {
    OK(frondb_bulk_writer_new(bulk, &writers[i]));
    CHECK(pthread_create(&threads[i], NULL, load_half, writers[i]) == 0);
  }
  for (i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  OK(frondb_bulk_finish(bulk, stop, &answer, &report));
  OK(frondb_stats_find(report, "entries", &entries));
  CHECK(entries == ROWS && frondb_stats_free(report) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_bulk_finish(bulk, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_bulk_writer_finish(writers[0]));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_bulk_finish(bulk, NULL, NULL, &report));
  CHECK(report == NULL);

  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
  do {
    OK(frondb_cursor_next_batch(cursor, 100, 1 << 20, &rows));
    for (k = 0; k < rows.count; k++) CHECK(key_number(rows.entries[k].value) == next++);
  } while (rows.count > 0);
  CHECK(next == ROWS && frondb_cursor_free(cursor) == FRONDB_OK);

  /* A load with a duplicate key, with a writer that is not finished, with a writer that is
   * freed, and one that is cancelled. */
  OK(frondb_db_bulk_load(db, 0, true, FRONDB_NO_SYNC, &bulk));
  OK(frondb_bulk_writer_new(bulk, &writers[0]));
  OK(frondb_bulk_writer_put(writers[0], tree, number_key(key, 1), frondb_text("x")));
  OK(frondb_bulk_writer_put(writers[0], tree, number_key(key, 1), frondb_text("y")));
  OK(frondb_bulk_writer_finish(writers[0]));
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tree_id(tree, &of));
  OK(frondb_bulk_duplicate(bulk, &id, buffer, &found));
  CHECK(found && id == of && key_number(frondb_buffer_value(buffer)) == 1);
  FAILS(FRONDB_INVALID, frondb_bulk_duplicate(bulk, NULL, buffer, &found));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK);
  OK(frondb_db_bulk_load(db, 0, false, FRONDB_NO_SYNC, &bulk));
  OK(frondb_bulk_duplicate(bulk, &id, buffer, &found));
  CHECK(!found && frondb_buffer_free(buffer) == FRONDB_OK);
  OK(frondb_bulk_writer_new(bulk, &writers[0]));
  OK(frondb_bulk_writer_put(writers[0], tree, number_key(key, 1), frondb_text("x")));
  CHECK(frondb_bulk_writer_free(writers[0]) == FRONDB_OK);
  FAILS(FRONDB_CANCELLED, frondb_bulk_finish(bulk, NULL, NULL, NULL));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK);
  OK(frondb_db_bulk_load(db, 0, false, FRONDB_NO_SYNC, &bulk));
  OK(frondb_bulk_writer_new(bulk, &writers[0]));
  OK(frondb_bulk_cancel(bulk));
  FAILS(FRONDB_CANCELLED, frondb_bulk_writer_finish(writers[0]));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK);
  /* A cancel during the finish, here by the thread that finishes. */
  OK(frondb_db_bulk_load(db, 0, false, FRONDB_NO_SYNC, &bulk));
  OK(frondb_bulk_writer_new(bulk, &writers[0]));
  OK(frondb_bulk_writer_put(writers[0], tree, number_key(key, 1), frondb_text("x")));
  OK(frondb_bulk_writer_finish(writers[0]));
  FAILS(FRONDB_CANCELLED, frondb_bulk_finish(bulk, cancel, bulk, NULL));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK);

  /* A tree that a load creates, and a tree of a load that is abandoned. */
  OK(frondb_db_bulk_load(db, 0, false, FRONDB_SYNC, &bulk));
  FAILS(FRONDB_EXISTS, frondb_bulk_new_tree(bulk, "loaded", NULL, &made));
  CHECK(made == NULL);
  OK(frondb_bulk_new_tree(bulk, "given up", NULL, &made));
  FAILS(FRONDB_NOT_FOUND, frondb_db_open_tree(db, "given up", &opened));
  CHECK(frondb_tree_free(made) == FRONDB_OK && frondb_bulk_free(bulk) == FRONDB_OK);
  FAILS(FRONDB_NOT_FOUND, frondb_db_open_tree(db, "given up", &opened));
  OK(frondb_db_bulk_load(db, 0, false, FRONDB_SYNC, &bulk));
  OK(frondb_bulk_new_tree(bulk, "new", NULL, &made));
  OK(frondb_bulk_writer_new(bulk, &writers[0]));
  OK(frondb_bulk_writer_put(writers[0], made, number_key(key, 1), frondb_text("x")));
  OK(frondb_bulk_writer_finish(writers[0]));
  OK(frondb_bulk_finish(bulk, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_bulk_new_tree(bulk, "late", NULL, &opened));
  CHECK(frondb_bulk_free(bulk) == FRONDB_OK && frondb_tree_free(made) == FRONDB_OK);
  OK(frondb_db_open_tree(db, "new", &opened));
  CHECK(frondb_tree_free(opened) == FRONDB_OK);

  /* frondb_db_snapshot_behind_writers() waits for transactions that have written. */
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_put(txn, tree, number_key(key, ROWS), frondb_text("x")));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_db_snapshot_behind_writers(db, &tree, 1, 1, &snapshot));
  FAILS(FRONDB_INVALID, frondb_db_snapshot_behind_writers(db, NULL, 1, 1, &snapshot));
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  OK(frondb_db_snapshot_behind_writers(db, &tree, 1, 1, &snapshot));
  CHECK(frondb_snapshot_free(snapshot) == FRONDB_OK);
  made = make_tree(db, "empty");
  bulk_statements(db, made);
  CHECK(frondb_tree_free(made) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
  return done();
}
