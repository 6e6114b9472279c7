/* Opens a database, commits a transaction over two trees, and reads them back in order.
 *
 *   cc counters.c $(pkg-config --cflags --libs frondb) && ./a.out some-directory
 */
#include <frondb.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints an error and exits. A larger program would decide by the kind: frondb_error_kind(). */
static void check(frondb_error *error) {
  if (error != NULL) {
    fprintf(stderr, "%s: %s\n", frondb_kind_name(frondb_error_kind(error)),
            frondb_error_message(error));
    frondb_error_free(error);
    exit(1);
  }
}

static frondb_tree *open_or_make(frondb_db *db, const char *name) {
  frondb_tree *tree;
  frondb_error *error = frondb_db_open_tree(db, name, &tree);
  if (frondb_error_kind(error) == FRONDB_NOT_FOUND) {
    frondb_error_free(error);
    error = frondb_db_create_tree(db, name, NULL, &tree);
  }
  check(error);
  return tree;
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *users, *by_name;
  frondb_txn *txn;
  frondb_cursor *cursor;
  frondb_rows rows;
  size_t i;
  if (argc != 2) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  check(frondb_db_open(argv[1], NULL, &db));
  users = open_or_make(db, "users");
  by_name = open_or_make(db, "users-by-name");

  /* A row and its index entry, atomically. */
  check(frondb_db_begin(db, NULL, &txn));
  check(frondb_txn_put(txn, users, frondb_text("1"), frondb_text("Ada")));
  check(frondb_txn_put(txn, by_name, frondb_text("Ada"), frondb_text("1")));
  check(frondb_txn_commit(txn));
  frondb_txn_free(txn);

  /* The whole index, a hundred entries in each call. */
  check(frondb_tree_cursor(by_name, frondb_text(""), NULL, NULL, &cursor));
  do {
    check(frondb_cursor_next_batch(cursor, 100, 1 << 20, &rows));
    for (i = 0; i < rows.count; i++) {
      printf("%.*s is user %.*s\n", (int)rows.entries[i].key.len,
             (const char *)rows.entries[i].key.data, (int)rows.entries[i].value.len,
             (const char *)rows.entries[i].value.data);
    }
  } while (rows.count > 0);
  frondb_cursor_free(cursor);

  frondb_tree_free(users);
  frondb_tree_free(by_name);
  check(frondb_db_close(db));
  frondb_db_free(db);
  return 0;
}
