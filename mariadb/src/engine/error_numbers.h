/* SPDX-License-Identifier: GPL-2.0-only

   The server's error number for each kind of the engine's errors. A test compares this table with the engine's list
   of kinds and the server's list of numbers: no kind may reach the user as a bare 1030. */

#ifndef FRONDB_ENGINE_ERROR_NUMBERS_H
#define FRONDB_ENGINE_ERROR_NUMBERS_H

#include <my_global.h>
#include <my_base.h>

#include <iterator>

#include "engine/api.h"

namespace fron {

/** The number of errors whose text comes from the engine or the plugin. It is above HA_ERR_LAST, so that the server
    calls get_error_message() for the text. */
constexpr int HA_ERR_FRONDB = 210;
static_assert(HA_ERR_FRONDB > HA_ERR_LAST, "the server has this number itself");

/** The server's error numbers, indexed by frondb_kind. */
constexpr int ERROR_NUMBERS[] = {
    0,                         // FRONDB_OK
    HA_ERR_RECORD_CHANGED,     // FRONDB_CONFLICT
    HA_ERR_LOCK_DEADLOCK,      // FRONDB_DEADLOCK
    HA_ERR_LOCK_WAIT_TIMEOUT,  // FRONDB_LOCK_TIMEOUT
    HA_ERR_LOCK_WAIT_TIMEOUT,  // FRONDB_BUSY: NOWAIT found the row locked; InnoDB returns the same number
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
    HA_ERR_LOCK_TABLE_FULL,    // FRONDB_TOO_MANY_LOCKS
};
static_assert(ERROR_NUMBERS[FRONDB_NO_SPACE] == HA_ERR_DISK_FULL && ERROR_NUMBERS[FRONDB_CANCELLED] == HA_ERR_ABORTED_BY_USER &&
                  std::size(ERROR_NUMBERS) == FRONDB_TOO_MANY_LOCKS + 1,
              "a kind has no line here");

/** Returns the number of a kind. A kind that a later engine adds becomes HA_ERR_FRONDB with the engine's text. */
constexpr int number_of(frondb_kind kind) {
  return kind < std::size(ERROR_NUMBERS) ? ERROR_NUMBERS[kind] : HA_ERR_FRONDB;
}

}  // namespace fron

#endif
