/* SPDX-License-Identifier: GPL-2.0-only

   Errors of the engine as errors of the server: the server's number where it has one, otherwise HA_ERR_FRONDB with
   the engine's sentence. The user never sees a bare 1030, and no exception reaches the server. */

#ifndef FRONDB_ENGINE_ERRORS_H
#define FRONDB_ENGINE_ERRORS_H

#include <my_global.h>
#include <my_base.h>

#include <exception>

#include "engine/api.h"

class String;

namespace fron {

/** Returns the HA_ERR_ number of an error; 0 for none. Keeps the error's text for message() in this thread. Writes
    damage, disk failures and bugs of the engine to the server's log, and makes the server roll back the whole
    transaction of a deadlock victim. */
int ha_error(const Error &error);

/** Returns HA_ERR_FRONDB for an error that the plugin itself has found. Keeps `sentence` for message() in this thread.
    */
int ha_internal(const char *sentence);

/** Returned by functions of an ALTER instead of an HA_ERR_ number: the fault has been reported to the user. */
constexpr int ALTER_ERROR_REPORTED = HA_ERR_GENERIC;

/** Returns HA_ERR_CRASHED, for a row or entry that cannot be decoded, and names the index in the server's log. */
int ha_damaged(const char *table, const char *index);

/** An error's text for the server's log, with the place of damage. Truncated at MAX bytes. */
class Sentence {
 public:
  explicit Sentence(const Error &error);
  const char *text() const { return text_; }

  static constexpr size_t MAX = 512;

 private:
  char text_[MAX];
};

/** Sets a function that is called in the thread of each deadlock victim, as soon as the victim gets its error. */
void set_deadlock_listener(void (*listener)());

int ha_out_of_memory();

/** Called after a commit or a prepare. The server reports each failure of these with the same error. If there is a more
    specific error for `number`, this function raises it, and the server's own follows as a warning. Returns `number`.
    */
int raise_at_commit(int number);

/** Raises an error for `number`, unless it is 0. For functions of the plugin after whose failure the server itself
    would raise only error 1030, or no error. `doing` names the failed action in the error of a full disk. Returns
    `number`. */
int raise_bare(int number, const char *doing);

/** Appends the text of a number that is the plugin's own. Returns false for a number of the server. */
bool message(int number, String *to);

/** Runs `work`, which returns an HA_ERR_ number. The server's code is not exception-safe; the only exceptions of the
    plugin mean that memory is exhausted. */
template <typename Work>
int guarded(Work work) noexcept {
  try {
    return work();
  } catch (const std::exception &) {
    return ha_out_of_memory();
  }
}

}  // namespace fron

#endif
