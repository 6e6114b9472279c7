/* SPDX-License-Identifier: GPL-2.0-only

   Whether the server that loads us lays out its objects as the headers said that we were built with.
   The headers of handler may be of a nearby patch release (see CMakeLists.txt). */

#ifndef FRONDB_PLUGIN_ABI_H
#define FRONDB_PLUGIN_ABI_H

#include <string>

namespace fron {

/** Empty if all is well, else a sentence that says what differs. */
std::string abi_difference();

}  // namespace fron

#endif
