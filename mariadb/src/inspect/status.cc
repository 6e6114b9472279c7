/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/status.h. */

#include "inspect/status.h"

#include <cstring>
#include <ctime>
#include <iterator>
#include <mutex>

#include <sql_class.h>
#include <handler.h>

#include "backup/latest.h"
#include "engine/db.h"
#include "foreign/text.h"
#include "handler/read_free.h"
#include "inspect/lock_rows.h"
#include "inspect/transactions.h"
#include "txn/session.h"

namespace fron {
namespace {

unsigned long long drive_tbw;
MYSQL_SYSVAR_ULONGLONG(drive_tbw, drive_tbw, PLUGIN_VAR_RQCMDARG,
                       "Terabytes that the drive of the data may be written (its TBW), for the lifetime that SHOW "
                       "ENGINE FRONDB STATUS shows. 0: none is shown.",
                       nullptr, nullptr, 0, 0, 1000000, 0);

/** Maximum number of transactions, and of waits, on a page. */
constexpr size_t SHOWN_MAX = 200;

// --- Status variables ---

/** Copies objects to the statement's memory; null if there is no memory. */
template <typename T>
T *keep(MYSQL_THD thd, const T *from, size_t count) {
  auto copy = static_cast<T *>(thd_alloc(thd, count * sizeof(T)));
  if (copy) memcpy(copy, from, count * sizeof(T));
  return copy;
}

/** An empty list, used if the list cannot be made. */
st_mysql_show_var no_variables[] = {{nullptr, nullptr, SHOW_UNDEF}};

/** Fills the array that the server reads after this call, so everything is in the statement's memory. */
bool fill(MYSQL_THD thd, frondb_stats *stats, st_mysql_show_var *to) {
  for (size_t i = 0; i < frondb_stats_count(stats); i++) {
    const char *name;
    uint64_t value;
    if (Error error = frondb_stats_get(stats, i, &name, &value)) return false;
    longlong number = longlong(value);
    to[i] = {keep(thd, name, strlen(name) + 1), keep(thd, &number, 1), SHOW_ULONGLONG};
    if (!to[i].name || !to[i].value) return false;
  }
  return true;
}

int show_statistics(MYSQL_THD thd, st_mysql_show_var *variable, void *, struct system_status_var *,
                    enum enum_var_type) {
  variable->type = SHOW_ARRAY;
  variable->value = no_variables;
  Stats stats;
  if (!db()) return 0;
  if (Error error = frondb_db_stats(db(), stats.out())) return 0;  // The database was closed meanwhile.
  size_t count = frondb_stats_count(stats.get());
  size_t bytes = (count + 1) * sizeof(st_mysql_show_var);
  auto array = static_cast<st_mysql_show_var *>(thd_alloc(thd, bytes));
  if (!array) return 0;
  memset(array, 0, bytes);
  array[count] = no_variables[0];
  if (fill(thd, stats.get(), array)) variable->value = reinterpret_cast<char *>(array);
  return 0;
}

/** Shows the latest backup: Frondb_backup_dir and so on. */
int show_backup(MYSQL_THD thd, st_mysql_show_var *variable, void *, struct system_status_var *, enum enum_var_type) {
  LatestBackup latest = latest_backup();
  auto text = [&](const std::string &from) { return keep(thd, from.c_str(), from.size() + 1); };
  auto number = [&](uint64_t from) {
    longlong value = longlong(from);
    return reinterpret_cast<char *>(keep(thd, &value, 1));
  };
  st_mysql_show_var values[] = {{"dir", text(latest.dir), SHOW_CHAR},
                                {"is_running", number(latest.is_running), SHOW_ULONGLONG},
                                {"done_bytes", number(latest.done), SHOW_ULONGLONG},
                                {"total_bytes", number(latest.total), SHOW_ULONGLONG},
                                {"last_error", text(latest.error), SHOW_CHAR},
                                {nullptr, nullptr, SHOW_UNDEF}};
  for (st_mysql_show_var &one : values)
    if (one.name && !one.value) one = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = reinterpret_cast<char *>(keep(thd, values, std::size(values)));
  if (!variable->value) variable->value = reinterpret_cast<char *>(no_variables);
  return 0;
}

/** Shows the reads that a replica has omitted: Frondb_rpl_lookups_skipped and so on. */
int show_replica(MYSQL_THD thd, st_mysql_show_var *variable, void *, struct system_status_var *, enum enum_var_type) {
  auto number = [&](uint64_t from) {
    longlong value = longlong(from);
    return reinterpret_cast<char *>(keep(thd, &value, 1));
  };
  st_mysql_show_var values[] = {{"lookups_skipped", number(rpl_lookups_skipped()), SHOW_ULONGLONG},
                                {"unique_checks_skipped", number(rpl_unique_checks_skipped()), SHOW_ULONGLONG},
                                {nullptr, nullptr, SHOW_UNDEF}};
  variable->type = SHOW_ARRAY;
  variable->value = reinterpret_cast<char *>(no_variables);
  for (const st_mysql_show_var &one : values)
    if (one.name && !one.value) return 0;
  if (auto array = keep(thd, values, std::size(values))) variable->value = reinterpret_cast<char *>(array);
  return 0;
}

// --- SHOW ENGINE FRONDB STATUS ---

/** The statements of the latest deadlock, as they were when the victim got its error. */
struct DeadlockNote {
  std::mutex lock;
  uint64_t victim = 0;
  std::map<uint64_t, Owner> owners;
};

DeadlockNote &deadlock_note() {
  static DeadlockNote note;
  return note;
}

std::string seconds(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.3f s", value);
  return text;
}

std::string heading(const char *title) { return std::string("\n") + title + "\n" + std::string(strlen(title), '-') + "\n"; }

/** Returns "transaction 5 (thread 12: SELECT ...)". */
std::string name_of(uint64_t transaction, const std::map<uint64_t, Owner> &owners) {
  std::string name = "transaction " + std::to_string(transaction);
  auto owner = owners.find(transaction);
  if (owner == owners.end()) return name;
  name += " (thread " + std::to_string(owner->second.thread);
  if (!owner->second.query.empty()) name += ": " + owner->second.query;
  return name + ")";
}

Error add_statistics(frondb_error *(*of)(frondb_db *, frondb_stats **), std::string *page) {
  Stats stats;
  if (Error error = of(db(), stats.out())) return error;
  *page += frondb_stats_text(stats.get());
  return {};
}

Error add_wear(std::string *page) {
  Stats wear;
  if (Error error = frondb_db_wear(db(), double(drive_tbw), wear.out())) return error;
  *page += frondb_stats_text(wear.get());
  return {};
}

Error add_deadlock(TreeNames *names, std::string *page) {
  frondb_deadlock_info info;
  std::vector<LockRow> waits;
  bool found;
  if (Error error = last_deadlock(names, &info, &waits, &found)) return error;
  if (!found) {
    *page += "none\n";
    return {};
  }
  std::map<uint64_t, Owner> known;
  {
    DeadlockNote &note = deadlock_note();
    std::lock_guard<std::mutex> guard(note.lock);
    if (note.victim == info.victim) known = note.owners;
  }
  *page += seconds(double(info.ago_nanos) / 1e9) + " ago, " + std::to_string(info.transactions) +
           " transactions, each waits for the next and the last for the first:\n";
  for (const LockRow &wait : waits)
    *page += name_of(wait.transaction, known) + "\n  waits for " + wait.text() + "\n";
  *page += "rolled back: transaction " + std::to_string(info.victim) + "\n";
  return {};
}

Error add_transactions(const std::map<uint64_t, Owner> &owners, std::string *page) {
  std::vector<TransactionRow> rows;
  if (Error error = transactions(&rows)) return error;
  *page += std::to_string(rows.size()) + " in all\n";
  for (size_t i = 0; i < rows.size() && i < SHOWN_MAX; i++) {
    const TransactionRow &row = rows[i];
    *page += name_of(row.transaction, owners) + "\n  " + row.state + " for " + seconds(row.age_seconds) + ", " +
             row.isolation + ", " + std::to_string(row.messages) + " messages, " + std::to_string(row.locks) +
             " locks" + (row.xid.empty() ? "" : ", xid " + row.xid) + "\n";
  }
  return {};
}

Error add_waits(TreeNames *names, const std::map<uint64_t, Owner> &owners, std::string *page) {
  std::vector<LockRow> waits;
  if (Error error = lock_waits(names, &waits)) return error;
  *page += std::to_string(waits.size()) + " in all\n";
  for (size_t i = 0; i < waits.size() && i < SHOWN_MAX; i++) {
    const LockRow &wait = waits[i];
    *page += name_of(wait.transaction, owners) + "\n  has waited " + seconds(wait.waited_seconds) + " for " +
             wait.text() + "\n";
    for (uint64_t blocker : wait.blockers) *page += "  held or requested earlier by " + name_of(blocker, owners) + "\n";
  }
  return {};
}

Error make_page(std::string *page) {
  TreeNames names;
  std::map<uint64_t, Owner> all = owners();
  *page += "FronDB " FRONDB_VERSION "\n";
  *page += heading("Statistics since the start (docs/operating/status.md)");
  if (Error error = add_statistics(frondb_db_stats, page)) return error;
  *page += heading("Wear");
  if (Error error = add_wear(page)) return error;
  *page += heading("What the last start recovered");
  if (Error error = add_statistics(frondb_db_recovery, page)) return error;
  *page += heading("Latest deadlock");
  if (Error error = add_deadlock(&names, page)) return error;
  std::string foreign = latest_foreign_error();
  *page += heading("Latest foreign key error") + (foreign.empty() ? "none" : foreign) + "\n";
  *page += heading("Transactions");
  if (Error error = add_transactions(all, page)) return error;
  *page += heading("Waits for locks");
  return add_waits(&names, all, page);
}

bool show_status(handlerton *, MYSQL_THD thd, stat_print_fn *print, enum ha_stat_type type) {
  // There is no page about mutexes; SHOW STATUS has the statistics of the log.
  if (type != HA_ENGINE_STATUS) return false;
  std::string page;
  try {
    if (Error error = make_page(&page)) page += std::string("\n") + error.message() + "\n";
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
    return true;
  }
  return print(thd, "FronDB", strlen("FronDB"), "", 0, page.data(), page.size());
}

}  // namespace

SystemVariables status_page_variables() { return {MYSQL_SYSVAR(drive_tbw)}; }

struct st_mysql_show_var status_variables[] = {
    {"Frondb", reinterpret_cast<char *>(show_statistics), SHOW_FUNC},
    {"Frondb_backup", reinterpret_cast<char *>(show_backup), SHOW_FUNC},
    {"Frondb_rpl", reinterpret_cast<char *>(show_replica), SHOW_FUNC}, {nullptr, nullptr, SHOW_UNDEF}};

namespace {

void note_deadlock_of_this_thread() {
  TreeNames names;
  frondb_deadlock_info info;
  std::vector<LockRow> waits;
  bool found;
  // After an error the page shows the deadlock without its statements.
  if (Error error = last_deadlock(&names, &info, &waits, &found)) return;
  if (!found) return;
  std::map<uint64_t, Owner> all = waiters(), of_it;
  // If the victim itself closed the cycle, it never waited and is not among the waiters. The victim is this thread's
  // transaction, whose statement is still running, so owners() has it.
  all.merge(owners());
  for (const LockRow &wait : waits) {
    auto owner = all.find(wait.transaction);
    if (owner != all.end()) of_it.insert(*owner);
  }
  DeadlockNote &note = deadlock_note();
  std::lock_guard<std::mutex> guard(note.lock);
  note.victim = info.victim;
  note.owners = std::move(of_it);
}

}  // namespace

void note_deadlock() {
  try {
    note_deadlock_of_this_thread();
  } catch (const std::bad_alloc &) {
    // There is no memory for the statements: the page shows the deadlock without them.
  }
}

void set_status_hook(handlerton *ht) { ht->show_status = show_status; }

}  // namespace fron
