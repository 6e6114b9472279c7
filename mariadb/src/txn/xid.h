/* SPDX-License-Identifier: GPL-2.0-only

   Names of prepared transactions (XIDs), as bytes of the engine and as text. */

#ifndef FRONDB_TXN_XID_H
#define FRONDB_TXN_XID_H

#include <string>

#include "engine/api.h"

struct st_mysql_xid;
struct xid_t;

namespace fron {

/** The name under which the engine prepares a transaction: format (8 bytes, big-endian), lengths of the two parts
    (1 byte each), the parts. Empty if the transaction is not prepared. */
class XidName {
 public:
  XidName() = default;
  explicit XidName(const st_mysql_xid &xid);
  explicit XidName(const xid_t &xid);

  explicit operator bool() const { return length_ > 0; }
  frondb_slice bytes() const { return {bytes_, length_}; }
  /** Returns whether the server made the name for its own two-phase commit. If so, the server's log can repeat the
      commit. */
  bool is_of_server() const;

 private:
  uint8_t bytes_[10 + 128];
  size_t length_ = 0;
};

/** Returns a name as XA RECOVER FORMAT='SQL' shows it and XA COMMIT accepts it; its bytes in hexadecimal if it does
    not have the form of the server's names. */
std::string xid_text(frondb_slice name);

/** Returns whether two names differ in their formats at most. The server and InnoDB take such names for the same
    transaction. */
bool have_same_parts(frondb_slice a, frondb_slice b);

/** Decodes a name into the server's XID. False if the bytes are not a name of this form. */
bool decode_xid(frondb_slice name, xid_t *xid);

}  // namespace fron

#endif
