/* SPDX-License-Identifier: GPL-2.0-only

   Checks that the server which loads the plugin lays out its objects as the headers that the plugin was built with.
   Most headers may come from a nearby patch release (see CMakeLists.txt), and layouts change between patch releases. */

#ifndef FRONDB_PLUGIN_ABI_H
#define FRONDB_PLUGIN_ABI_H

#include <string>

namespace fron {

/** Returns the differences that the running server shows, as text; empty if there are none. */
std::string seen_differences();

/** Returns why the plugin must not start: differences, or that it is unknown whether there are any. Names both
    versions. Empty if headers and server agree. */
std::string abi_difference();

}  // namespace fron

#endif
