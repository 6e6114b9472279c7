/* SPDX-License-Identifier: GPL-2.0-only

   Errors of the engine as the server's: a number it knows where there is one, else our own with the
   engine's sentence. No error comes out as a bare 1030, and no exception goes into the server. */

#ifndef FRONDB_ENGINE_ERRORS_H
#define FRONDB_ENGINE_ERRORS_H

#include <exception>

#include "engine/api.h"

class String;

namespace fron {

/** The HA_ERR_ number of an error; 0 for none. The sentence is kept for the thread's message(), and
    damage and failures of the disk go to the server's log. */
int ha_error(const Error &error);

/** An HA_ERR_ number for what the plugin itself found wrong, with a sentence. */
int ha_internal(const char *sentence);

/** Of a row or entry that cannot be decoded: HA_ERR_CRASHED, named in the server's log. */
int ha_damaged(const char *table, const char *index);

/** The sentence of an error for the server's log: of damage with its place. Cut where it is very long. */
class Sentence {
 public:
  explicit Sentence(const Error &error);
  const char *text() const { return text_; }

  static constexpr size_t MAX = 512;

 private:
  char text_[MAX];
};

/** `listener` is called by the thread of each victim of a deadlock, as soon as that thread knows. */
void set_deadlock_listener(void (*listener)());

/** HA_ERR_OUT_OF_MEM. */
int ha_out_of_memory();

/** A commit, or a prepare, ended with this number. The server has one error for all that may go wrong there;
    where there is a better one it is raised here, and the server's follows as a warning. Returns the
    number. */
int raise_at_commit(int number);

/** The same for a function of ours for which the server has nothing but 1030, or nothing at all: `doing` is what was under way. */
int raise_bare(int number, const char *doing);

/** Writes the sentence that belongs to a number of our own. Whether there is one. */
bool message(int number, String *to);

/** Does `work`, which gives an HA_ERR_ number. The server's code knows no exceptions, and all that
    ours throws is that memory is short. */
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
