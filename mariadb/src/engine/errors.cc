/* SPDX-License-Identifier: GPL-2.0-only

   See engine/errors.h. */

#include "engine/errors.h"

#include <my_global.h>
#include <my_base.h>
#include <sql_class.h>
#include <mysqld.h>
#include <mysqld_error.h>
#include <log.h>

#include <algorithm>
#include <cstring>

#include "engine/error_numbers.h"
#include "engine/server.h"

namespace fron {
namespace {

constexpr size_t SENTENCE_MAX = Sentence::MAX;

void (*deadlock_listener)() = nullptr;

/** The sentence of this thread's last error of the engine or the plugin. */
thread_local char last_sentence[SENTENCE_MAX];

void copy(const char *sentence, char *to) {
  size_t length = std::min(strlen(sentence), SENTENCE_MAX - 1);
  memcpy(to, sentence, length);
  to[length] = 0;
}

int with_sentence(const char *sentence) {
  copy(sentence, last_sentence);
  return HA_ERR_FRONDB;
}

/** Writes a text to the server's log, unless it equals the thread's last one: a scan that finds damage in each of its
    rows must not fill the log. */
void log(const char *sentence) {
  thread_local char last[SENTENCE_MAX];
  if (strncmp(last, sentence, SENTENCE_MAX - 1) == 0) return;
  copy(sentence, last);
  sql_print_error("FronDB: %s", sentence);
}

/** Makes the server roll back the whole transaction, even if the statement ignores the error. */
void roll_back() {
  if (THD *thd = _current_thd()) thd->mark_transaction_to_rollback(true);
}

/** The engine has rolled the transaction back. */
void deadlock() {
  if (deadlock_listener) deadlock_listener();
  roll_back();
}

/** Adds a warning, because the server's own message for this error does not say what to do. */
void too_many_locks(const char *sentence) {
  if (THD *thd = _current_thd())
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_LOCK_TABLE_FULL, "FronDB: %s", sentence);
}

}  // namespace

Sentence::Sentence(const Error &error) {
  frondb_place place;
  if (error.place(&place) && error.kind() == FRONDB_IO)
    snprintf(text_, sizeof text_, "%s (at byte %llu)", error.message(), ulonglong(place.offset));
  else if (error.place(&place))
    snprintf(text_, sizeof text_, "%s is damaged at byte %llu (%s): %s", place.file, ulonglong(place.offset),
             place.what, error.message());
  else
    snprintf(text_, sizeof text_, "%s", error.message());
}

void set_deadlock_listener(void (*listener)()) { deadlock_listener = listener; }

int ha_error(const Error &error) {
  if (!error) return 0;
  frondb_kind kind = error.kind();
  copy(error.message(), last_sentence);
  if (kind == FRONDB_DEADLOCK)
    deadlock();
  else if (kind == FRONDB_CONFLICT)
    // As InnoDB does: the transaction cannot succeed at its snapshot, and an application that repeats it must not commit
    // what it has done before.
    roll_back();
  else if (kind == FRONDB_TOO_MANY_LOCKS)
    too_many_locks(error.message());
  else if (kind == FRONDB_CORRUPTION)
    log(Sentence(error).text());
  else if (kind == FRONDB_POISONED || kind == FRONDB_IO || kind == FRONDB_INTERNAL)
    log(error.message());
  return number_of(kind);
}

int ha_internal(const char *sentence) { return with_sentence(sentence); }

int ha_damaged(const char *table, const char *index) {
  char sentence[SENTENCE_MAX];
  snprintf(sentence, sizeof sentence, "an entry of index %s of table %s cannot be decoded", index, table);
  log(sentence);
  return HA_ERR_CRASHED;
}

int ha_out_of_memory() { return HA_ERR_OUT_OF_MEM; }

int raise_at_commit(int number) {
  if (number == HA_ERR_DISK_FULL)
    my_printf_error(ER_DISK_FULL, "Disk got full committing (Errcode: " SHOWN_ERRNO ")", MYF(ME_ERROR_LOG), number);
  else if (number == HA_ERR_ABORTED_BY_USER)
    my_error(ER_QUERY_INTERRUPTED, MYF(0));
  else if (number == HA_ERR_FRONDB)
    my_printf_error(ER_GET_ERRMSG, "Got error %d '%s' from FronDB", MYF(0), number, last_sentence);
  return number;
}

int raise_bare(int number, const char *doing) {
  switch (number) {
    case 0: break;
    case HA_ERR_DISK_FULL:
      my_printf_error(ER_DISK_FULL, "Disk got full: %s (Errcode: " SHOWN_ERRNO ")", MYF(ME_ERROR_LOG), doing, number);
      break;
    case HA_ERR_LOCK_DEADLOCK: my_error(ER_LOCK_DEADLOCK, MYF(0)); break;
    case HA_ERR_LOCK_WAIT_TIMEOUT: my_error(ER_LOCK_WAIT_TIMEOUT, MYF(0)); break;
    case HA_ERR_OUT_OF_MEM: my_error(ER_OUT_OF_RESOURCES, MYF(0)); break;
    case HA_ERR_ABORTED_BY_USER: my_error(ER_QUERY_INTERRUPTED, MYF(0)); break;
    default: my_printf_error(ER_GET_ERRMSG, "Got error %d '%s' from FronDB", MYF(0), number, last_sentence);
  }
  return number;
}

bool message(int number, String *to) {
  if (number != HA_ERR_FRONDB) return false;
  to->append(last_sentence, strlen(last_sentence));
  return true;
}

}  // namespace fron
