/* A damaged data file: the error names the place, a scan stops there, and a seek to a later
 * key can continue. */
#include "check.h"

#define ROWS 20000u

#define DATA_FILE "data-0000.fdb"

/* Flips some bytes in the middle of 2 MB of rows. */
static void damage(const char *path) {
  char name[4096];
  FILE *file;
  long at = 1 << 20;
  int byte, i;
  sprintf(name, "%s/" DATA_FILE, path);
  file = fopen(name, "r+b");
  CHECK(file != NULL);
  for (i = 0; i < 64; i++) {
    CHECK(fseek(file, at + i, SEEK_SET) == 0);
    byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, at + i, SEEK_SET) == 0 && fputc(byte ^ 0x55, file) != EOF);
  }
  CHECK(fclose(file) == 0);
}

static int count_calls(void *user_data, const char *tree, uint64_t done, uint64_t to_do) {
  CHECK(strcmp(tree, "t") == 0);
  (void)done, (void)to_do;
  ++*(int *)user_data;
  return 0;
}

static int stop(void *user_data, const char *tree, uint64_t done, uint64_t to_do) {
  (void)user_data, (void)tree, (void)done, (void)to_do;
  return 1;
}

/* Salvage saves all rows except one key range. */
static void salvage(const char *from) {
  char to[4096], stopped[4096];
  frondb_stats *counts;
  frondb_list *losses;
  frondb_slice loss;
  frondb_db *db;
  frondb_tree *tree;
  frondb_cursor *cursor;
  frondb_rows rows;
  uint64_t saved, lost, found = 0;
  int calls = 0;
  sprintf(to, "%s.saved", from);
  sprintf(stopped, "%s.stopped", from);
  FAILS(FRONDB_NOT_FOUND, frondb_salvage("/nothing/here", to, NULL, false, NULL, NULL, NULL, NULL));
  FAILS(FRONDB_EXISTS, frondb_salvage(from, from, NULL, false, NULL, NULL, NULL, NULL));
  FAILS(FRONDB_CANCELLED, frondb_salvage(from, stopped, NULL, false, stop, NULL, NULL, NULL));
  OK(frondb_salvage(from, to, NULL, false, count_calls, &calls, &counts, &losses));
  CHECK(calls > 0);
  OK(frondb_stats_find(counts, "rows", &saved));
  OK(frondb_stats_find(counts, "lost", &lost));
  CHECK(lost == 1 && frondb_list_count(losses) == 1);
  OK(frondb_list_get(losses, 0, &loss));
  CHECK(strstr((const char *)loss.data, "tree t: keys from 0x") != NULL);
  CHECK(strstr((const char *)loss.data, DATA_FILE) != NULL);
  CHECK(frondb_list_free(losses) == FRONDB_OK && frondb_stats_free(counts) == FRONDB_OK);
  db = open_small(to, NULL);
  OK(frondb_db_open_tree(db, "t", &tree));
  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
  do {
    OK(frondb_cursor_next_batch(cursor, 1000, 1 << 20, &rows));
    found += rows.count;
  } while (rows.count > 0);
  CHECK(found == saved && found > 0 && found < ROWS);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK && frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  frondb_batch *batch;
  frondb_cursor *cursor;
  frondb_rows rows;
  frondb_error *error;
  frondb_place place;
  frondb_list *faults;
  frondb_slice fault;
  unsigned char key[4];
  char value[100];
  uint32_t i, next = 0, seed = 1;
  size_t k;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  tree = make_tree(db, "t");
  OK(frondb_batch_new(&batch));
  for (i = 0; i < ROWS; i++) {
    for (k = 0; k < sizeof value; k++) value[k] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
    OK(frondb_batch_put(batch, tree, number_key(key, i), frondb_bytes(value, sizeof value)));
  }
  OK(frondb_db_write(db, batch, FRONDB_SYNC));
  CHECK(frondb_batch_free(batch) == FRONDB_OK && frondb_tree_free(tree) == FRONDB_OK);
  OK(frondb_db_checkpoint(db));
  OK(frondb_db_wait_settled(db));
  close_all(db);
  damage(argv[1]);

  db = open_small(argv[1], NULL);
  OK(frondb_db_open_tree(db, "t", &tree));
  OK(frondb_db_verify(db, NULL, NULL, NULL, &faults));
  CHECK(frondb_list_count(faults) == 1);
  OK(frondb_list_get(faults, 0, &fault));
  CHECK(strstr((const char *)fault.data, "Corruption") != NULL);
  CHECK(frondb_list_free(faults) == FRONDB_OK);

  OK(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
  for (;;) {
    error = frondb_cursor_next_batch(cursor, 100, 1 << 20, &rows);
    if (error != NULL) break;
    CHECK(rows.count > 0);
    for (k = 0; k < rows.count; k++) CHECK(key_number(rows.entries[k].key) == next++);
  }
  CHECK(next > 0 && next < ROWS && frondb_error_kind(error) == FRONDB_CORRUPTION);
  CHECK(frondb_error_place(error, &place));
  CHECK(strcmp(place.file, DATA_FILE) == 0 && place.offset > 0 && place.what[0] != 0);
  CHECK(frondb_error_free(error) == FRONDB_OK);
  FAILS(FRONDB_CORRUPTION, frondb_cursor_next_batch(cursor, 100, 1 << 20, &rows));
  OK(frondb_cursor_seek(cursor, number_key(key, ROWS - 100), &(bool){false}));
  OK(frondb_cursor_next_batch(cursor, 1000, 1 << 20, &rows));
  CHECK(rows.count == 100);
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK && frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
  salvage(argv[1]);
  return done();
}
