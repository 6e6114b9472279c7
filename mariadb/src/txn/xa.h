/* SPDX-License-Identifier: GPL-2.0-only

   Prepared transactions by name: the server finds those that a crash or a disconnect has left, and
   decides them. Sits between the handlerton and the engine; knows no connection.

   A decision that the engine could not carry out (a full disk) is owed: it is tried again, and until
   it is done no checkpoint of commits is confirmed, so that the binary log keeps what a recovery
   needs to repeat it. */

#ifndef FRONDB_TXN_XA_H
#define FRONDB_TXN_XA_H

#include <string>

#include "engine/api.h"

struct handlerton;
struct st_mysql_xid;

namespace fron {

/** The name under which the engine prepares a transaction:
    format (8 bytes, big-endian), lengths of both parts (1 byte each), the parts. Empty for none. */
class XidName {
 public:
  XidName() = default;
  explicit XidName(const st_mysql_xid &xid);

  explicit operator bool() const { return length_ > 0; }
  frondb_slice bytes() const { return {bytes_, length_}; }
  /** Whether the server made it for its own two phases: then its log can repeat the commit. */
  bool is_of_server() const;

 private:
  uint8_t bytes_[10 + 128];
  size_t length_ = 0;
};

/** A name as XA RECOVER FORMAT='SQL' shows it and XA COMMIT takes it; all of its bytes in hexadecimal if it is
    none of the server's. */
std::string xid_text(frondb_slice name);

/** Carries a decision out later, which failed now. */
void owe(const XidName &xid, bool is_commit);

/** Carries out what is owed, if anything is. Costs nothing if not. */
void pay();

/** The functions of the handlerton that are about prepared transactions and checkpoints. */
void set_xa_hooks(handlerton *hton);

}  // namespace fron

#endif
