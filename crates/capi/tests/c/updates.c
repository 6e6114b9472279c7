/* An update function of the caller: increments counters without reading them. */
#include "check.h"

static int freed;

static void free_calls(void *user_data) {
  freed++;
  free(user_data);
}

static int read_number(frondb_slice bytes, uint64_t *number) {
  if (bytes.len != sizeof *number) return 1;
  memcpy(number, bytes.data, sizeof *number);
  return 0;
}

static int add(void *user_data, frondb_slice key, const frondb_slice *existing,
               frondb_slice operand, frondb_output *output) {
  uint64_t sum = 0, plus = 0;
  (void)key;
  CHECK(user_data != NULL);
  if ((existing != NULL && read_number(*existing, &sum) != 0) || read_number(operand, &plus) != 0) {
    OK(frondb_output_append(output, frondb_text("no number of 8 bytes")));
    return 1;
  }
  sum += plus;
  OK(frondb_output_append(output, frondb_bytes(&sum, 3)));
  OK(frondb_output_append(output, frondb_bytes((char *)&sum + 3, 5)));
  return 0;
}

static int combine(void *user_data, frondb_slice key, frondb_slice older, frondb_slice newer,
                   frondb_output *output) {
  return add(user_data, key, &older, newer, output);
}

static uint64_t count(frondb_tree *tree, const char *key) {
  uint64_t number = 0;
  size_t len;
  bool found;
  OK(frondb_tree_get_into(tree, frondb_text(key), NULL, &number, sizeof number, &len, &found));
  CHECK(found && len == sizeof number);
  return number;
}

int main(int argc, char **argv) {
  frondb_update_fn function = {0};
  frondb_options *options;
  frondb_tree_options *tree_options;
  frondb_db *db;
  frondb_tree *tree, *plain;
  frondb_batch *batch;
  frondb_txn *txn;
  frondb_buffer *buffer;
  frondb_error *error;
  uint64_t two = 2;
  bool found;
  int i;
  CHECK(argc == 2);

  OK(frondb_options_new(&options));
  function.name = "add";
  function.version = 3;
  FAILS(FRONDB_INVALID, frondb_options_add_update_fn(options, &function));
  function.size = sizeof function;
  FAILS(FRONDB_INVALID, frondb_options_add_update_fn(options, &function));
  FAILS(FRONDB_INVALID, frondb_options_add_update_fn(options, NULL));
  function.apply = add;
  function.combine = combine;
  function.free_user_data = free_calls;
  CHECK(freed == 0);
  CHECK(frondb_options_free(options) == FRONDB_OK);

  function.user_data = malloc(1);
  db = open_small(argv[1], &function);
  OK(frondb_tree_options_new(&tree_options));
  OK(frondb_tree_options_set_update_fn(tree_options, "add", 4));
  FAILS(FRONDB_INVALID, frondb_db_create_tree(db, "counts", tree_options, &tree));
  OK(frondb_tree_options_set_update_fn(tree_options, "add", 3));
  OK(frondb_db_create_tree(db, "counts", tree_options, &tree));
  CHECK(frondb_tree_options_free(tree_options) == FRONDB_OK);

  OK(frondb_batch_new(&batch));
  for (i = 0; i < 1000; i++) {
    OK(frondb_batch_update(batch, tree, frondb_text("a"), frondb_bytes(&two, sizeof two)));
  }
  OK(frondb_db_write(db, batch, FRONDB_NO_SYNC));
  CHECK(frondb_batch_free(batch) == FRONDB_OK);
  CHECK(count(tree, "a") == 2000);
  OK(frondb_db_flush(db));
  OK(frondb_tree_update(tree, frondb_text("a"), frondb_bytes(&two, sizeof two)));
  OK(frondb_db_begin(db, NULL, &txn));
  OK(frondb_txn_update(txn, tree, frondb_text("a"), frondb_bytes(&two, sizeof two)));
  OK(frondb_txn_commit(txn));
  CHECK(frondb_txn_free(txn) == FRONDB_OK);
  OK(frondb_db_flush(db));
  CHECK(count(tree, "a") == 2004);

  /* The reader gets the function's error message. */
  OK(frondb_buffer_new(&buffer));
  OK(frondb_tree_update(tree, frondb_text("b"), frondb_text("x")));
  error = frondb_tree_get(tree, frondb_text("b"), NULL, buffer, &found);
  CHECK(frondb_error_kind(error) == FRONDB_INVALID);
  CHECK(strstr(frondb_error_message(error), "no number of 8 bytes") != NULL);
  CHECK(frondb_error_free(error) == FRONDB_OK);
  CHECK(frondb_buffer_free(buffer) == FRONDB_OK);
  OK(frondb_tree_delete(tree, frondb_text("b")));

  plain = make_tree(db, "plain");
  FAILS(FRONDB_INVALID, frondb_tree_update(plain, frondb_text("a"), frondb_text("x")));
  CHECK(frondb_tree_free(plain) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_output_append((frondb_output *)db, frondb_text("x")));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
  CHECK(freed == 1);

  /* Opened without the function: other keys can be read, and so can keys whose updates were
   * already applied. */
  db = open_small(argv[1], NULL);
  OK(frondb_db_open_tree(db, "counts", &tree));
  FAILS(FRONDB_INVALID, frondb_tree_update(tree, frondb_text("a"), frondb_bytes(&two, 8)));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
  return done();
}
