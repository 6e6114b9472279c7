/* SPDX-License-Identifier: GPL-2.0-only

   Whether a statement must end early. */

#ifndef FRONDB_ENGINE_KILL_H
#define FRONDB_ENGINE_KILL_H

class THD;

namespace fron {

/** Returns whether KILL, KILL SOFT or max_statement_time must end the statement with an error. The server's thd_killed()
    returns false after the last two. They do not differ for a transactional engine: the server rolls the statement back
    in any case.

    Returns false if LIMIT ROWS EXAMINED ends a query: the server then keeps the rows that the statement has found, without
    an error, so that work which is half done would be kept, too. */
bool is_killed(THD *thd);

}  // namespace fron

#endif
