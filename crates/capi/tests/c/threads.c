/* Many threads use one database, or one object that only one thread may use at a time. */
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define TRANSFERS 150
#define ACCOUNTS 8

static frondb_db *db;
static frondb_tree *accounts;
static frondb_cursor *shared_cursor;
static frondb_buffer *shared_buffer;

static int64_t balance(frondb_slice value) {
  int64_t number;
  CHECK(value.len == sizeof number);
  memcpy(&number, value.data, sizeof number);
  return number;
}

/* Makes one transfer; returns whether it must be repeated. */
static bool transfer(frondb_buffer *buffer, uint32_t from, uint32_t to) {
  frondb_txn *txn;
  frondb_error *error = NULL;
  frondb_kind kind;
  unsigned char key[4];
  uint32_t account[2];
  int64_t plus[2] = {-1, 1}, sum;
  bool found;
  int i;
  account[0] = from;
  account[1] = to;
  OK(frondb_db_begin(db, NULL, &txn));
  for (i = 0; i < 2 && error == NULL; i++) {
    error = frondb_txn_get(txn, accounts, number_key(key, account[i]), FRONDB_LOCK_EXCLUSIVE,
                           FRONDB_WAIT, buffer, &found);
    if (error != NULL) break;
    CHECK(found);
    sum = balance(frondb_buffer_value(buffer)) + plus[i];
    error = frondb_txn_put(txn, accounts, number_key(key, account[i]),
                           frondb_bytes(&sum, sizeof sum));
  }
  if (error == NULL) error = frondb_txn_commit(txn);
  kind = frondb_error_kind(error);
  CHECK(kind == FRONDB_OK || kind == FRONDB_DEADLOCK);
  frondb_error_free(error);
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  return kind == FRONDB_DEADLOCK;
}

static void *bank(void *argument) {
  uint32_t seed = (uint32_t)(uintptr_t)argument * 7919 + 1, i;
  frondb_buffer *buffer;
  OK(frondb_buffer_new(&buffer));
  for (i = 0; i < TRANSFERS; i++) {
    uint32_t from, to;
    seed = seed * 1664525 + 1013904223;
    from = (seed >> 16) % ACCOUNTS;
    to = (from + 1 + (seed >> 24) % (ACCOUNTS - 1)) % ACCOUNTS;
    while (transfer(buffer, from, to)) {
    }
  }
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  return NULL;
}

/* All threads use one cursor and one buffer: a thread that finds them in use gets FRONDB_BUSY. */
static void *together(void *argument) {
  uintptr_t i, *busy = argument;
  for (i = 0; i < 3000; i++) {
    frondb_rows rows;
    bool found = i % 2 == 0;
    frondb_error *error =
        i % 3 == 0   ? frondb_cursor_first(shared_cursor, &found)
        : i % 3 == 1 ? frondb_cursor_next_batch(shared_cursor, 10, 1000, &rows)
                     : frondb_tree_get(accounts, frondb_bytes("\0\0\0", 4), NULL, shared_buffer,
                                       &found);
    frondb_kind kind = frondb_error_kind(error);
    CHECK(kind == FRONDB_OK || kind == FRONDB_BUSY);
    *busy += kind == FRONDB_BUSY;
    frondb_error_free(error);
  }
  return NULL;
}

/* All threads free the same handles; each handle is freed exactly once. */
static frondb_buffer *to_free[1000];

static void *free_all(void *argument) {
  size_t i;
  uintptr_t *freed = argument;
  for (i = 0; i < sizeof to_free / sizeof *to_free; i++) {
    frondb_kind kind = frondb_buffer_free(to_free[i]);
    CHECK(kind == FRONDB_OK || kind == FRONDB_INVALID || kind == FRONDB_BUSY);
    *freed += kind == FRONDB_OK;
  }
  return NULL;
}

static uintptr_t run(void *(*body)(void *)) {
  pthread_t threads[THREADS];
  uintptr_t counts[THREADS] = {0}, sum = 0;
  int i;
  for (i = 0; i < THREADS; i++) {
    void *argument = body == bank ? (void *)(uintptr_t)i : (void *)&counts[i];
    CHECK(pthread_create(&threads[i], NULL, body, argument) == 0);
  }
  for (i = 0; i < THREADS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    sum += counts[i];
  }
  return sum;
}

int main(int argc, char **argv) {
  unsigned char key[4];
  int64_t start = 100, sum = 0;
  frondb_rows rows;
  frondb_db *durable;
  uint32_t i;
  CHECK(argc == 2);
  durable = open_small(argv[1], NULL);
  OK(frondb_db_with_commit_sync(durable, FRONDB_NO_SYNC, &db));
  CHECK(frondb_db_free(durable) == FRONDB_OK);
  accounts = make_tree(db, "accounts");
  for (i = 0; i < ACCOUNTS; i++) {
    OK(frondb_tree_put(accounts, number_key(key, i), frondb_bytes(&start, sizeof start)));
  }
  run(bank);
  OK(frondb_tree_cursor(accounts, frondb_bytes(NULL, 0), NULL, NULL, &shared_cursor));
  OK(frondb_cursor_next_batch(shared_cursor, 100, 1000, &rows));
  CHECK(rows.count == ACCOUNTS);
  for (i = 0; i < ACCOUNTS; i++) sum += balance(rows.entries[i].value);
  CHECK(sum == ACCOUNTS * start);

  OK(frondb_buffer_new(&shared_buffer));
  run(together);
  CHECK(frondb_buffer_free(shared_buffer) == FRONDB_OK);
  CHECK(frondb_cursor_free(shared_cursor) == FRONDB_OK);

  for (i = 0; i < 1000; i++) OK(frondb_buffer_new(&to_free[i]));
  sum = (int64_t)run(free_all);
  /* A buffer that was in use at every attempt has not been freed yet. */
  for (i = 0; i < 1000; i++) sum += frondb_buffer_free(to_free[i]) == FRONDB_OK;
  CHECK(sum == 1000);

  CHECK(frondb_tree_free(accounts) == FRONDB_OK);
  close_all(db);
  return done();
}
