/* SPDX-License-Identifier: GPL-2.0-only

   Whether a statement must end early. */

#ifndef FRONDB_ENGINE_KILL_H
#define FRONDB_ENGINE_KILL_H

class THD;

namespace fron {

/** Returns whether KILL, KILL SOFT or max_statement_time must end the statement with an error. The server's thd_killed()
    returns false after the last two. For a transactional engine all three are the same: the server rolls the statement
    back.

    Returns false if LIMIT ROWS EXAMINED ends a query: the server then keeps the rows that the statement has found, without
    an error, and would also keep work that the plugin had left half done. */
bool is_killed(THD *thd);

}  // namespace fron

#endif
