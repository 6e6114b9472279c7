/* Checks for the test programs. The first argument of a program is the path of a database that does
 * not exist yet. A failed check prints its line and ends the program with code 1. A program returns
 * 0 only if no check failed and every handle was freed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frondb.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);     \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

/* The call must succeed. */
#define OK(call) check_ok((call), __FILE__, __LINE__, #call)

/* The call must fail with this kind of error. */
#define FAILS(kind, call) check_fails((kind), (call), __FILE__, __LINE__, #call)

static inline void check_ok(frondb_error *error, const char *file, int line, const char *call) {
  if (error != NULL) {
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call,
            frondb_kind_name(frondb_error_kind(error)), frondb_error_message(error));
    exit(1);
  }
}

static inline void check_fails(frondb_kind kind, frondb_error *error, const char *file, int line,
                               const char *call) {
  frondb_kind found = frondb_error_kind(error);
  if (found != kind) {
    fprintf(stderr, "%s:%d: %s: %s and not %s: %s\n", file, line, call, frondb_kind_name(found),
            frondb_kind_name(kind), frondb_error_message(error));
    exit(1);
  }
  CHECK(frondb_error_message(error)[0] != 0);
  CHECK(frondb_error_free(error) == FRONDB_OK);
}

/* Whether a slice is equal to this text. */
static inline bool is(frondb_slice slice, const char *text) {
  return slice.data != NULL && slice.len == strlen(text) &&
         memcmp(slice.data, text, slice.len) == 0;
}

/* Writes a number to the caller's memory as a key that sorts like the number. */
static inline frondb_slice number_key(unsigned char memory[4], uint32_t number) {
  memory[0] = (unsigned char)(number >> 24);
  memory[1] = (unsigned char)(number >> 16);
  memory[2] = (unsigned char)(number >> 8);
  memory[3] = (unsigned char)number;
  return frondb_bytes(memory, 4);
}

static inline uint32_t key_number(frondb_slice key) {
  CHECK(key.len == 4);
  return (uint32_t)key.data[0] << 24 | (uint32_t)key.data[1] << 16 | (uint32_t)key.data[2] << 8 |
         (uint32_t)key.data[3];
}

/* Opens a database with a small memory budget at `path`, or creates one there. */
static inline frondb_db *open_small(const char *path, const frondb_update_fn *function) {
  frondb_options *options;
  frondb_db *db;
  OK(frondb_options_new(&options));
  OK(frondb_options_set(options, "memory_bytes", "32M"));
  OK(frondb_options_set(options, "background_threads", "1"));
  if (function != NULL) OK(frondb_options_add_update_fn(options, function));
  OK(frondb_db_open(path, options, &db));
  CHECK(frondb_options_free(options) == FRONDB_OK);
  return db;
}

static inline frondb_tree *make_tree(frondb_db *db, const char *name) {
  frondb_tree *tree;
  OK(frondb_db_create_tree(db, name, NULL, &tree));
  return tree;
}

/* Copies the value of a key to the caller's memory; returns false if the key has no value. */
static inline bool get_text(frondb_tree *tree, const char *key, char *value, size_t capacity) {
  size_t len = 0;
  bool found = false;
  OK(frondb_tree_get_into(tree, frondb_text(key), NULL, value, capacity - 1, &len, &found));
  CHECK(len < capacity);
  value[len] = 0;
  return found;
}

/* Whether a key has this value. */
static inline bool has(frondb_tree *tree, const char *key, const char *value) {
  char memory[256];
  return get_text(tree, key, memory, sizeof memory) && strcmp(memory, value) == 0;
}

#define PUT(tree, key, value) OK(frondb_tree_put((tree), frondb_text(key), frondb_text(value)))

static inline void close_all(frondb_db *db) {
  OK(frondb_db_close(db));
  CHECK(frondb_db_free(db) == FRONDB_OK);
}

/* Returns the exit code of a program; fails if a handle was not freed. */
static inline int done(void) {
  CHECK(frondb_live_handles() == 0);
  return 0;
}

#endif
