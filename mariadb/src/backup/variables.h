/* SPDX-License-Identifier: GPL-2.0-only

   System variables with which a session makes backups. */

#ifndef FRONDB_BACKUP_VARIABLES_H
#define FRONDB_BACKUP_VARIABLES_H

#include "engine/system_variables.h"

#include <my_global.h>
#include <mysql/plugin.h>

namespace fron {

SystemVariables backup_variables();

}  // namespace fron

#endif
