/* SPDX-License-Identifier: GPL-2.0-only

   See backup/commit_block.h. */

#include "backup/commit_block.h"

#include <my_global.h>
#include <sql_class.h>
#include <backup.h>
#include <mdl.h>

#include <mysqld_error.h>

namespace fron {

bool CommitBlock::upgrade(int type) {
  return thd_->mdl_context.upgrade_shared_lock(ticket_, enum_mdl_type(type), double(thd_->variables.lock_wait_timeout));
}

bool CommitBlock::block_definitions() {
  if (thd_->current_backup_stage == BACKUP_LOCK_COMMIT) return false;
  if (thd_->current_backup_stage != BACKUP_FINISHED) {
    my_printf_error(ER_BACKUP_WRONG_STAGE, "FronDB: go on to BACKUP STAGE BLOCK_COMMIT before a backup, or end the stages",
                    MYF(0));
    return true;
  }
  if (thd_->locked_tables_mode) {
    my_error(ER_LOCK_OR_ACTIVE_TRANSACTION, MYF(0));
    return true;
  }
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::BACKUP, "", "", MDL_BACKUP_START, MDL_EXPLICIT);
  if (thd_->mdl_context.acquire_lock(&request, double(thd_->variables.lock_wait_timeout))) return true;
  ticket_ = request.ticket;
  // Upgrade in the server's order, so that a wait holds back no more statements than necessary.
  return upgrade(MDL_BACKUP_FLUSH) || upgrade(MDL_BACKUP_WAIT_FLUSH) || upgrade(MDL_BACKUP_WAIT_DDL);
}

bool CommitBlock::block_commits() { return ticket_ && upgrade(MDL_BACKUP_WAIT_COMMIT); }

void CommitBlock::release() {
  if (ticket_) thd_->mdl_context.release_lock(ticket_);
  ticket_ = nullptr;
}

}  // namespace fron
