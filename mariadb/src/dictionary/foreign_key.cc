/* SPDX-License-Identifier: GPL-2.0-only

   See dictionary/foreign_key.h. */

#include "dictionary/foreign_key.h"

#include <sql_class.h>
#include <sql_table.h>

#include "codec/bytes.h"

namespace fron {
namespace {

/** A record of a newer FronDB has another version, and its table cannot be written to. */
constexpr uint64_t RECORD_VERSION = 1;

void put_names(const std::vector<std::string> &names, std::string *to) {
  put_u64(names.size(), to);
  for (const std::string &name : names) put_text(name, to);
}

bool read_names(Decoder *in, std::vector<std::string> *names) {
  uint64_t count;
  if (!in->u64(&count)) return false;
  names->clear();
  for (uint64_t i = 0; i < count; i++) {
    std::string name;
    if (!in->text(&name)) return false;
    names->push_back(std::move(name));
  }
  return true;
}

constexpr uint64_t HAS_LENGTH = 1, CAN_BE_NULL = 2, DESCENDS = 4;

void put_side(const KeySide &side, std::string *to) {
  put_u64((side.is_bound ? 1 : 0) + (side.is_exact ? 2 : 0), to);
  put_text(side.index, to);
  put_text(side.current, to);
  put_u64(side.parts.size(), to);
  for (const PartShape &part : side.parts) {
    put_text(part.type, to);
    uint64_t flags = (part.has_length ? HAS_LENGTH : 0) | (part.can_be_null ? CAN_BE_NULL : 0) | (part.descends ? DESCENDS : 0);
    for (uint64_t number : {uint64_t(part.charset), uint64_t(part.length), uint64_t(part.kind), flags}) put_u64(number, to);
  }
}

bool read_part(Decoder *in, PartShape *part) {
  uint64_t charset, length, kind, flags;
  if (!in->text(&part->type) || !in->u64(&charset) || !in->u64(&length) || !in->u64(&kind) || !in->u64(&flags)) return false;
  part->charset = uint32_t(charset);
  part->length = uint32_t(length);
  part->kind = uint8_t(kind);
  part->has_length = flags & HAS_LENGTH;
  part->can_be_null = flags & CAN_BE_NULL;
  part->descends = flags & DESCENDS;
  return true;
}

bool read_side(Decoder *in, KeySide *side) {
  uint64_t flags, count;
  if (!in->u64(&flags) || !in->text(&side->index) || !in->text(&side->current) || !in->u64(&count)) return false;
  side->is_bound = flags & 1;
  side->is_exact = flags & 2;
  side->parts.clear();
  for (uint64_t i = 0; i < count; i++) {
    PartShape part;
    if (!read_part(in, &part)) return false;
    side->parts.push_back(std::move(part));
  }
  return true;
}

}  // namespace

std::string ForeignKey::encode() const {
  std::string bytes;
  put_u64(RECORD_VERSION, &bytes);
  for (const std::string *text : {&name, &child, &parent}) put_text(*text, &bytes);
  put_names(columns, &bytes);
  put_names(referenced, &bytes);
  put_u64(uint64_t(on_delete), &bytes);
  put_u64(uint64_t(on_update), &bytes);
  put_side(child_side, &bytes);
  put_side(parent_side, &bytes);
  return bytes;
}

bool ForeignKey::decode(std::string_view bytes) {
  Decoder in(bytes);
  uint64_t version, of_delete, of_update;
  if (!in.u64(&version) || version != RECORD_VERSION) return false;
  for (std::string *text : {&name, &child, &parent})
    if (!in.text(text)) return false;
  if (!read_names(&in, &columns) || !read_names(&in, &referenced)) return false;
  if (columns.empty() || columns.size() != referenced.size()) return false;
  if (!in.u64(&of_delete) || !in.u64(&of_update)) return false;
  if (of_delete > uint64_t(Action::SetNull) || of_update > uint64_t(Action::SetNull)) return false;
  on_delete = Action(of_delete);
  on_update = Action(of_update);
  return read_side(&in, &child_side) && read_side(&in, &parent_side) && in.at_end();
}

namespace {

constexpr const char *AUTOMATIC = "_ibfk_";

std::string decoded(std::string_view file) {
  // The server does not encode its own temporary names ("#sql..") in names of files.
  if (file.substr(0, 4) == "#sql") return std::string(file);
  char name[NAME_LEN + 1];
  uint length = filename_to_tablename(std::string(file).c_str(), name, sizeof name, true);
  return std::string(name, length);
}

}  // namespace

bool is_put_aside(const std::string &table) { return table.compare(table.rfind('/') + 1, 4, "#sql") == 0; }

static std::string encoded(const std::string &name) {
  char file[FN_REFLEN];
  return std::string(file, tablename_to_filename(name.c_str(), file, sizeof file));
}

std::string table_key(const std::string &database, const std::string &table) {
  return encoded(database) + "/" + encoded(table);
}

std::string shown_database(std::string_view table) { return decoded(database_of(table)); }

std::string shown_table(std::string_view table) { return decoded(table.substr(table.rfind('/') + 1)); }

std::string automatic_name(const std::string &table, uint64_t number) {
  return shown_table(table) + AUTOMATIC + std::to_string(number);
}

uint64_t automatic_number(const std::string &table, const std::string &name) {
  std::string begin = shown_table(table) + AUTOMATIC;
  if (name.size() <= begin.size() || !is_same_name(std::string_view(name).substr(0, begin.size()), begin)) return 0;
  std::string digits = name.substr(begin.size());
  // Longer numbers were given by a user, and no automatic name needs to avoid them.
  if (digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoull(digits);
}

std::string_view database_of(std::string_view table) { return table.substr(0, table.rfind('/')); }

bool is_same_name(std::string_view a, std::string_view b) {
  return my_strnncoll(system_charset_info, reinterpret_cast<const uchar *>(a.data()), uint(a.size()),
                      reinterpret_cast<const uchar *>(b.data()), uint(b.size())) == 0;
}

}  // namespace fron
