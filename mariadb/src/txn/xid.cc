/* SPDX-License-Identifier: GPL-2.0-only

   See txn/xid.h. */

#include "txn/xid.h"

#include <my_global.h>
#include <mysql/plugin.h>
#include <handler.h>

#include <algorithm>
#include <cstring>

#include "codec/key_text.h"

namespace fron {
namespace {

constexpr size_t FORMAT_BYTES = 8, HEAD_BYTES = 10;

/** Returns a part of a name in quotes; in hexadecimal if its bytes could be other characters in another character
    set. */
std::string quoted(std::string_view part, bool is_text) {
  if (is_text) return "'" + std::string(part) + "'";
  std::string text = "X'";
  for (char c : part) {
    text += "0123456789abcdef"[uchar(c) >> 4];
    text += "0123456789abcdef"[uchar(c) & 15];
  }
  return text + "'";
}

}  // namespace

static_assert(sizeof(XID) == sizeof(st_mysql_xid), "the server's two kinds of XID are one");

bool decode_xid(frondb_slice name, XID *xid) {
  if (name.len < HEAD_BYTES) return false;
  uint64_t format = 0;
  for (size_t i = 0; i < 8; i++) format = format << 8 | name.data[i];
  xid->formatID = long(format);
  xid->gtrid_length = name.data[8];
  xid->bqual_length = name.data[9];
  size_t length = name.len - HEAD_BYTES;
  if (length > sizeof xid->data || length != size_t(xid->gtrid_length + xid->bqual_length)) return false;
  memcpy(xid->data, name.data + HEAD_BYTES, length);
  return true;
}

XidName::XidName(const st_mysql_xid &xid) {
  auto format = uint64_t(xid.formatID);
  for (int i = 0; i < 8; i++) bytes_[i] = uint8_t(format >> (56 - 8 * i));
  bytes_[8] = uint8_t(xid.gtrid_length);
  bytes_[9] = uint8_t(xid.bqual_length);
  size_t length = std::min(size_t(xid.gtrid_length + xid.bqual_length), sizeof bytes_ - HEAD_BYTES);
  memcpy(bytes_ + HEAD_BYTES, xid.data, length);
  length_ = HEAD_BYTES + length;
}

XidName::XidName(const XID &xid) : XidName(reinterpret_cast<const st_mysql_xid &>(xid)) {}

bool have_same_parts(frondb_slice a, frondb_slice b) {
  return a.len >= HEAD_BYTES && b.len >= HEAD_BYTES && view(a).substr(FORMAT_BYTES) == view(b).substr(FORMAT_BYTES);
}

std::string xid_text(frondb_slice name) {
  XID xid;
  if (!decode_xid(name, &xid)) return hexadecimal(view(name));
  std::string_view bytes(xid.data, size_t(xid.gtrid_length + xid.bqual_length));
  bool is_text = std::all_of(bytes.begin(), bytes.end(), [](char c) {
    bool is_letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return is_letter || c == ' ' || c == '-' || c == '_';
  });
  std::string text = quoted(bytes.substr(0, size_t(xid.gtrid_length)), is_text);
  if (xid.bqual_length > 0 || xid.formatID != 1) text += "," + quoted(bytes.substr(size_t(xid.gtrid_length)), is_text);
  return xid.formatID == 1 ? text : text + "," + std::to_string(xid.formatID);
}

bool XidName::is_of_server() const {
  XID xid;
  return length_ && decode_xid(bytes(), &xid) && xid.get_my_xid();
}

}  // namespace fron
