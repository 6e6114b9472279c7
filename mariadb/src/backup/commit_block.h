/* SPDX-License-Identifier: GPL-2.0-only

   Holds back statements that change definitions, and commits, in all sessions: takes the locks of BACKUP STAGE, without
   the work that its stages do for other engines. From block_definitions() to release() no definition changes; after
   block_commits() no transaction is between its prepare and its commit in another engine or the binary log. */

#ifndef FRONDB_BACKUP_COMMIT_BLOCK_H
#define FRONDB_BACKUP_COMMIT_BLOCK_H

class THD;
class MDL_ticket;

namespace fron {

class CommitBlock {
 public:
  explicit CommitBlock(THD *thd) : thd_(thd) {}
  ~CommitBlock() { release(); }
  CommitBlock(const CommitBlock &) = delete;
  CommitBlock &operator=(const CommitBlock &) = delete;

  /** Waits for running statements that change definitions, and holds back new ones. Returns true after an error, which
      is raised. Does nothing if this session itself has reached BACKUP STAGE BLOCK_COMMIT. */
  bool block_definitions();
  /** Waits for commits that have begun, and holds back new ones. Called after block_definitions(). Returns true after
      an error, which is raised. */
  bool block_commits();
  void release();

 private:
  bool upgrade(int type);

  THD *thd_;
  MDL_ticket *ticket_ = nullptr;
};

}  // namespace fron

#endif
