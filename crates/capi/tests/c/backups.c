/* Backups: whole, incremental, restored, refused. */
#include "check.h"

struct passed {
  uint64_t calls;
  int32_t answer;
};

static uint64_t count(frondb_stats *counts, const char *name) {
  uint64_t value;
  OK(frondb_stats_find(counts, name, &value));
  return value;
}

static int32_t pass_bytes(void *user_data, const char *tree, uint64_t done, uint64_t bytes) {
  struct passed *passed = user_data;
  CHECK(tree[0] == 0 && done <= bytes);
  passed->calls++;
  return passed->answer;
}

/* Writes the path of file `name` in directory `path` to `buffer`. */
static const char *in(const char *path, const char *name, char *buffer) {
  CHECK(strlen(path) + strlen(name) < 500);
  return strcat(strcat(strcpy(buffer, path), "/"), name);
}

static void backs_up(const char *path) {
  char db_path[512], full_path[512], more_path[512], copy_path[512], none_path[512];
  const char *full = in(path, "full", full_path), *more = in(path, "more", more_path);
  const char *copy = in(path, "copy", copy_path), *none = in(path, "none", none_path);
  const char *at = in(path, "db", db_path), *chain[2];
  struct passed passed = {0, 0};
  frondb_stats *counts;
  frondb_list *faults;
  frondb_db *db = open_small(at, NULL);
  frondb_tree *tree = make_tree(db, "b");
  PUT(tree, "a", "1");
  OK(frondb_db_flush(db));
  OK(frondb_db_backup(db, full, NULL, 0, pass_bytes, &passed, &counts));
  CHECK(passed.calls > 0 && count(counts, "bytes") > 0 && count(counts, "log_end") > 0);
  CHECK(count(counts, "database_bytes") > 0 && count(counts, "log_bytes") == 0);
  CHECK(frondb_stats_free(counts) == FRONDB_OK);
  PUT(tree, "b", "2");
  OK(frondb_db_backup(db, more, full, 1 << 30, NULL, NULL, NULL));
  FAILS(FRONDB_EXISTS, frondb_db_backup(db, more, NULL, 0, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_db_backup(db, NULL, NULL, 0, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_db_backup(NULL, none, NULL, 0, NULL, NULL, NULL));
  FAILS(FRONDB_NOT_FOUND, frondb_db_backup(db, none, copy, 0, NULL, NULL, NULL));
  passed.answer = 1;
  FAILS(FRONDB_CANCELLED, frondb_db_backup(db, none, NULL, 0, pass_bytes, &passed, NULL));
  FAILS(FRONDB_NOT_FOUND, frondb_verify_backup(none, NULL, NULL, NULL, NULL));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  OK(frondb_db_drop_tree(db, "b"));
  CHECK(frondb_db_free(db) == FRONDB_OK);

  OK(frondb_verify_backup(more, NULL, NULL, &counts, &faults));
  CHECK(count(counts, "incremental") == 1 && count(counts, "faults") == 0);
  CHECK(frondb_list_count(faults) == 0);
  CHECK(frondb_stats_free(counts) == FRONDB_OK && frondb_list_free(faults) == FRONDB_OK);
  chain[0] = full;
  chain[1] = more;
  FAILS(FRONDB_INVALID, frondb_restore(chain + 1, 1, copy, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_restore(chain, 0, copy, NULL, NULL, NULL));
  FAILS(FRONDB_CANCELLED, frondb_restore(chain, 2, copy, NULL, pass_bytes, &passed));
  passed.answer = 0;
  OK(frondb_restore(chain, 2, copy, NULL, pass_bytes, &passed));
  FAILS(FRONDB_EXISTS, frondb_restore(chain, 2, copy, NULL, NULL, NULL));
  db = open_small(copy, NULL);
  OK(frondb_db_open_tree(db, "b", &tree));
  CHECK(has(tree, "a", "1") && has(tree, "b", "2"));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

/* Begins a backup and copies it in a separate call, together with a file of the caller. */
static void begins_and_copies(const char *path) {
  char db_path[512], at_path[512], copy_path[512];
  const char *to = in(path, "begun", at_path), *copy = in(path, "of-begun", copy_path);
  const char *chain[1] = {to};
  struct passed passed = {0, 0};
  frondb_stats *counts;
  frondb_list *faults;
  frondb_backup *backup, *other;
  frondb_db *db = open_small(in(path, "db2", db_path), NULL);
  frondb_tree *tree = make_tree(db, "b");
  PUT(tree, "a", "1");
  FAILS(FRONDB_INVALID, frondb_db_begin_backup(db, NULL, NULL, 0, &backup));
  FAILS(FRONDB_INVALID, frondb_db_begin_backup(db, to, NULL, 0, NULL));
  OK(frondb_db_begin_backup(db, to, NULL, 0, &backup));
  OK(frondb_backup_fix(backup));
  OK(frondb_db_begin_backup(db, to, NULL, 0, &other));
  FAILS(FRONDB_BUSY, frondb_backup_fix(other));
  CHECK(frondb_backup_free(backup) == FRONDB_OK);
  OK(frondb_backup_fix(other));
  CHECK(frondb_backup_free(other) == FRONDB_OK);
  OK(frondb_db_begin_backup(db, to, NULL, 0, &backup));
  OK(frondb_backup_fix(backup));
  OK(frondb_backup_fix(backup));
  PUT(tree, "b", "2");
  OK(frondb_backup_attach(backup, "position", frondb_text("of this moment")));
  FAILS(FRONDB_INVALID, frondb_backup_attach(backup, "../position", frondb_text("x")));
  FAILS(FRONDB_INVALID, frondb_backup_attach(backup, NULL, frondb_text("x")));
  OK(frondb_backup_copy(backup, pass_bytes, &passed, &counts));
  CHECK(passed.calls > 0 && count(counts, "bytes") > 0);
  CHECK(frondb_stats_free(counts) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_backup_copy(backup, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_backup_attach(backup, "late", frondb_text("x")));
  FAILS(FRONDB_INVALID, frondb_backup_fix(backup));
  FAILS(FRONDB_INVALID, frondb_backup_fix(NULL));
  CHECK(frondb_backup_free(backup) == FRONDB_OK);
  CHECK(frondb_backup_free(NULL) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);

  OK(frondb_verify_backup(to, NULL, NULL, NULL, &faults));
  CHECK(frondb_list_count(faults) == 0 && frondb_list_free(faults) == FRONDB_OK);
  OK(frondb_restore(chain, 1, copy, NULL, NULL, NULL));
  db = open_small(copy, NULL);
  OK(frondb_db_open_tree(db, "b", &tree));
  CHECK(has(tree, "a", "1") && !has(tree, "b", "2"));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  backs_up(argv[1]);
  begins_and_copies(argv[1]);
  return done();
}
