/* The wait hook, and the early release of locks. */
#include "check.h"

static frondb_txn *begin(frondb_db *db, frondb_isolation isolation) {
  frondb_txn_options *options;
  frondb_txn *txn;
  OK(frondb_txn_options_new(&options));
  OK(frondb_txn_options_set_isolation(options, isolation));
  OK(frondb_txn_options_set_lock_timeout_millis(options, 60000));
  OK(frondb_db_begin(db, options, &txn));
  CHECK(frondb_txn_options_free(options) == FRONDB_OK);
  return txn;
}

static void lock(frondb_txn *txn, frondb_tree *tree, const char *key) {
  size_t len;
  bool found;
  OK(frondb_txn_get_into(txn, tree, frondb_text(key), FRONDB_LOCK_EXCLUSIVE, FRONDB_NO_WAIT, NULL, 0,
                         &len, &found));
}

/* Whether no transaction has a lock on a key. */
static bool is_free(frondb_db *db, frondb_tree *tree, const char *key) {
  frondb_txn *txn = begin(db, FRONDB_REPEATABLE_READ);
  size_t len;
  bool found;
  frondb_error *error = frondb_txn_get_into(txn, tree, frondb_text(key), FRONDB_LOCK_EXCLUSIVE,
                                            FRONDB_NO_WAIT, NULL, 0, &len, &found);
  bool is = error == NULL;
  CHECK(is || frondb_error_kind(error) == FRONDB_BUSY);
  frondb_error_free(error);
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  return is;
}

static void unlock(frondb_db *db, frondb_tree *tree) {
  frondb_txn *txn = begin(db, FRONDB_READ_COMMITTED);
  lock(txn, tree, "u1");
  OK(frondb_txn_unlock(txn, tree, frondb_text("u1")));
  CHECK(is_free(db, tree, "u1"));
  lock(txn, tree, "u2");
  OK(frondb_txn_put(txn, tree, frondb_text("u2"), frondb_text("v")));
  OK(frondb_txn_unlock(txn, tree, frondb_text("u2")));
  CHECK(!is_free(db, tree, "u2"));
  FAILS(FRONDB_INVALID, frondb_txn_unlock(txn, NULL, frondb_text("u2")));
  OK(frondb_txn_rollback(txn));
  FAILS(FRONDB_INVALID, frondb_txn_unlock(txn, tree, frondb_text("u2")));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

static void statement(frondb_db *db, frondb_tree *tree) {
  frondb_txn *txn = begin(db, FRONDB_READ_COMMITTED);
  bool found;
  OK(frondb_txn_begin_statement(txn));
  PUT(tree, "s", "1");
  OK(frondb_txn_exists(txn, tree, frondb_text("s"), &found));
  CHECK(!found);
  OK(frondb_txn_end_statement(txn));
  OK(frondb_txn_exists(txn, tree, frondb_text("s"), &found));
  CHECK(found);
  OK(frondb_txn_rollback(txn));
  FAILS(FRONDB_INVALID, frondb_txn_end_statement(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

struct hook {
  uint64_t waiter, blocker;
  int calls, freed;
  /* The transaction whose wait the hook does not allow; the hook cancels the wait. */
  frondb_txn *unwanted;
};

static void notified(void *user_data, uint64_t waiter, const uint64_t *blockers, size_t count) {
  struct hook *hook = user_data;
  CHECK(count == 1);
  hook->waiter = waiter;
  hook->blocker = blockers[0];
  hook->calls++;
  OK(frondb_txn_cancel(hook->unwanted));
}

static void hook_freed(void *user_data) { ((struct hook *)user_data)->freed++; }

static void hook(frondb_db *db, frondb_tree *tree) {
  frondb_txn *holder = begin(db, FRONDB_REPEATABLE_READ), *waiter = begin(db, FRONDB_REPEATABLE_READ);
  struct hook hook = {0, 0, 0, 0, waiter};
  uint64_t holders, waiters;
  OK(frondb_txn_id(holder, &holders));
  OK(frondb_txn_id(waiter, &waiters));
  OK(frondb_db_set_wait_hook(db, notified, &hook, hook_freed));
  OK(frondb_txn_put(holder, tree, frondb_text("h"), frondb_text("v")));
  CHECK(hook.calls == 0);
  FAILS(FRONDB_CANCELLED, frondb_txn_put(waiter, tree, frondb_text("h"), frondb_text("w")));
  CHECK(hook.calls == 1 && hook.waiter == waiters && hook.blocker == holders);
  OK(frondb_db_set_wait_hook(db, NULL, NULL, NULL));
  CHECK(hook.freed == 1);
  CHECK(frondb_txn_free(waiter) == FRONDB_OK && frondb_txn_free(holder) == FRONDB_OK);
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  tree = make_tree(db, "t");
  unlock(db, tree);
  statement(db, tree);
  hook(db, tree);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
  return done();
}
