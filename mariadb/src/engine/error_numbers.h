/* SPDX-License-Identifier: GPL-2.0-only

   The server's number for each kind of the engine's errors. A table of its own, so that a test can hold it against
   the engine's list of kinds and the server's list of numbers: none may come out as a bare 1030. */

#ifndef FRONDB_ENGINE_ERROR_NUMBERS_H
#define FRONDB_ENGINE_ERROR_NUMBERS_H

#include <my_global.h>
#include <my_base.h>

#include <iterator>

#include "engine/api.h"

namespace fron {

/** With the engine's sentence. Above HA_ERR_LAST: the server asks get_error_message() for it. */
constexpr int HA_ERR_FRONDB = 210;
static_assert(HA_ERR_FRONDB > HA_ERR_LAST, "the server has this number itself");

/** By the engine's numbers of the kinds. */
constexpr int ERROR_NUMBERS[] = {
    0,                         // FRONDB_OK
    HA_ERR_RECORD_CHANGED,     // FRONDB_CONFLICT
    HA_ERR_LOCK_DEADLOCK,      // FRONDB_DEADLOCK
    HA_ERR_LOCK_WAIT_TIMEOUT,  // FRONDB_LOCK_TIMEOUT
    HA_ERR_LOCK_WAIT_TIMEOUT,  // FRONDB_BUSY: NOWAIT met a lock; InnoDB's number for it
    HA_ERR_FRONDB,             // FRONDB_INVALID
    HA_ERR_NO_SUCH_TABLE,      // FRONDB_NOT_FOUND
    HA_ERR_FOUND_DUPP_KEY,     // FRONDB_EXISTS
    HA_ERR_DISK_FULL,          // FRONDB_NO_SPACE
    HA_ERR_CRASHED,            // FRONDB_CORRUPTION
    HA_ERR_FRONDB,             // FRONDB_POISONED
    HA_ERR_FRONDB,             // FRONDB_IO
    HA_ERR_FRONDB,             // FRONDB_CLOSED
    HA_ERR_ABORTED_BY_USER,    // FRONDB_CANCELLED
    HA_ERR_FRONDB,             // FRONDB_UNSUPPORTED
    HA_ERR_FRONDB,             // FRONDB_INTERNAL
};
static_assert(ERROR_NUMBERS[FRONDB_NO_SPACE] == HA_ERR_DISK_FULL && ERROR_NUMBERS[FRONDB_CANCELLED] == HA_ERR_ABORTED_BY_USER &&
                  std::size(ERROR_NUMBERS) == FRONDB_INTERNAL + 1,
              "a line is missing");

/** Kinds that a later engine may add come with their sentence. */
constexpr int number_of(frondb_kind kind) {
  return kind < std::size(ERROR_NUMBERS) ? ERROR_NUMBERS[kind] : HA_ERR_FRONDB;
}

}  // namespace fron

#endif
