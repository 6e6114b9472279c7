/* SPDX-License-Identifier: GPL-2.0-only

   Tests encoded keys and rows against the server's own fields and collations, without a server: keys sort as the server
   compares them, and decoding returns what was encoded. Tables are random; `codecs SEED ROUNDS` repeats a run. The
   server's classes come from the embedded server's library. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "codec/key.h"
#include "codec/row.h"
#include "columns.h"

namespace {

using fron::KeyCodec;

constexpr uint64_t ROUNDS = 20000;
constexpr int ROWS = 12;

int sign(int number) { return (number > 0) - (number < 0); }

std::string hex(std::string_view bytes) {
  std::string text;
  char digits[3];
  for (char byte : bytes) {
    snprintf(digits, sizeof digits, "%02X", uchar(byte));
    text += digits;
  }
  return text;
}

struct Image {
  std::string bytes, encoded;
};

/** How the server compares a key part of two images, where it is not NULL. */
int compare_part(const KEY_PART_INFO &part, const uchar *a, const uchar *b) {
  Field *field = part.field;
  CHARSET_INFO *cs = field->charset();
  bool has_length = part.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART);
  if (has_length) return cs->strnncollsp(a + HA_KEY_BLOB_LENGTH, uint2korr(a), b + HA_KEY_BLOB_LENGTH, uint2korr(b));
  switch (field->real_type()) {
    case MYSQL_TYPE_BIT: return memcmp(a, b, part.length);
    case MYSQL_TYPE_STRING:
      if (cs->number == my_charset_bin.number) return memcmp(a, b, part.length);
      return cs->coll->strnncollsp_nchars(cs, a, part.length, b, part.length, part.length / cs->mbmaxlen, 0);
    default: return field->key_cmp(a, b);
  }
}

/** How the server compares two key images. */
int compare(const KEY *key, const uchar *a, const uchar *b) {
  for (uint i = 0; i < key->user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key->key_part[i];
    int order;
    if (part.null_bit && (*a || *b))
      order = int(*b != 0) - int(*a != 0);
    else
      order = sign(compare_part(part, a + (part.null_bit ? 1 : 0), b + (part.null_bit ? 1 : 0)));
    if (order) return part.key_part_flag & HA_REVERSE_SORT ? -order : order;
    a += part.store_length;
    b += part.store_length;
  }
  return 0;
}

class Round {
 public:
  Round(uint64_t seed) : random_(seed), columns_(random_), key_(columns_.make_key(3)), codec_(key_) {}

  /** Returns whether all checks pass, and prints those that fail. */
  bool run() {
    Image images[ROWS];
    for (Image &image : images) {
      columns_.fill(columns_.record(0));
      if (!check_row() || !check_key(&image)) return false;
    }
    for (const Image &a : images)
      for (const Image &b : images) {
        int wanted = compare(key_, bytes(a), bytes(b)), got = sign(a.encoded.compare(b.encoded));
        if (wanted != got) {
          fprintf(stderr, "order %d instead of %d\n%s %s\n%s %s\n", got, wanted, hex(a.bytes).c_str(), hex(a.encoded).c_str(),
                  hex(b.bytes).c_str(), hex(b.encoded).c_str());
          return failed("order of keys");
        }
      }
    return true;
  }

 private:
  static const uchar *bytes(const Image &image) { return reinterpret_cast<const uchar *>(image.bytes.data()); }

  bool failed(const char *what) {
    fprintf(stderr, "%s; columns:\n", what);
    for (uint i = 0; i < columns_.table()->s->fields; i++) fprintf(stderr, "  %s\n", columns_.describe(i).c_str());
    fprintf(stderr, "key:\n");
    for (uint i = 0; i < key_->user_defined_key_parts; i++) {
      const KEY_PART_INFO &part = key_->key_part[i];
      fprintf(stderr, "  %s, %u bytes%s\n", columns_.describe(part.fieldnr - 1u).c_str(), part.length,
              part.key_part_flag & HA_REVERSE_SORT ? " DESC" : "");
    }
    return false;
  }

  /** Whether field `i` has the same value in both records. */
  bool is_same(uint i) {
    Field *field = columns_.table()->field[i];
    my_ptrdiff_t offset = columns_.record(1) - columns_.record(0);
    bool is_null = field->is_real_null(), other = field->is_real_null(offset);
    if (is_null || other) return is_null == other;
    if (field->type() == MYSQL_TYPE_BIT) {
      uchar a[8], b[8];
      uint length = field->key_length();
      field->get_key_image(a, length, field->ptr, Field::itRAW);
      fron::AtRecord moved(field, offset);
      field->get_key_image(b, length, field->ptr, Field::itRAW);
      return memcmp(a, b, length) == 0;
    }
    return field->cmp_binary_offset(uint(offset)) == 0;
  }

  bool check_row() {
    TABLE *table = columns_.table();
    std::string row;
    fron::pack_row(table, {}, columns_.record(0), &row);
    memset(columns_.record(1), 0xA5, columns_.bytes());
    if (!fron::unpack_row(table, fron::RowForm(), row, columns_.record(1))) return failed("a row is not decoded");
    for (uint i = 0; i < table->s->fields; i++)
      if (!is_same(i)) return failed(("another value of " + columns_.describe(i)).c_str());
    std::string again;
    fron::pack_row(table, {}, columns_.record(1), &again);
    if (again != row) return failed("another row when it is packed again");
    for (size_t length = 0; length < row.size(); length++)
      if (fron::unpack_row(table, fron::RowForm(), std::string_view(row).substr(0, length), columns_.record(1)))
        return failed("a row that was cut off is decoded");
    return check_wanted({}, row) && check_layout(row);
  }

  /** Checks that a random choice of fields is decoded, and that the other fields stay as they are. */
  bool check_wanted(const fron::Layout &layout, std::string_view row) {
    TABLE *table = columns_.table();
    uint fields = table->s->fields;
    fron::Wanted wanted;
    for (uint i = 0; i < fields; i++) wanted.fields.push_back(uint8_t(random_.below(2)));
    fron::pass_others(table, layout, &wanted);
    fron::RowForm form;
    form.layout = layout;
    memset(columns_.record(1), 0xA5, columns_.bytes());
    if (!fron::unpack_row(table, form, row, columns_.record(1), wanted)) return failed("some fields are not decoded");
    my_ptrdiff_t offset = columns_.record(1) - columns_.record(0);
    for (uint i = 0; i < fields; i++) {
      Field *field = table->field[i];
      if (wanted.has(i)) {
        if (!is_same(i)) return failed(("another value, wanted, of " + columns_.describe(i)).c_str());
      } else if (field->type() != MYSQL_TYPE_BIT) {
        for (uint at = 0; at < field->pack_length(); at++)
          if (field->ptr[offset + at] != 0xA5) return failed(("not wanted: " + columns_.describe(i)).c_str());
      }
    }
    // A row that ends before its last wanted field is damaged.
    for (size_t length = 0; length < row.size(); length++) {
      std::string_view begin = row.substr(0, length);
      bool is_decoded = fron::unpack_row(table, form, begin, columns_.record(1), wanted);
      if (is_decoded && wanted.slots == fields) return failed("a row that was cut off is decoded in part");
    }
    return true;
  }

  /** Checks a row of which one field is skipped, and a row whose slots are in reverse order. */
  bool check_layout(std::string_view plain) {
    TABLE *table = columns_.table();
    uint fields = table->s->fields, gone = uint(random_.below(fields));
    fron::RowForm form;
    for (uint i = 0; i < fields; i++) form.layout.push_back({i});
    if (!fron::is_layout_of(form.layout, fields)) return failed("a layout that is refused");
    form.layout[gone].field = fron::Slot::GONE;
    fron::describe_bytes(table->field[gone], &form.layout[gone]);
    if (fron::is_layout_of(form.layout, fields)) return failed("a layout without a column is taken");
    std::string without, moved;
    fron::pack_row(table, form.layout, columns_.record(0), &without);
    for (std::string_view row : {plain, std::string_view(without)}) {
      memset(columns_.record(1), 0xA5, columns_.bytes());
      if (!fron::unpack_row(table, form, row, columns_.record(1)))
        return failed(("not passed over: " + columns_.describe(gone)).c_str());
      for (uint i = 0; i < fields; i++)
        if (i != gone && !is_same(i)) return failed(("beside one passed over: " + columns_.describe(i)).c_str());
      for (size_t length = 0; length < row.size(); length++)
        if (fron::unpack_row(table, form, row.substr(0, length), columns_.record(1)))
          return failed("a row that was cut off is decoded without a field");
    }
    for (uint i = 0; i < fields; i++) form.layout[i] = {fields - 1 - i};
    fron::pack_row(table, form.layout, columns_.record(0), &moved);
    memset(columns_.record(1), 0xA5, columns_.bytes());
    if (!fron::unpack_row(table, form, moved, columns_.record(1))) return failed("a moved row is not decoded");
    for (uint i = 0; i < fields; i++)
      if (!is_same(i)) return failed(("another value, moved, of " + columns_.describe(i)).c_str());
    return check_wanted(form.layout, moved);
  }

  bool check_key(Image *image) {
    TABLE *table = columns_.table();
    image->bytes.assign(key_->key_length, 0);
    fron::copy_key(table, 0, columns_.record(0), key_->key_length, reinterpret_cast<uchar *>(image->bytes.data()));
    codec_.encode(key_, bytes(*image), key_->key_length, &image->encoded);
    memset(columns_.record(1), 0, columns_.bytes());
    KeyCodec::Targets targets = codec_.targets(table, key_, fron::Wanted());
    my_ptrdiff_t offset = columns_.record(1) - columns_.record(0);
    if (!codec_.decode(targets, image->encoded, offset)) return failed("a key is not decoded");
    for (uint i : codec_.decodable())
      if (!is_same(i)) return failed(("another value out of the key of " + columns_.describe(i)).c_str());
    std::vector<size_t> ends;
    if (codec_.cut(image->encoded, &ends) && ends.back() != image->encoded.size()) return failed("a key ends elsewhere");
    return true;
  }

  Random random_;
  Columns columns_;
  KEY *key_;
  KeyCodec codec_;
};

}  // namespace

int main(int count, char **arguments) {
  if (my_init()) return 2;
  uint64_t seed = count > 1 ? strtoull(arguments[1], nullptr, 10) : 1;
  uint64_t rounds = count > 2 ? strtoull(arguments[2], nullptr, 10) : ROUNDS;
  printf("seed %llu, %llu tables, %zu collations\n", (unsigned long long)seed, (unsigned long long)rounds,
         all_collations().size());
  int failures = 0;
  for (uint64_t i = 0; i < rounds; i++) {
    if (Round(seed + i).run()) continue;
    fprintf(stderr, "again: codecs %llu 1\n\n", (unsigned long long)(seed + i));
    if (++failures == 10) break;
  }
  my_end(0);
  return failures ? 1 : 0;
}
