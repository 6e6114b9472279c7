/* SPDX-License-Identifier: GPL-2.0-only

   See txn/handlerton.h. */

#include "txn/handlerton.h"

namespace fron {
namespace {

handlerton *the_hton;

}  // namespace

handlerton *hton() { return the_hton; }
void set_hton(handlerton *hton) { the_hton = hton; }

}  // namespace fron
