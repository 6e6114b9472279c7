/* SPDX-License-Identifier: GPL-2.0-only

   The value of an index entry, which names its row, and the arithmetic of key bounds.

     | head (varint): twice the length of the primary key, plus one if it is here | primary key, if here | covered fields |

   The primary key is here in entries of a unique index; in all others it is the end of the entry's key.
   Pure functions over bytes. */

#ifndef FRONDB_CODEC_ENTRY_H
#define FRONDB_CODEC_ENTRY_H

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/api.h"

namespace fron {

void append_big_endian(uint64_t number, std::string *to);

/** The smallest key above all that begin with `prefix`; false if there is none. */
bool prefix_end(std::string *prefix);

/** Head of an entry's value: length of the primary key, and whether that is here. */
void append_head(size_t length, bool is_here, std::string *to);

/** Takes an entry of an index apart. False if it is damaged. */
bool split_entry(frondb_slice key, frondb_slice value, frondb_slice *primary,
                 std::string_view *covered);

}  // namespace fron

#endif
