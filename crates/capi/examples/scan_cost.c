/* Measures the cost of a row of a scan through the C API, step by step and in batches, and of a call
 * that does next to nothing. scan_cost.rs creates the database.
 *
 *   cc -O2 scan_cost.c $(pkg-config --cflags --libs frondb) && ./a.out DIRECTORY
 */
#include <frondb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROWS 1000000.0
#define CALLS 10000000

static void check(frondb_error *error) {
  if (error != NULL) {
    fprintf(stderr, "%s\n", frondb_error_message(error));
    exit(1);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static volatile size_t bytes;

static size_t by_steps(frondb_cursor *cursor) {
  frondb_entry entry;
  size_t rows = 0, sum = 0;
  bool found;
  for (;;) {
    check(frondb_cursor_next(cursor, &found));
    if (!found) break;
    check(frondb_cursor_entry(cursor, &entry));
    sum += entry.key.len + entry.value.len;
    rows++;
  }
  bytes = sum;
  return rows;
}

static size_t by_batches(frondb_cursor *cursor, size_t rows_max) {
  frondb_rows batch;
  size_t rows = 0, sum = 0, i;
  for (;;) {
    check(frondb_cursor_next_batch(cursor, rows_max, 1 << 20, &batch));
    if (batch.count == 0) break;
    for (i = 0; i < batch.count; i++) sum += batch.entries[i].key.len + batch.entries[i].value.len;
    rows += batch.count;
  }
  bytes = sum;
  return rows;
}

static void measure(frondb_tree *tree, const char *what, size_t rows_max) {
  double best = 1e300, start, took;
  frondb_cursor *cursor;
  int round;
  for (round = 0; round < 7; round++) {
    size_t rows;
    start = now();
    check(frondb_tree_cursor(tree, frondb_bytes(NULL, 0), NULL, NULL, &cursor));
    rows = rows_max == 0 ? by_steps(cursor) : by_batches(cursor, rows_max);
    frondb_cursor_free(cursor);
    took = (now() - start) / ROWS;
    if ((double)rows != ROWS) exit(1);
    if (took < best) best = took;
  }
  printf("%-25s %6.1f ns a row, the best of 7\n", what, best);
}

static void measure_calls(frondb_db *db) {
  frondb_buffer *buffer;
  double start;
  uint64_t most;
  long i;
  check(frondb_buffer_new(&buffer));
  start = now();
  for (i = 0; i < CALLS; i++) bytes = (size_t)frondb_version()[0];
  printf("%-25s %6.1f ns\n", "a call without a handle", (now() - start) / CALLS);
  start = now();
  for (i = 0; i < CALLS; i++) bytes = frondb_buffer_value(buffer).len;
  printf("%-25s %6.1f ns\n", "a call with a handle", (now() - start) / CALLS);
  start = now();
  for (i = 0; i < CALLS; i++) check(frondb_db_batch_bytes_max(db, &most));
  printf("%-25s %6.1f ns\n", "the same, with an error", (now() - start) / CALLS);
  frondb_buffer_free(buffer);
  start = now();
  for (i = 0; i < CALLS; i++) {
    check(frondb_buffer_new(&buffer));
    frondb_buffer_free(buffer);
  }
  printf("%-25s %6.1f ns\n", "a handle made and freed", (now() - start) / CALLS);
}

int main(int argc, char **argv) {
  frondb_options *options;
  frondb_db *db;
  frondb_tree *tree;
  if (argc != 2) return 2;
  check(frondb_options_new(&options));
  check(frondb_options_set(options, "memory_bytes", "512M"));
  check(frondb_db_open(argv[1], options, &db));
  check(frondb_db_open_tree(db, "rows", &tree));
  measure(tree, "C, a step a row", 0);
  measure(tree, "C, batches of 10", 10);
  measure(tree, "C, batches of 100", 100);
  measure(tree, "C, batches of 1,000", 1000);
  measure_calls(db);
  frondb_tree_free(tree);
  frondb_options_free(options);
  check(frondb_db_close(db));
  frondb_db_free(db);
  return 0;
}
