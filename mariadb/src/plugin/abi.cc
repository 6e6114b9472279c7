/* SPDX-License-Identifier: GPL-2.0-only

   See plugin/abi.h. Compares the table of virtual functions of `handler` in the server with that of our
   own handler, which adds none: one more or less, and each call behind it goes astray. Then has the
   server's code copy what FronDB reads of a statement. */

#include "plugin/abi.h"

#include "ddl/foreign_keys.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

/** Our own table, by the name that the compiler gives it. Exported, so that it can be looked up. */
extern "C" const void *const own_table[] __asm__("_ZTV9ha_frondb");

namespace fron {
namespace {

/** Bytes of the object at `address` that the symbol `name` is for; 0 if that cannot be told. */
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
  if (!theirs) return "the server does not show its class `handler`";
  size_t expected = bytes_of(own_table, "_ZTV9ha_frondb"), found = bytes_of(theirs, THEIRS);
  if (found == 0 || expected == 0 || found == expected)
    return can_see_foreign_keys() ? "" : "the server's list of a statement's keys lies elsewhere";
  return "the server's class `handler` has " + std::to_string(found / sizeof(void *)) +
         " entries, and FronDB was built with headers where it has " +
         std::to_string(expected / sizeof(void *));
}

}  // namespace fron
