/* SPDX-License-Identifier: GPL-2.0-only

   See foreign/server_lists.h. */

#include "foreign/server_lists.h"

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <sql_alter.h>

namespace fron {

bool can_see_foreign_keys() {
  MEM_ROOT root;
  init_alloc_root(PSI_NOT_INSTRUMENTED, &root, 1024, 0, MYF(0));
  const LEX_CSTRING name = {"probe", 5};
  Alter_info ours;
  auto key = new (&root) Key(Key::FOREIGN_KEY, &name, HA_KEY_ALG_UNDEF, false, DDL_options());
  ours.requested_lock = Alter_info::ALTER_TABLE_LOCK_SHARED;
  // Memory for an object of the server that may be larger than the plugin's.
  auto place = static_cast<Alter_info *>(alloc_root(&root, 4 * sizeof(Alter_info)));
  bool sees = false;
  if (key && place && !ours.key_list.push_back(key, &root)) {
    memset(static_cast<void *>(place), 0, 4 * sizeof(Alter_info));
    // The server's own code makes the copy, so the copy shows which fields that code read.
    auto theirs = new (place) Alter_info(ours, &root);
    sees = theirs->key_list.elements == 1 && theirs->requested_lock == ours.requested_lock;
    if (sees) {
      const Key *copy = theirs->key_list.head();
      sees = copy != key && copy->type == Key::FOREIGN_KEY && copy->name.length == name.length;
    }
  }
  free_root(&root, MYF(0));
  return sees;
}

}  // namespace fron
