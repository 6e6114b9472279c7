/* SPDX-License-Identifier: GPL-2.0-only

   Errors of the engine as the server's: a number it knows where there is one, else our own with the
   engine's sentence. No error comes out as a bare 1030. */

#ifndef FRONDB_ERROR_H
#define FRONDB_ERROR_H

#include "frondb_api.h"

class String;

namespace fron {

/** The HA_ERR_ number of an error; 0 for none. The sentence is kept for the thread's message(). */
int ha_error(const Error &error);

/** An HA_ERR_ number for what the plugin itself found wrong, with a sentence. */
int ha_internal(const char *sentence);

/** Writes the sentence that belongs to a number of our own. Whether there is one. */
bool message(int number, String *to);

}  // namespace fron

#endif
