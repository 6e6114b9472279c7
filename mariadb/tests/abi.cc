/* SPDX-License-Identifier: GPL-2.0-only

   Prints the differences between the headers that it was compiled with and the embedded server that it is linked with. The
   test of xtask/src/mariadb/layout.rs compiles it with the right headers and with changed ones. */

#include <cstdio>

#include "plugin/abi.h"

int main() {
  printf("%s\n", fron::seen_differences().c_str());
  return 0;
}
