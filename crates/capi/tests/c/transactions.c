/* Transactions: isolation, locks, deadlocks between threads, savepoints, cancels, commits in order,
 * and two phases. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

static frondb_txn *begin(frondb_db *db, frondb_isolation isolation, uint64_t timeout_millis) {
  frondb_txn_options *options;
  frondb_txn *txn;
  OK(frondb_txn_options_new(&options));
  OK(frondb_txn_options_set_isolation(options, isolation));
  OK(frondb_txn_options_set_lock_timeout_millis(options, timeout_millis));
  OK(frondb_txn_options_set_durability(options, FRONDB_NO_SYNC));
  OK(frondb_db_begin(db, options, &txn));
  CHECK(frondb_txn_options_free(options) == FRONDB_OK);
  return txn;
}

static bool txn_has(frondb_txn *txn, frondb_tree *tree, const char *key, const char *value) {
  char memory[64];
  size_t len;
  bool found;
  OK(frondb_txn_get_into(txn, tree, frondb_text(key), FRONDB_LOCK_NONE, FRONDB_WAIT, memory,
                         sizeof memory, &len, &found));
  return found && is(frondb_bytes(memory, len), value);
}

static frondb_error *txn_put(frondb_txn *txn, frondb_tree *tree, const char *key,
                             const char *value) {
  return frondb_txn_put(txn, tree, frondb_text(key), frondb_text(value));
}

static frondb_error *lock(frondb_txn *txn, frondb_tree *tree, const char *key, frondb_lock how,
                          frondb_wait wait) {
  size_t len;
  bool found;
  return frondb_txn_get_into(txn, tree, frondb_text(key), how, wait, NULL, 0, &len, &found);
}

static void end(frondb_txn *txn) {
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
}

static void isolation(frondb_db *db, frondb_tree *tree) {
  frondb_txn *repeatable = begin(db, FRONDB_REPEATABLE_READ, 1000);
  frondb_txn *committed = begin(db, FRONDB_READ_COMMITTED, 1000), *writer;
  frondb_txn_options *options;
  frondb_slice keys[2], values[2];
  frondb_buffer *buffer;
  uint64_t first, second;
  bool found;
  PUT(tree, "a", "1");
  CHECK(txn_has(repeatable, tree, "a", "1") && txn_has(committed, tree, "a", "1"));
  OK(frondb_txn_begin_statement(committed));
  writer = begin(db, FRONDB_REPEATABLE_READ, 1000);
  OK(txn_put(writer, tree, "a", "2"));
  OK(txn_put(writer, tree, "new", "3"));
  CHECK(txn_has(writer, tree, "a", "2") && has(tree, "a", "1"));
  OK(frondb_txn_exists(writer, tree, frondb_text("new"), &found));
  CHECK(found);
  OK(frondb_txn_own_messages(writer, tree, frondb_text("b"), NULL, &first));
  CHECK(first == 1);
  keys[0] = frondb_text("new");
  keys[1] = frondb_text("nothing");
  OK(frondb_buffer_new(&buffer));
  OK(frondb_txn_multi_get(writer, tree, keys, 2, buffer, values));
  CHECK(is(values[0], "3") && values[1].data == NULL);
  OK(frondb_txn_get(writer, tree, keys[0], FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT, buffer, &found));
  CHECK(found && is(frondb_buffer_value(buffer), "3"));
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  OK(frondb_txn_id(repeatable, &first));
  OK(frondb_txn_id(writer, &second));
  CHECK(first < second);
  end(writer);
  CHECK(has(tree, "a", "2"));
  CHECK(txn_has(repeatable, tree, "a", "1") && txn_has(committed, tree, "a", "1"));
  OK(frondb_txn_begin_statement(committed));
  CHECK(txn_has(committed, tree, "a", "2"));
  end(repeatable);
  end(committed);

  OK(frondb_txn_options_new(&options));
  OK(frondb_txn_options_set_snapshot_isolation(options, true));
  OK(frondb_txn_options_set_isolation(options, FRONDB_READ_COMMITTED));
  FAILS(FRONDB_INVALID, frondb_db_begin(db, options, &writer));
  OK(frondb_txn_options_set_isolation(options, FRONDB_REPEATABLE_READ));
  OK(frondb_db_begin(db, options, &writer));
  CHECK(frondb_txn_options_free(options) == FRONDB_OK);
  OK(frondb_txn_take_snapshot(writer));
  PUT(tree, "a", "4");
  FAILS(FRONDB_CONFLICT, txn_put(writer, tree, "a", "5"));
  OK(frondb_txn_rollback(writer));
  FAILS(FRONDB_INVALID, frondb_txn_rollback(writer));
  CHECK(frondb_txn_free(writer) == FRONDB_OK);
  /* Freeing a transaction rolls it back. */
  writer = begin(db, FRONDB_SERIALIZABLE, 1000);
  OK(frondb_txn_delete(writer, tree, frondb_text("a")));
  OK(frondb_txn_delete_range(writer, tree, frondb_text("n"), NULL));
  FAILS(FRONDB_INVALID, frondb_txn_update(writer, tree, frondb_text("a"), frondb_text("x")));
  CHECK(frondb_txn_free(writer) == FRONDB_OK);
  CHECK(has(tree, "a", "4") && has(tree, "new", "3"));
}

static void locks(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 1);
  frondb_txn *two = begin(db, FRONDB_READ_COMMITTED, 1);
  frondb_cursor *cursor;
  frondb_rows rows;
  frondb_list *held;
  frondb_lock_info info;
  uint64_t id, tree_id;
  PUT(tree, "l1", "x");
  PUT(tree, "l2", "x");
  OK(lock(one, tree, "l1", FRONDB_LOCK_SHARED, FRONDB_WAIT));
  OK(lock(two, tree, "l1", FRONDB_LOCK_SHARED, FRONDB_NO_WAIT));
  FAILS(FRONDB_BUSY, lock(two, tree, "l1", FRONDB_LOCK_EXCLUSIVE, FRONDB_NO_WAIT));
  FAILS(FRONDB_LOCK_TIMEOUT, txn_put(two, tree, "l1", "y"));
  FAILS(FRONDB_EXISTS, frondb_txn_insert(two, tree, frondb_text("l2"), frondb_text("y")));
  OK(frondb_txn_insert(two, tree, frondb_text("l3"), frondb_text("y")));
  FAILS(FRONDB_INVALID, lock(two, tree, "l2", 9, FRONDB_WAIT));
  FAILS(FRONDB_INVALID, lock(two, tree, "l2", FRONDB_LOCK_SHARED, 9));

  OK(frondb_db_locks(db, 2, &held));
  CHECK(frondb_list_count(held) == 2);
  CHECK(frondb_list_free(held) == FRONDB_OK);
  OK(frondb_db_locks(db, 0, &held));
  CHECK(frondb_list_count(held) >= 3);
  OK(frondb_txn_id(one, &id));
  OK(frondb_tree_id(tree, &tree_id));
  OK(frondb_list_get_lock(held, 0, &info));
  CHECK(info.tree == tree_id && info.area == FRONDB_AREA_ROW && is(info.lo, "l1"));
  CHECK(info.mode == FRONDB_LOCK_SHARED && info.hi.data == NULL && info.blockers_count == 0);
  FAILS(FRONDB_INVALID, frondb_list_get_lock(held, 99, &info));
  CHECK(frondb_list_free(held) == FRONDB_OK);
  OK(frondb_db_lock_waits(db, &held));
  CHECK(frondb_list_count(held) == 0);
  CHECK(frondb_list_free(held) == FRONDB_OK);
  end(one);

  /* A cursor skips locked rows; `two` has locked l2 and l3. */
  one = begin(db, FRONDB_READ_COMMITTED, 1);
  OK(lock(two, tree, "l2", FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT));
  OK(frondb_txn_rollback(two));
  CHECK(frondb_txn_free(two) == FRONDB_OK);
  two = begin(db, FRONDB_READ_COMMITTED, 1);
  OK(lock(two, tree, "l1", FRONDB_LOCK_EXCLUSIVE, FRONDB_WAIT));
  OK(frondb_txn_cursor(one, tree, frondb_text("l"), NULL, FRONDB_LOCK_EXCLUSIVE,
                       FRONDB_SKIP_LOCKED, &cursor));
  OK(frondb_cursor_next_batch(cursor, 1, 100, &rows));
  CHECK(rows.count == 1 && is(rows.entries[0].key, "l2"));
  FAILS(FRONDB_BUSY, lock(two, tree, "l2", FRONDB_LOCK_SHARED, FRONDB_NO_WAIT));
  OK(frondb_cursor_unlock(cursor));
  OK(lock(two, tree, "l2", FRONDB_LOCK_SHARED, FRONDB_NO_WAIT));

  /* A cursor shows locked rows without locking them; `two` has locked l1. The lock of a key can
   * be released. */
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
  OK(frondb_txn_cursor(one, tree, frondb_text("l"), NULL, FRONDB_LOCK_SHARED, FRONDB_SHOW_LOCKED,
                       &cursor));
  OK(frondb_cursor_next_batch(cursor, 1, 100, &rows));
  CHECK(rows.count == 1 && is(rows.entries[0].key, "l1") && !frondb_cursor_is_locked(cursor));
  FAILS(FRONDB_BUSY, lock(one, tree, "l1", FRONDB_LOCK_SHARED, FRONDB_SHOW_LOCKED));
  OK(frondb_cursor_next_batch(cursor, 1, 100, &rows));
  CHECK(rows.count == 1 && is(rows.entries[0].key, "l2") && frondb_cursor_is_locked(cursor));
  CHECK(!frondb_cursor_is_locked(NULL));
  OK(frondb_txn_release_key(two, tree, frondb_text("l1")));
  OK(lock(one, tree, "l1", FRONDB_LOCK_SHARED, FRONDB_NO_WAIT));
  OK(frondb_txn_lock_range(two, tree, frondb_text("r"), NULL, FRONDB_LOCK_SHARED, FRONDB_WAIT));
  FAILS(FRONDB_INVALID, frondb_txn_lock_range(two, tree, frondb_text("r"), NULL, FRONDB_LOCK_NONE,
                                              FRONDB_WAIT));
  FAILS(FRONDB_LOCK_TIMEOUT, txn_put(one, tree, "s", "x"));
  end(two);
  end(one);
  FAILS(FRONDB_INVALID, frondb_cursor_next_batch(cursor, 1, 100, &rows));
  CHECK(frondb_cursor_free(cursor) == FRONDB_OK);
}

struct waiter {
  frondb_txn *txn;
  frondb_tree *tree;
  const char *key;
  frondb_kind kind;
};

static void *put_other(void *argument) {
  struct waiter *waiter = argument;
  frondb_error *error = txn_put(waiter->txn, waiter->tree, waiter->key, "other");
  waiter->kind = frondb_error_kind(error);
  frondb_error_free(error);
  return NULL;
}

/* Returns once a transaction waits for a lock of `blocker`. */
static void await_wait(frondb_db *db, frondb_txn *blocker) {
  frondb_list *waits;
  frondb_lock_info info;
  uint64_t id;
  bool found = false;
  OK(frondb_txn_id(blocker, &id));
  while (!found) {
    OK(frondb_db_lock_waits(db, &waits));
    if (frondb_list_count(waits) > 0) {
      OK(frondb_list_get_lock(waits, 0, &info));
      found = info.blockers_count == 1 && info.blockers[0] == id;
    }
    CHECK(frondb_list_free(waits) == FRONDB_OK);
    sched_yield();
  }
}

/* Checks the report: `one` closed the cycle when it waited for d2, which `other` had locked. */
static void last_deadlock(frondb_db *db, frondb_tree *tree, frondb_txn *one, frondb_txn *other,
                          bool took_one) {
  frondb_deadlock_info info;
  frondb_list *waits;
  frondb_lock_info wait;
  uint64_t ids[2], tree_id;
  bool found;
  size_t i;
  OK(frondb_txn_id(one, &ids[0]));
  OK(frondb_txn_id(other, &ids[1]));
  OK(frondb_tree_id(tree, &tree_id));
  OK(frondb_db_last_deadlock(db, &info, &waits, &found));
  CHECK(found && info.transactions == 2 && info.victim == ids[took_one ? 0 : 1]);
  CHECK(frondb_list_count(waits) == 2);
  for (i = 0; i < 2; i++) {
    OK(frondb_list_get_lock(waits, i, &wait));
    CHECK(wait.transaction == ids[i] && wait.tree == tree_id && is(wait.lo, i == 0 ? "d2" : "d1"));
    CHECK(wait.area == FRONDB_AREA_ROW && wait.mode == FRONDB_LOCK_EXCLUSIVE);
    CHECK(wait.blockers_count == 1 && wait.blockers[0] == ids[1 - i]);
  }
  CHECK(frondb_list_free(waits) == FRONDB_OK);
}

static void deadlock(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 60000);
  struct waiter waiter;
  pthread_t thread;
  frondb_kind kind;
  frondb_error *error;
  frondb_deadlock_info info;
  frondb_list *waits;
  bool found;
  waiter.txn = begin(db, FRONDB_REPEATABLE_READ, 60000);
  waiter.tree = tree;
  waiter.key = "d1";
  OK(frondb_db_last_deadlock(db, &info, &waits, &found));
  CHECK(!found && waits == NULL);
  OK(txn_put(one, tree, "d1", "one"));
  OK(txn_put(waiter.txn, tree, "d2", "other"));
  CHECK(pthread_create(&thread, NULL, put_other, &waiter) == 0);
  await_wait(db, one);
  /* The other thread uses the transaction, so it cannot be freed. */
  CHECK(frondb_txn_free(waiter.txn) == FRONDB_BUSY);
  error = txn_put(one, tree, "d2", "one");
  kind = frondb_error_kind(error);
  frondb_error_free(error);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK((kind == FRONDB_DEADLOCK) != (waiter.kind == FRONDB_DEADLOCK));
  CHECK(kind == FRONDB_OK || waiter.kind == FRONDB_OK);
  last_deadlock(db, tree, one, waiter.txn, kind == FRONDB_DEADLOCK);
  if (kind == FRONDB_DEADLOCK) {
    FAILS(FRONDB_DEADLOCK, txn_put(one, tree, "d3", "one"));
    OK(frondb_txn_rollback(one));
    end(waiter.txn);
    CHECK(frondb_txn_free(one) == FRONDB_OK);
  } else {
    end(one);
    CHECK(frondb_txn_free(waiter.txn) == FRONDB_OK);
  }
  CHECK(has(tree, "d1", kind == FRONDB_OK ? "one" : "other"));
}

static void cancel(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 60000);
  struct waiter waiter;
  pthread_t thread;
  waiter.txn = begin(db, FRONDB_REPEATABLE_READ, 60000);
  waiter.tree = tree;
  waiter.key = "c";
  OK(txn_put(one, tree, "c", "one"));
  CHECK(pthread_create(&thread, NULL, put_other, &waiter) == 0);
  await_wait(db, one);
  OK(frondb_txn_cancel(waiter.txn));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(waiter.kind == FRONDB_CANCELLED);
  /* The other transaction can continue. */
  OK(txn_put(waiter.txn, tree, "c2", "other"));
  end(waiter.txn);
  end(one);
  CHECK(has(tree, "c2", "other"));
}

struct scanner {
  frondb_cursor *cursor;
  frondb_kind kind;
};

static void *first_of(void *argument) {
  struct scanner *scanner = argument;
  bool found;
  frondb_error *error = frondb_cursor_first(scanner->cursor, &found);
  scanner->kind = frondb_error_kind(error);
  frondb_error_free(error);
  return NULL;
}

/* A transaction is in use, and cannot be freed, while one of its cursors waits. */
static void free_under_a_cursor(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 60000);
  frondb_txn *two = begin(db, FRONDB_REPEATABLE_READ, 60000);
  struct scanner scanner;
  pthread_t thread;
  OK(txn_put(one, tree, "f", "one"));
  OK(txn_put(two, tree, "g", "two"));
  OK(frondb_txn_cursor(two, tree, frondb_text("f"), NULL, FRONDB_LOCK_SHARED, FRONDB_WAIT,
                       &scanner.cursor));
  CHECK(pthread_create(&thread, NULL, first_of, &scanner) == 0);
  await_wait(db, one);
  CHECK(frondb_txn_free(two) == FRONDB_BUSY);
  OK(frondb_txn_cancel(two));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(scanner.kind == FRONDB_CANCELLED);
  CHECK(frondb_txn_free(two) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_cursor_first(scanner.cursor, &(bool){false}));
  CHECK(frondb_cursor_free(scanner.cursor) == FRONDB_OK);
  end(one);
  CHECK(has(tree, "f", "one") && !has(tree, "g", "two"));
}

/* A cancel that comes too late, and settings that change between two statements. */
static void statements(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 60000);
  frondb_txn *two = begin(db, FRONDB_REPEATABLE_READ, 60000);
  OK(txn_put(one, tree, "st", "one"));
  OK(frondb_txn_cancel(two));
  FAILS(FRONDB_CANCELLED, txn_put(two, tree, "st", "two"));
  OK(frondb_txn_cancel(two));
  OK(frondb_txn_begin_statement(two));
  OK(frondb_txn_set_lock_timeout_millis(two, 1));
  FAILS(FRONDB_LOCK_TIMEOUT, txn_put(two, tree, "st", "two"));
  FAILS(FRONDB_INVALID, frondb_txn_set_durability(two, 99));
  OK(frondb_txn_set_durability(two, FRONDB_SYNC));
  end(two);
  OK(frondb_txn_commit(one));
  FAILS(FRONDB_INVALID, frondb_txn_set_lock_timeout_millis(one, 1));
  FAILS(FRONDB_INVALID, frondb_txn_set_durability(one, FRONDB_SYNC));
  CHECK(frondb_txn_free(one) == FRONDB_OK);
}

/* A transaction's entry in the list; all fields are zero if the list has no such entry. */
static frondb_transaction_info listed(frondb_list *list, uint64_t id) {
  frondb_transaction_info info, none = {0};
  size_t i;
  for (i = 0; i < frondb_list_count(list); i++) {
    OK(frondb_list_get_transaction(list, i, &info));
    if (info.transaction == id) return info;
  }
  FAILS(FRONDB_INVALID, frondb_list_get_transaction(list, i, &info));
  return none;
}

static void list(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one = begin(db, FRONDB_READ_COMMITTED, 60000);
  struct waiter waiter;
  frondb_list *all;
  frondb_transaction_info info;
  pthread_t thread;
  uint64_t first, second;
  waiter.txn = begin(db, FRONDB_SERIALIZABLE, 60000);
  waiter.tree = tree;
  waiter.key = "ls";
  OK(frondb_txn_id(one, &first));
  OK(frondb_txn_id(waiter.txn, &second));
  OK(txn_put(one, tree, "ls", "one"));
  OK(txn_put(one, tree, "ls", "two"));
  CHECK(pthread_create(&thread, NULL, put_other, &waiter) == 0);
  await_wait(db, one);
  OK(frondb_db_transactions(db, &all));
  CHECK(frondb_list_count(all) == 2);
  info = listed(all, first);
  CHECK(info.isolation == FRONDB_READ_COMMITTED && info.messages == 2 && info.locks == 1);
  CHECK(!info.waits && info.waited_nanos == 0 && info.xid.data == NULL);
  info = listed(all, second);
  CHECK(info.isolation == FRONDB_SERIALIZABLE && info.messages == 0 && info.locks == 0);
  CHECK(info.waits && info.xid.data == NULL && info.age_nanos >= info.waited_nanos);
  CHECK(frondb_list_free(all) == FRONDB_OK);
  OK(frondb_txn_prepare(one, frondb_text("listed")));
  OK(frondb_db_transactions(db, &all));
  info = listed(all, first);
  CHECK(is(info.xid, "listed") && info.messages == 2 && info.locks == 1);
  OK(frondb_txn_rollback(one));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(waiter.kind == FRONDB_OK);
  end(waiter.txn);
  /* The list owns the memory to which its entries point. */
  CHECK(is(listed(all, first).xid, "listed"));
  CHECK(frondb_list_free(all) == FRONDB_OK);
  CHECK(frondb_txn_free(one) == FRONDB_OK);
  OK(frondb_db_transactions(db, &all));
  CHECK(frondb_list_count(all) == 0);
  CHECK(frondb_list_free(all) == FRONDB_OK);
}

static void savepoints(frondb_db *db, frondb_tree *tree) {
  frondb_txn *txn = begin(db, FRONDB_REPEATABLE_READ, 1000), *other;
  uint64_t first, second, of_other;
  OK(txn_put(txn, tree, "s1", "kept"));
  OK(frondb_txn_set_savepoint(txn, &first));
  OK(txn_put(txn, tree, "s1", "lost"));
  OK(frondb_txn_set_savepoint(txn, &second));
  CHECK(first != 0 && second > first);
  OK(txn_put(txn, tree, "s2", "lost"));
  OK(frondb_txn_roll_back_to(txn, second));
  CHECK(!txn_has(txn, tree, "s2", "lost") && txn_has(txn, tree, "s1", "lost"));
  OK(frondb_txn_roll_back_to(txn, first));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_roll_back_to(txn, second));
  CHECK(txn_has(txn, tree, "s1", "kept"));
  OK(frondb_txn_roll_back_to(txn, first));
  other = begin(db, FRONDB_REPEATABLE_READ, 1000);
  OK(frondb_txn_set_savepoint(other, &of_other));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_roll_back_to(txn, of_other));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_release_savepoint(txn, 0));
  CHECK(frondb_txn_free(other) == FRONDB_OK);
  OK(txn_put(txn, tree, "s3", "kept"));
  OK(frondb_txn_set_savepoint(txn, &second));
  OK(txn_put(txn, tree, "s2", "lost"));
  OK(frondb_txn_forget_savepoint(txn, first));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_forget_savepoint(txn, first));
  OK(frondb_txn_roll_back_to(txn, second));
  CHECK(!txn_has(txn, tree, "s2", "lost") && txn_has(txn, tree, "s3", "kept"));
  OK(frondb_txn_set_savepoint(txn, &first));
  OK(frondb_txn_release_savepoint(txn, first));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_roll_back_to(txn, first));
  OK(frondb_txn_set_savepoint(txn, &first));
  OK(frondb_txn_commit(txn));
  FAILS(FRONDB_INVALID, frondb_txn_roll_back_to(txn, first));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  CHECK(has(tree, "s1", "kept") && has(tree, "s3", "kept") && !has(tree, "s2", "lost"));
}

struct hook {
  uint64_t calls, transaction, order, freed;
};

static void notified(void *user_data, const frondb_commit_info *info) {
  struct hook *hook = user_data;
  CHECK(info->order > hook->order && info->log_end > 0);
  hook->calls++;
  hook->order = info->order;
  hook->transaction = info->transaction;
}

static void hook_freed(void *user_data) { ((struct hook *)user_data)->freed++; }

static void commits_in_order(frondb_db *db, frondb_tree *tree) {
  frondb_txn *one, *two;
  frondb_committing *first, *second;
  struct hook hook = {0, 0, 0, 0};
  uint64_t id;
  OK(frondb_db_set_commit_hook(db, notified, &hook, hook_freed));
  one = begin(db, FRONDB_REPEATABLE_READ, 1000);
  two = begin(db, FRONDB_REPEATABLE_READ, 1000);
  OK(txn_put(one, tree, "o1", "x"));
  OK(txn_put(two, tree, "o2", "x"));
  OK(frondb_txn_commit_in_order(two, &second));
  OK(frondb_txn_id(two, &id));
  CHECK(hook.calls == 1 && hook.transaction == id && has(tree, "o2", "x"));
  OK(frondb_txn_commit_in_order(one, &first));
  CHECK(hook.calls == 2);
  OK(frondb_committing_wait(first));
  FAILS(FRONDB_INVALID, frondb_committing_wait(first));
  CHECK(frondb_committing_free(second) == FRONDB_OK);
  CHECK(frondb_txn_free(one) == FRONDB_OK && frondb_txn_free(two) == FRONDB_OK);
  OK(frondb_db_set_commit_hook(db, NULL, NULL, NULL));
  CHECK(hook.freed == 1);
  PUT(tree, "o3", "x");
  CHECK(hook.calls == 2);
}

static void begins_next(frondb_db *db, frondb_tree *tree) {
  frondb_txn *txn = begin(db, FRONDB_REPEATABLE_READ, 1000);
  uint64_t first, second, savepoint;
  OK(frondb_txn_id(txn, &first));
  OK(frondb_txn_commit(txn));
  OK(frondb_txn_begin_next(txn));
  OK(frondb_txn_id(txn, &second));
  CHECK(second > first);
  OK(frondb_txn_set_savepoint(txn, &savepoint));
  OK(txn_put(txn, tree, "n1", "x"));
  FAILS(FRONDB_INVALID, frondb_txn_begin_next(txn));
  OK(frondb_txn_commit(txn));
  CHECK(has(tree, "n1", "x"));
  OK(frondb_txn_begin_next(txn));
  FAILS(FRONDB_NOT_FOUND, frondb_txn_roll_back_to(txn, savepoint));
  OK(txn_put(txn, tree, "n1", "y"));
  CHECK(frondb_txn_free(txn) == FRONDB_OK && has(tree, "n1", "x"));
  FAILS(FRONDB_INVALID, frondb_txn_begin_next(txn));
  FAILS(FRONDB_INVALID, frondb_txn_begin_next(NULL));
}

static frondb_db *two_phases(frondb_db *db, frondb_tree *tree, const char *path) {
  frondb_txn *one = begin(db, FRONDB_REPEATABLE_READ, 1);
  frondb_txn *two = begin(db, FRONDB_REPEATABLE_READ, 1);
  frondb_txn *three = begin(db, FRONDB_REPEATABLE_READ, 1);
  frondb_list *xids;
  frondb_slice xid;
  OK(txn_put(one, tree, "p1", "x"));
  OK(txn_put(two, tree, "p2", "x"));
  OK(txn_put(three, tree, "p3", "x"));
  OK(frondb_txn_prepare(one, frondb_bytes("x\0" "1", 3)));
  OK(frondb_txn_set_durability(two, FRONDB_NO_SYNC));
  OK(frondb_txn_prepare(two, frondb_text("x2")));
  OK(frondb_txn_set_durability(two, FRONDB_SYNC));
  OK(frondb_db_sync(db));
  FAILS(FRONDB_EXISTS, frondb_txn_prepare(three, frondb_text("x2")));
  OK(frondb_txn_prepare(three, frondb_text("x3")));
  FAILS(FRONDB_INVALID, txn_put(one, tree, "p4", "x"));
  end(three);
  CHECK(frondb_txn_free(one) == FRONDB_OK && frondb_txn_free(two) == FRONDB_OK);
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  CHECK(frondb_db_free(db) == FRONDB_OK);

  db = open_small(path, NULL);
  OK(frondb_db_open_tree(db, "t", &tree));
  OK(frondb_db_prepared(db, &xids));
  CHECK(frondb_list_count(xids) == 2);
  OK(frondb_list_get(xids, 0, &xid));
  CHECK(xid.len == 3 && memcmp(xid.data, "x\0" "1", 3) == 0);
  one = begin(db, FRONDB_REPEATABLE_READ, 1);
  FAILS(FRONDB_LOCK_TIMEOUT, txn_put(one, tree, "p1", "y"));
  CHECK(frondb_txn_free(one) == FRONDB_OK);
  OK(frondb_db_commit_prepared(db, xid, FRONDB_SYNC));
  FAILS(FRONDB_NOT_FOUND, frondb_db_commit_prepared(db, xid, FRONDB_SYNC));
  OK(frondb_db_rollback_prepared(db, frondb_text("x2")));
  CHECK(frondb_list_free(xids) == FRONDB_OK);
  CHECK(has(tree, "p1", "x") && !has(tree, "p2", "x") && has(tree, "p3", "x"));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  return db;
}

int main(int argc, char **argv) {
  frondb_db *db;
  frondb_tree *tree;
  CHECK(argc == 2);
  db = open_small(argv[1], NULL);
  tree = make_tree(db, "t");
  isolation(db, tree);
  locks(db, tree);
  deadlock(db, tree);
  cancel(db, tree);
  free_under_a_cursor(db, tree);
  statements(db, tree);
  list(db, tree);
  savepoints(db, tree);
  commits_in_order(db, tree);
  begins_next(db, tree);
  db = two_phases(db, tree, argv[1]);
  close_all(db);
  return done();
}
