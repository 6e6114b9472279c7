/* SPDX-License-Identifier: GPL-2.0-only

   See plugin/abi.h. Compares the table of virtual functions of the server's `handler` with that of ha_frondb, which
   adds none: with one entry more or less every call of a later entry would reach another function. Then checks that the
   server's code copies a statement's list of keys from where FronDB reads it. */

#include "plugin/abi.h"

#include "foreign/server_lists.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

/** The table of virtual functions of ha_frondb, by the name that the compiler gives it. Exported, so that dladdr1()
    finds its size. */
extern "C" const void *const own_table[] __asm__("_ZTV9ha_frondb");

namespace fron {
namespace {

/** Size of the object at `address`, whose symbol is `name`; 0 if it is unknown. */
size_t bytes_of(const void *address, const char *name) {
  Dl_info info;
  ElfW(Sym) *symbol = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT)) return 0;
  if (!symbol || !info.dli_sname || std::string(info.dli_sname) != name) return 0;
  return symbol->st_size;
}

}  // namespace

std::string abi_difference() {
  constexpr const char *THEIRS = "_ZTV7handler";
  void *theirs = dlsym(RTLD_DEFAULT, THEIRS);
  if (!theirs) return "the server does not export its class `handler`";
  size_t expected = bytes_of(own_table, "_ZTV9ha_frondb"), found = bytes_of(theirs, THEIRS);
  if (found == 0 || expected == 0 || found == expected)
    return can_see_foreign_keys() ? "" : "a statement's list of keys is at another place in the server's memory";
  return "the server's class `handler` has " + std::to_string(found / sizeof(void *)) +
         " entries, and FronDB was built with headers where it has " +
         std::to_string(expected / sizeof(void *));
}

}  // namespace fron
