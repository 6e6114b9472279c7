/* SPDX-License-Identifier: GPL-2.0-only

   Checks that the server which loads the plugin lays out its objects as the headers that the plugin was built with.
   The header of `handler` may come from a nearby patch release (see CMakeLists.txt). */

#ifndef FRONDB_PLUGIN_ABI_H
#define FRONDB_PLUGIN_ABI_H

#include <string>

namespace fron {

/** A sentence about the first difference; empty if there is none. */
std::string abi_difference();

}  // namespace fron

#endif
