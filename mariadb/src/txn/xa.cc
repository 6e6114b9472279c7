/* SPDX-License-Identifier: GPL-2.0-only

   See txn/xa.h. */

#include "txn/xa.h"

#include <my_global.h>
#include <mysql/plugin.h>
#include <handler.h>
#include <log.h>
#include <mysqld.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "engine/db.h"
#include "engine/errors.h"
#include "engine/server.h"
#include "txn/prepared_counts.h"

namespace fron {
namespace {

// From the XA specification; no header of the server defines them.
constexpr int XAER_NOTA = -4, XAER_RMFAIL = -7;

/** Commits or rolls back a prepared transaction by its name. The result is durable when the function returns. */
Error decide(const XidName &xid, bool is_commit) {
  return is_commit ? Error(frondb_db_commit_prepared(db(), xid.bytes(), FRONDB_SYNC))
                   : Error(frondb_db_rollback_prepared(db(), xid.bytes()));
}

/** Failed commits and rollbacks of prepared transactions, to be retried, and the binary log's checkpoints, which may be
    confirmed only when every failed decision has been carried out. */
class Retries {
 public:
  void add(const XidName &xid, bool is_commit) {
    std::lock_guard<std::mutex> guard(mutex_);
    try {
      decisions_.push_back({xid, is_commit});
      are_pending_ = true;
    } catch (const std::bad_alloc &) {
      sql_print_error("FronDB: out of memory to retry the end of a transaction, which stays prepared: restart the "
                      "server");
    }
  }

  /** Returns whether a decision about the transaction of this name waits for a retry. */
  bool has_decision(frondb_slice name) {
    if (!are_pending_) return false;
    std::lock_guard<std::mutex> guard(mutex_);
    return std::any_of(decisions_.begin(), decisions_.end(),
                       [&](const Decision &one) { return view(one.xid.bytes()) == view(name); });
  }

  /** Adds a checkpoint that is to be confirmed. Returns false if there is no memory. */
  bool add(void *checkpoint) {
    std::lock_guard<std::mutex> guard(mutex_);
    try {
      checkpoints_.push_back(checkpoint);
      are_pending_ = true;
      return true;
    } catch (const std::bad_alloc &) {
      return false;
    }
  }

  /** Retries the decisions, then confirms the checkpoints if no decision is left. */
  void run();
  bool are_pending() const { return are_pending_; }

 private:
  struct Decision {
    XidName xid;
    bool is_commit;
  };

  bool retry_decisions();

  std::mutex mutex_;
  std::vector<Decision> decisions_;
  std::vector<void *> checkpoints_;
  std::atomic<bool> are_pending_{false};
};

/** Retries the decisions. Returns whether no decision is left. */
bool Retries::retry_decisions() {
  auto is_done = [](const Decision &one) {
    Error error = decide(one.xid, one.is_commit);
    if (!error) settle_prepared_counts(one.xid, one.is_commit);
    return !error || error.kind() == FRONDB_NOT_FOUND;
  };
  decisions_.erase(std::remove_if(decisions_.begin(), decisions_.end(), is_done), decisions_.end());
  return decisions_.empty();
}

void Retries::run() {
  std::vector<void *> confirmed;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!retry_decisions()) return;
    if (!checkpoints_.empty()) {
      // Every commit_ordered() so far is in the engine's log, so one sync covers all. A checkpoint that is not
      // confirmed costs disk space; one that is confirmed too early loses commits.
      if (Error error = frondb_db_sync(db())) {
        sql_print_error("FronDB: cannot sync the log, so old binary logs are kept; a later commit tries again: %s",
                        error.message());
        return;
      }
    }
    confirmed.swap(checkpoints_);
    are_pending_ = false;
  }
  for (void *checkpoint : confirmed) commit_checkpoint_notify_ha(checkpoint);
}

Retries retries;

void commit_checkpoint_request(void *cookie) {
  if (!retries.add(cookie)) {
    sql_print_error("FronDB: out of memory to confirm commits to the binary log, which is kept until a restart");
    return;
  }
  retries.run();
}

/** The last name that the server's recovery has received. The server repeats its request until it gets fewer names than
    it wanted, and may have decided some of them in between. Used only by the thread that starts the server. */
XidName recovered_to;

int recover(HOOK_PARAMETER XID *xids, uint count) {
  List list;
  std::vector<frondb_slice> names;
  Error error = frondb_db_prepared(db(), list.out());
  if (!error) error = list.read(&names);
  if (error) {
    sql_print_error("FronDB: cannot list prepared transactions: %s", error.message());
    return 0;
  }
  uint found = 0;
  for (frondb_slice name : names) {
    if (found == count) break;
    // The names are sorted by their bytes.
    if (view(name) <= view(recovered_to.bytes())) continue;
    if (decode_xid(name, &xids[found])) found++;
  }
  recovered_to = found < count ? XidName() : XidName(xids[found - 1]);
  return int(found);
}

/** Commits or rolls back a transaction, unless a decision about it waits for a retry; `found` says whether there is
    such a transaction. The server has told a client OK for a queued decision and has forgotten the XID, so a later XA
    COMMIT or XA ROLLBACK means another transaction of the same XID, and must not reverse that decision. */
Error decide_if_open(const XidName &name, bool is_commit, bool *found) {
  *found = !retries.has_decision(name.bytes());
  if (!*found) return {};
  Error error = decide(name, is_commit);
  *found = !error || error.kind() != FRONDB_NOT_FOUND;
  return *found ? std::move(error) : Error();
}

/** Searches for a prepared transaction whose name differs from `name` in its format only, and about which no decision
    waits for a retry. If there is one, sets `found` and replaces `name` by its name. */
Error find_other_format(XidName *name, bool *found) {
  *found = false;
  List list;
  std::vector<frondb_slice> names;
  if (Error error = frondb_db_prepared(db(), list.out())) return error;
  if (Error error = list.read(&names)) return error;
  for (frondb_slice prepared : names) {
    XID xid;
    if (!have_same_parts(prepared, name->bytes()) || !decode_xid(prepared, &xid)) continue;
    if (retries.has_decision(prepared)) continue;
    *name = XidName(xid);
    *found = true;
    break;
  }
  return {};
}

int decide_by_xid(XID *xid, bool is_commit) {
  XidName name(*xid);
  bool found;
  Error error = decide_if_open(name, is_commit, &found);
  if (!error && !found) {
    error = find_other_format(&name, &found);
    if (!error && !found) return XAER_NOTA;
    if (!error) error = decide(name, is_commit);
  }
  if (!error) {
    settle_prepared_counts(name, is_commit);
    return 0;
  }
  sql_print_error("FronDB: cannot %s a prepared transaction; later commits try again: %s",
                  is_commit ? "commit" : "roll back", error.message());
  // In spite of this error the server tells the client OK, and forgets the XID.
  retries.add(name, is_commit);
  return XAER_RMFAIL;
}

int commit_by_xid(HOOK_PARAMETER XID *xid) { return decide_by_xid(xid, true); }
int rollback_by_xid(HOOK_PARAMETER XID *xid) { return decide_by_xid(xid, false); }

}  // namespace

void retry_later(const XidName &xid, bool is_commit) { retries.add(xid, is_commit); }

void run_retries() {
  if (retries.are_pending()) retries.run();
}

void set_xa_hooks(handlerton *ht) {
  ht->commit_checkpoint_request = commit_checkpoint_request;
  ht->recover = recover;
  ht->commit_by_xid = commit_by_xid;
  ht->rollback_by_xid = rollback_by_xid;
}

}  // namespace fron
