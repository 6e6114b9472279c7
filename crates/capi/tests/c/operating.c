/* Operating a database: its log listener, its files, and limits of its background work. */
#include "check.h"

struct heard {
  int messages, errors, freed;
  char last[4096];
};

static void hear(void *user_data, frondb_log_level level, const char *message) {
  struct heard *heard = user_data;
  heard->messages++;
  if (level == FRONDB_LOG_ERROR) heard->errors++;
  CHECK(level <= FRONDB_LOG_INFO && strlen(message) < sizeof heard->last);
  strcpy(heard->last, message);
}

static void freed(void *user_data) { ((struct heard *)user_data)->freed++; }

/* A recovery is reported to the listener that was set when the recovery ran. */
static void listens(const char *path) {
  struct heard heard, other;
  frondb_db *db = open_small(path, NULL);
  frondb_tree *tree = make_tree(db, "t");
  memset(&heard, 0, sizeof heard);
  memset(&other, 0, sizeof other);
  PUT(tree, "key", "value");
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  CHECK(frondb_db_free(db) == FRONDB_OK);

  OK(frondb_set_log(hear, &heard, freed));
  db = open_small(path, NULL);
  CHECK(heard.messages == 1 && heard.errors == 0 && strstr(heard.last, "replayed 1 messages") != NULL);
  CHECK(frondb_db_free(db) == FRONDB_OK);
  OK(frondb_set_log(hear, &other, NULL));
  CHECK(heard.freed == 1);
  db = open_small(path, NULL);
  CHECK(heard.messages == 1 && other.messages == 1);
  CHECK(frondb_db_free(db) == FRONDB_OK);
  OK(frondb_set_log(NULL, NULL, NULL));
  db = open_small(path, NULL);
  CHECK(other.messages == 1);
  close_all(db);
}

static void files(frondb_db *db) {
  frondb_list *files;
  frondb_file_info info;
  frondb_slice text;
  uint64_t bytes[4] = {0, 0, 0, 0}, handles;
  size_t i;
  handles = frondb_live_handles();
  OK(frondb_db_files(db, &files));
  CHECK(frondb_live_handles() == handles + 1);
  CHECK(frondb_list_count(files) >= 4);
  for (i = 0; i < frondb_list_count(files); i++) {
    OK(frondb_list_get_file(files, i, &info));
    CHECK(info.kind <= FRONDB_FILE_MARK && info.path[0] != 0);
    CHECK(info.kind != FRONDB_FILE_DATA || strstr(info.path, "data-") != NULL);
    bytes[info.kind] += info.bytes;
  }
  CHECK(bytes[FRONDB_FILE_LOG] > 0 && bytes[FRONDB_FILE_MANIFEST] > 0);
  FAILS(FRONDB_INVALID, frondb_list_get_file(files, i, &info));
  FAILS(FRONDB_INVALID, frondb_list_get(files, 0, &text));
  CHECK(frondb_list_free(files) == FRONDB_OK && frondb_list_count(files) == 0);
}

/* The current value of a statistic. */
static uint64_t stat(frondb_db *db, const char *name) {
  frondb_stats *stats;
  uint64_t value;
  OK(frondb_db_stats(db, &stats));
  OK(frondb_stats_find(stats, name, &value));
  CHECK(frondb_stats_free(stats) == FRONDB_OK);
  return value;
}

struct told {
  int flushes_began, flushes_ended, freed;
};

static void tell(void *user_data, const frondb_event *event) {
  struct told *told = user_data;
  if (strcmp(event->name, "flush_began") == 0) {
    CHECK(event->bytes == 0 && event->nanos == 0);
    told->flushes_began++;
  }
  if (strcmp(event->name, "flush_ended") == 0) {
    CHECK(event->tree > 0 && event->bytes > 0 && event->nanos > 0 && event->message[0] == 0);
    told->flushes_ended++;
  }
}

static void end_told(void *user_data) { ((struct told *)user_data)->freed++; }

/* The event listener, latencies among the statistics, and the page for Prometheus. */
static void sees(const char *path) {
  struct told told = {0, 0, 0};
  frondb_read_profile profile;
  frondb_stats *stats;
  frondb_db *db = open_small(path, NULL);
  frondb_tree *tree = make_tree(db, "seen");
  OK(frondb_db_set_event_listener(db, tell, &told, end_told));
  FAILS(FRONDB_INVALID, frondb_db_set_event_listener(NULL, tell, &told, end_told));
  PUT(tree, "a", "1");
  OK(frondb_db_flush(db));
  CHECK(told.flushes_began == 1 && told.flushes_ended == 1 && told.freed == 0);
  OK(frondb_db_set_event_listener(db, NULL, NULL, NULL));
  CHECK(told.freed == 1);
  CHECK(stat(db, "latency_commit_count") == 1 && stat(db, "latency_flush_count") == 1);
  CHECK(stat(db, "latency_flush_max_nanos") >= stat(db, "latency_flush_p50_nanos"));
  frondb_profile_begin();
  frondb_profile_begin();
  CHECK(has(tree, "a", "1"));
  frondb_profile_end(&profile);
  CHECK(profile.reads + profile.cached_blocks >= 1);
  frondb_profile_end(NULL);
  frondb_profile_end(&profile);
  CHECK(profile.reads == 0 && profile.cached_blocks == 0);
  OK(frondb_db_prometheus(db, &stats));
  CHECK(strstr(frondb_stats_text(stats), "\nfrondb_commits_total 1\n") != NULL);
  CHECK(strstr(frondb_stats_text(stats), "frondb_latency_seconds_count{kind=\"flush\"} 1") != NULL);
  CHECK(frondb_stats_count(stats) > 60 && frondb_stats_free(stats) == FRONDB_OK);
  FAILS(FRONDB_INVALID, frondb_db_prometheus(NULL, &stats));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

static void limits(const char *path) {
  frondb_options *options;
  frondb_db *db;
  frondb_tree *tree;
  OK(frondb_options_new(&options));
  OK(frondb_options_set(options, "memory_bytes", "32M"));
  OK(frondb_options_set(options, "checkpoint_period", "400000h"));
  FAILS(FRONDB_INVALID, frondb_db_open(path, options, &db));
  OK(frondb_options_set(options, "checkpoint_period", "60s"));
  OK(frondb_options_set(options, "background_bytes_per_second", "1G"));
  OK(frondb_db_open(path, options, &db));
  CHECK(frondb_options_free(options) == FRONDB_OK);
  OK(frondb_db_open_tree(db, "t", &tree));
  files(db);
  FAILS(FRONDB_INVALID, frondb_db_set_checkpoint_millis(db, UINT64_MAX));
  OK(frondb_db_set_background_bytes_per_second(db, 0));
  FAILS(FRONDB_INVALID, frondb_db_set_memory_bytes(db, 1 << 20));
  CHECK(stat(db, "memory_total") == 32 << 20);
  OK(frondb_db_set_memory_bytes(db, 16 << 20));
  CHECK(stat(db, "memory_total") == 16 << 20);
  uint64_t alone = stat(db, "memory_used");
  OK(frondb_db_set_outside_memory_bytes(db, 300000));
  CHECK(stat(db, "memory_used") == alone + 300000);
  OK(frondb_db_set_outside_memory_bytes(db, UINT64_MAX));
  CHECK(stat(db, "memory_used") == alone + (1 << 20));
  OK(frondb_db_set_outside_memory_bytes(db, 0));
  OK(frondb_db_set_memory_bytes(db, 0));
  CHECK(stat(db, "memory_total") >= 16 << 20 && stat(db, "memory_total") != 16 << 20);
  /* A checkpoint happens soon after the period. If it does not, the time limit of the test ends
   * the loop. */
  OK(frondb_db_set_checkpoint_millis(db, 1));
  PUT(tree, "key", "value");
  while (stat(db, "checkpoints") == 0)
    ;
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

struct passed {
  uint64_t calls, most;
  int32_t answer;
};

static int32_t pass(void *user_data, const char *tree, uint64_t done, uint64_t leaves) {
  struct passed *passed = user_data;
  CHECK(strcmp(tree, "t") == 0 && done <= leaves);
  passed->calls++;
  passed->most = done;
  return passed->answer;
}

static uint64_t count(frondb_stats *counts, const char *name) {
  uint64_t value;
  OK(frondb_stats_find(counts, name, &value));
  return value;
}

static void optimizes(const char *path) {
  struct passed passed = {0, 0, 0};
  frondb_db *db = open_small(path, NULL);
  frondb_tree *tree = make_tree(db, "t");
  frondb_stats *counts;
  PUT(tree, "a", "old");
  OK(frondb_db_flush(db));
  PUT(tree, "a", "new");
  OK(frondb_tree_optimize(tree, 1.0, 0, pass, &passed, &counts));
  CHECK(passed.calls > 0 && passed.most == 1);
  CHECK(count(counts, "leaves") == 1 && count(counts, "rewritten") == 1);
  CHECK(count(counts, "held") == 0 && count(counts, "failed") == 0);
  CHECK(count(counts, "disk_bytes_before") > 0 && count(counts, "disk_bytes_after") > 0);
  CHECK(frondb_stats_free(counts) == FRONDB_OK);
  OK(frondb_tree_optimize(tree, 0.5, 100, NULL, NULL, &counts));
  CHECK(count(counts, "rewritten") == 0);
  CHECK(frondb_stats_free(counts) == FRONDB_OK);
  OK(frondb_tree_optimize(tree, 1.0, 0, NULL, NULL, NULL));
  passed.answer = 1;
  FAILS(FRONDB_CANCELLED, frondb_tree_optimize(tree, 1.0, 0, pass, &passed, &counts));
  FAILS(FRONDB_INVALID, frondb_tree_optimize(tree, 0.0, 0, NULL, NULL, NULL));
  FAILS(FRONDB_INVALID, frondb_tree_optimize(NULL, 1.0, 0, NULL, NULL, NULL));
  OK(frondb_db_drop_tree(db, "t"));
  FAILS(FRONDB_NOT_FOUND, frondb_tree_optimize(tree, 1.0, 0, NULL, NULL, NULL));
  CHECK(frondb_tree_free(tree) == FRONDB_OK);
  close_all(db);
}

static int32_t pace(void *user_data, const char *tree, uint64_t done, uint64_t millis) {
  CHECK(tree[0] == 0 && done <= millis + 60000);
  ++*(uint64_t *)user_data;
  return 0;
}

static int32_t refuse(void *user_data, const char *tree, uint64_t done, uint64_t millis) {
  (void)user_data, (void)tree, (void)done, (void)millis;
  return 1;
}

static void measures(const char *path) {
  frondb_measure_options options = {100, 16 << 20, 2, true};
  frondb_stats *stats;
  uint64_t calls = 0, value, p50, p99;
  OK(frondb_device_measure(path, &options, pace, &calls, &stats));
  CHECK(calls > 0);
  OK(frondb_stats_find(stats, "file_bytes", &value));
  CHECK(value == 16 << 20);
  OK(frondb_stats_find(stats, "caching", &value));
  CHECK(value <= FRONDB_CACHING_CACHED);
  OK(frondb_stats_find(stats, "sync_nanos_p50", &p50));
  OK(frondb_stats_find(stats, "sync_nanos_p99", &p99));
  CHECK(p50 > 0 && p50 <= p99);
  OK(frondb_stats_find(stats, "read_2_4096_nanos_between", &value));
  CHECK(value > 0);
  OK(frondb_stats_find(stats, "write_1_4096_nanos_p50", &value));
  CHECK(value > 0);
  OK(frondb_stats_find(stats, "read_model_is_good", &value));
  OK(frondb_stats_find(stats, "write_model_is_good", &value));
  CHECK(value <= 1);
  CHECK(frondb_stats_free(stats) == FRONDB_OK);
  options.writes = false;
  OK(frondb_device_measure(path, &options, NULL, NULL, &stats));
  FAILS(FRONDB_NOT_FOUND, frondb_stats_find(stats, "write_model_is_good", &value));
  CHECK(frondb_stats_free(stats) == FRONDB_OK);
  FAILS(FRONDB_CANCELLED, frondb_device_measure(path, &options, refuse, NULL, &stats));
  FAILS(FRONDB_NOT_FOUND, frondb_device_measure("/no/such/dir", &options, NULL, NULL, &stats));
  options.budget_millis = 1;
  FAILS(FRONDB_INVALID, frondb_device_measure(path, &options, NULL, NULL, &stats));
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  optimizes(argv[1]);
  listens(argv[1]);
  limits(argv[1]);
  sees(argv[1]);
  measures(argv[1]);
  return done();
}
