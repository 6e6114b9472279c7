/* Writes all entries of a row with one call: which are written, which are undone, and which keys
 * the call reports. */
#include "check.h"

struct table {
  frondb_db *db;
  frondb_tree *rows, *names, *towns;
};

static frondb_txn *begin(struct table *table, bool snapshot_isolation) {
  frondb_txn_options *options;
  frondb_txn *txn;
  OK(frondb_txn_options_new(&options));
  OK(frondb_txn_options_set_snapshot_isolation(options, snapshot_isolation));
  OK(frondb_txn_options_set_lock_timeout_millis(options, 1));
  OK(frondb_txn_options_set_durability(options, FRONDB_NO_SYNC));
  OK(frondb_db_begin(table->db, options, &txn));
  CHECK(frondb_txn_options_free(options) == FRONDB_OK);
  return txn;
}

static void end(frondb_txn *txn) {
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

static frondb_write write_of(frondb_tree *tree, frondb_operation operation, const char *key,
                             const char *value) {
  frondb_write write = {0};
  write.tree = tree;
  write.operation = operation;
  write.key = frondb_text(key);
  write.value = frondb_text(value);
  return write;
}

/* The entries of a row that has a unique name and a town. */
static void new_row(struct table *table, frondb_write writes[3], const char *id, const char *name,
                    const char *town_id) {
  writes[0] = write_of(table->rows, FRONDB_WRITE_INSERT, id, name);
  writes[1] = write_of(table->towns, FRONDB_WRITE_PUT, town_id, "");
  writes[2] = write_of(table->names, FRONDB_WRITE_INSERT, name, id);
}

static bool txn_has(frondb_txn *txn, frondb_tree *tree, const char *key) {
  bool found;
  OK(frondb_txn_exists(txn, tree, frondb_text(key), &found));
  return found;
}

static void rows(struct table *table) {
  frondb_txn *txn = begin(table, false);
  frondb_write writes[5];
  size_t failed_at = 99;
  bool any_outdated = true;
  new_row(table, writes, "1", "Ada", "Ulm 1");
  OK(frondb_txn_write_entries(txn, writes, 3, true, &failed_at, &any_outdated));
  CHECK(failed_at == 3 && !any_outdated);
  end(txn);
  CHECK(has(table->rows, "1", "Ada") && has(table->names, "Ada", "1") &&
        has(table->towns, "Ulm 1", ""));

  /* UPDATE: another name and another town. */
  txn = begin(table, false);
  writes[0] = write_of(table->rows, FRONDB_WRITE_PUT, "1", "Bob");
  writes[1] = write_of(table->names, FRONDB_WRITE_INSERT, "Bob", "1");
  writes[2] = write_of(table->names, FRONDB_WRITE_DELETE, "Ada", "ignored");
  writes[3] = write_of(table->towns, FRONDB_WRITE_PUT, "Rom 1", "");
  writes[4] = write_of(table->towns, FRONDB_WRITE_DELETE, "Ulm 1", "");
  OK(frondb_txn_write_entries(txn, writes, 5, true, NULL, NULL));
  end(txn);
  CHECK(has(table->rows, "1", "Bob") && has(table->names, "Bob", "1") &&
        has(table->towns, "Rom 1", ""));
  CHECK(!has(table->names, "Ada", "1") && !has(table->towns, "Ulm 1", ""));

  /* Writes of one call see each other. */
  txn = begin(table, false);
  writes[0] = write_of(table->names, FRONDB_WRITE_DELETE, "Bob", "");
  writes[1] = write_of(table->names, FRONDB_WRITE_INSERT, "Bob", "2");
  OK(frondb_txn_write_entries(txn, writes, 2, true, NULL, NULL));
  writes[1] = write_of(table->names, FRONDB_WRITE_INSERT, "Cid", "3");
  writes[2] = write_of(table->names, FRONDB_WRITE_INSERT, "Cid", "4");
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, &writes[1], 2, true, &failed_at, NULL));
  CHECK(failed_at == 1 && !txn_has(txn, table->names, "Cid"));
  OK(frondb_txn_rollback(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  CHECK(has(table->names, "Bob", "1"));
}

/* The example of docs/operating/c-api.md, which calls `check` as examples/counters.c does. */
static void example(struct table *table) {
#define check(error) OK(error)
  frondb_txn *txn = begin(table, false);
  frondb_tree *users = table->rows, *users_by_name = table->names;
  size_t failed_at;
  frondb_write writes[2] = {
      {users, frondb_text("7"), frondb_text("Ada"), FRONDB_WRITE_INSERT, 0},
      {users_by_name, frondb_text("Ada"), frondb_text("7"), FRONDB_WRITE_INSERT, 0},
  };
  check(frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
#undef check
  OK(frondb_txn_rollback(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

static void all_or_none(struct table *table) {
  frondb_txn *txn = begin(table, false), *other = begin(table, false);
  frondb_write writes[3];
  size_t failed_at;
  bool any_outdated;
  uint64_t savepoint;
  OK(frondb_txn_put(txn, table->rows, frondb_text("own"), frondb_text("kept")));
  OK(frondb_txn_set_savepoint(txn, &savepoint));

  /* First the last entry, a name, already exists; then the first entry, a key, already exists. */
  new_row(table, writes, "5", "Bob", "Ulm 5");
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, writes, 3, true, &failed_at, &any_outdated));
  CHECK(failed_at == 2 && !any_outdated);
  CHECK(!txn_has(txn, table->rows, "5") && !txn_has(txn, table->towns, "Ulm 5"));
  new_row(table, writes, "1", "Eve", "Ulm 1");
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, writes, 3, true, &failed_at, NULL));
  CHECK(failed_at == 0 && !txn_has(txn, table->names, "Eve"));

  /* A key that another transaction has locked. */
  new_row(table, writes, "6", "Flo", "Ulm 6");
  OK(frondb_txn_put(other, table->towns, frondb_text("Ulm 6"), frondb_text("")));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_txn_write_entries(txn, writes, 3, true, &failed_at, NULL));
  CHECK(failed_at == 1 && !txn_has(txn, table->rows, "6"));

  /* Wrong calls. */
  writes[1] = write_of(table->rows, 99, "7", "");
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
  CHECK(failed_at == 1 && !txn_has(txn, table->rows, "6"));
  writes[1].operation = FRONDB_WRITE_PUT;
  writes[1].flags = 2;
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
  CHECK(failed_at == 1 && !txn_has(txn, table->rows, "7"));
  writes[1].flags = 0;
  writes[1].tree = NULL;
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
  CHECK(failed_at == 1);
  writes[1].tree = (frondb_tree *)txn;
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, NULL, NULL));
  writes[1] = write_of(table->rows, FRONDB_WRITE_PUT, "7", "");
  writes[1].value = frondb_bytes(NULL, 1);
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
  CHECK(failed_at == 1);
  writes[1] = write_of(table->rows, FRONDB_WRITE_UPDATE, "7", "");
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, writes, 2, true, &failed_at, NULL));
  CHECK(failed_at == 1 && !txn_has(txn, table->rows, "6"));
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(txn, NULL, 2, true, &failed_at, NULL));
  CHECK(failed_at == 2);
  OK(frondb_txn_write_entries(txn, NULL, 0, true, &failed_at, &any_outdated));
  CHECK(failed_at == 0 && !any_outdated);

  /* Without all_or_none the writes before the one that failed stay. */
  new_row(table, writes, "9", "Bob", "Ulm 9");
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, writes, 3, false, &failed_at, NULL));
  CHECK(failed_at == 2 && txn_has(txn, table->rows, "9") && txn_has(txn, table->towns, "Ulm 9"));
  OK(frondb_txn_delete(txn, table->rows, frondb_text("9")));

  /* Earlier writes and savepoints are kept. */
  CHECK(txn_has(txn, table->rows, "own"));
  new_row(table, writes, "8", "Hal", "Ulm 8");
  OK(frondb_txn_write_entries(txn, writes, 3, true, NULL, NULL));
  OK(frondb_txn_roll_back_to(txn, savepoint));
  CHECK(!txn_has(txn, table->rows, "8") && !txn_has(txn, table->names, "Hal"));
  end(txn);

  /* After the end of the transaction. */
  OK(frondb_txn_rollback(other));
  FAILS(FRONDB_INVALID, frondb_txn_write_entries(other, writes, 3, true, &failed_at, NULL));
  CHECK(failed_at == 3);
  CHECK(frondb_txn_free(other) == FRONDB_OK);
  CHECK(has(table->rows, "own", "kept"));
}

/* Inserts of existing keys by transactions that do not write these keys. */
static void shares_existing(struct table *table) {
  frondb_txn *txn = begin(table, false), *other = begin(table, false);
  frondb_write write = write_of(table->names, FRONDB_WRITE_INSERT, "Bob", "9"), writes[4];
  size_t failed_at;
  uint64_t savepoint;
  write.flags = FRONDB_WRITE_SHARE_EXISTING;
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, &write, 1, true, &failed_at, NULL));
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(other, &write, 1, false, &failed_at, NULL));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_txn_delete(other, table->names, frondb_text("Bob")));
  OK(frondb_txn_put(other, table->names, frondb_text("mine"), frondb_text("")));
  write.key = frondb_text("mine");
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(other, &write, 1, true, &failed_at, NULL));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_txn_write_entries(txn, &write, 1, true, &failed_at, NULL));

  /* Undoing a row unlocks the keys that it inserted. Keys that were locked before stay locked. */
  OK(frondb_txn_set_savepoint(txn, &savepoint));
  OK(frondb_txn_put(txn, table->rows, frondb_text("50"), frondb_text("")));
  OK(frondb_txn_delete(txn, table->names, frondb_text("Ben")));
  writes[0] = write_of(table->rows, FRONDB_WRITE_INSERT, "51", "Bob");
  writes[1] = write_of(table->names, FRONDB_WRITE_INSERT, "Bea", "51");
  writes[2] = write_of(table->names, FRONDB_WRITE_INSERT, "Ben", "51");
  writes[3] = write_of(table->names, FRONDB_WRITE_INSERT, "Bob", "51");
  for (size_t i = 0; i < 4; i++) writes[i].flags = FRONDB_WRITE_SHARE_EXISTING;
  FAILS(FRONDB_EXISTS, frondb_txn_write_entries(txn, writes, 4, true, &failed_at, NULL));
  CHECK(failed_at == 3);
  OK(frondb_txn_put(other, table->rows, frondb_text("51"), frondb_text("")));
  OK(frondb_txn_put(other, table->names, frondb_text("Bea"), frondb_text("")));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_txn_delete(other, table->rows, frondb_text("50")));
  FAILS(FRONDB_LOCK_TIMEOUT, frondb_txn_put(other, table->names, frondb_text("Ben"), frondb_text("")));
  OK(frondb_txn_rollback(txn));
  OK(frondb_txn_rollback(other));
  CHECK(frondb_txn_free(txn) == FRONDB_OK && frondb_txn_free(other) == FRONDB_OK);
}

/* Keys that other transactions have changed since the snapshot. */
static void outdated(struct table *table) {
  frondb_txn *txn = begin(table, false), *strict = begin(table, true);
  frondb_write writes[2];
  size_t failed_at;
  bool any_outdated;
  OK(frondb_txn_take_snapshot(txn));
  OK(frondb_txn_take_snapshot(strict));
  PUT(table->rows, "o", "newer");
  writes[0] = write_of(table->rows, FRONDB_WRITE_PUT, "same", "x");
  writes[1] = write_of(table->rows, FRONDB_WRITE_PUT, "o", "x");
  writes[0].flags = FRONDB_WRITE_CHECK_OUTDATED;
  OK(frondb_txn_write_entries(txn, writes, 2, true, NULL, &any_outdated));
  CHECK(!any_outdated);
  writes[1].flags = FRONDB_WRITE_CHECK_OUTDATED;
  OK(frondb_txn_write_entries(txn, writes, 2, true, NULL, NULL));
  OK(frondb_txn_write_entries(txn, writes, 2, true, NULL, &any_outdated));
  CHECK(any_outdated);
  OK(frondb_txn_overlay_delete(txn, table->rows, frondb_text("o")));
  OK(frondb_txn_write_entries(txn, writes, 2, true, NULL, &any_outdated));
  CHECK(!any_outdated);
  OK(frondb_txn_rollback(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  /* Under snapshot isolation such a write fails with a conflict. */
  FAILS(FRONDB_CONFLICT,
        frondb_txn_write_entries(strict, writes, 2, true, &failed_at, &any_outdated));
  CHECK(failed_at == 1 && !any_outdated && !txn_has(strict, table->rows, "same"));
  CHECK(frondb_txn_free(strict) == FRONDB_OK);
}

int main(int argc, char **argv) {
  struct table table;
  CHECK(argc == 2);
  table.db = open_small(argv[1], NULL);
  table.rows = make_tree(table.db, "rows");
  table.names = make_tree(table.db, "names");
  table.towns = make_tree(table.db, "towns");
  example(&table);
  rows(&table);
  all_or_none(&table);
  shares_existing(&table);
  outdated(&table);
  CHECK(frondb_tree_free(table.rows) == FRONDB_OK && frondb_tree_free(table.names) == FRONDB_OK);
  CHECK(frondb_tree_free(table.towns) == FRONDB_OK);
  close_all(table.db);
  return done();
}
