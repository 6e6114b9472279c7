/* SPDX-License-Identifier: GPL-2.0-only

   See table/options.h. */

#include "table/options.h"

#include <mysql/plugin.h>
#include <sql_class.h>
#include <create_options.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/key.h"
#include "txn/connection.h"

namespace fron {
namespace {

/** Block size of consolidated data, in bytes, if neither the user nor the codec requests another size. */
constexpr uint32_t BLOCK_BYTES_DEFAULT = 16 << 10;
constexpr uint32_t BLOCK_BYTES_MIN = 1 << 10;
constexpr uint32_t BLOCK_BYTES_MAX = 4 << 20;
constexpr uint FANOUT_MIN = 2, FANOUT_MAX = 1024;

/** The values of COMPRESSION: the codecs without a level, then all levels. The library knows the same names. */
std::vector<std::string> codec_names() {
  struct Levels {
    const char *codec;
    int first, last;
  };
  constexpr Levels levels[] = {{"zstd", 1, 19}, {"zstd-dictionary", 1, 19}, {"zlib", 1, 9}, {"lzma", 0, 9}};
  std::vector<std::string> names = {"none", "lz4", "zstd", "zlib", "lzma", "zstd-dictionary", "aggressive"};
  for (const Levels &of : levels)
    for (int level = of.first; level <= of.last; level++) names.push_back(std::string(of.codec) + ":" + std::to_string(level));
  return names;
}
const std::vector<std::string> compression_names = codec_names();
constexpr uint COMPRESSION_DEFAULT = 2;

std::vector<const char *> pointers_to(const std::vector<std::string> &names) {
  std::vector<const char *> pointers;
  for (const std::string &name : names) pointers.push_back(name.c_str());
  pointers.push_back(nullptr);
  return pointers;
}
std::vector<const char *> compression_pointers = pointers_to(compression_names);
TYPELIB compressions = {uint(compression_names.size()), "compression", compression_pointers.data(), nullptr};

/** Sets the codec that COMPRESSION names. `block_bytes` receives the block size that suits it, or 0. */
Error set_codec(uint compression, TreeOptions *options, uint32_t *block_bytes) {
  const std::string &name = compression_names[std::min<size_t>(compression, compression_names.size() - 1)];
  // In SQL, zstd without a level is the level that tables had when there was no other.
  return frondb_tree_options_set_codec_name(options->get(), name == "zstd" ? "zstd:1" : name.c_str(), block_bytes);
}

bool is_too_small(ulonglong block_size) { return block_size && block_size < BLOCK_BYTES_MIN; }

/** The text of an option in a table's definition, where the last occurrence counts; empty for the default. */
std::string_view text_of(const TABLE_SHARE *share, const char *option) {
  std::string_view text;
  for (const engine_option_value *any = share->option_list; any; any = any->next)
    if (!my_strcasecmp(system_charset_info, any->name.str, option))
      text = any->value.str ? std::string_view(any->value.str, any->value.length) : std::string_view();
  return text;
}

/** Reads an integer, which may end with the suffix K or M if it `is_size`. The server itself reads only the digits at
    the beginning. */
bool read_number(std::string_view text, bool is_size, ulonglong *number) {
  std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (read.ec != std::errc()) return false;
  std::string_view suffix = text.substr(size_t(read.ptr - text.data()));
  if (suffix.empty()) return true;
  bool is_kilo = suffix == "K" || suffix == "k", is_mega = suffix == "M" || suffix == "m";
  ulonglong unit = is_kilo ? 1 << 10 : 1 << 20;
  if (!is_size || !(is_kilo || is_mega) || *number > ULONGLONG_MAX / unit) return false;
  *number *= unit;
  return true;
}

/** Reads the block size that a table's definition requests, 0 if none. Returns false if the size is invalid. */
bool read_block_size(const TABLE_SHARE *share, ulonglong *size) {
  std::string_view text = text_of(share, "BLOCK_SIZE");
  *size = share->option_struct->block_size;
  return text.empty() || (read_number(text, true, size) && !is_too_small(*size) && *size <= BLOCK_BYTES_MAX);
}

/** The block size of a table's trees; 0 for the size that suits the codec. */
ulonglong block_size_of(const TABLE_SHARE *share) {
  ulonglong size;
  // Earlier versions accepted the leading digits of any text.
  return read_block_size(share, &size) ? size : share->option_struct->block_size;
}

/** Sets the codec and block size according to the table's options. */
Error set_packing_of(const TABLE_SHARE *share, TreeOptions *options) {
  uint32_t block_bytes = 0;
  if (Error error = set_codec(share->option_struct->compression, options, &block_bytes)) return error;
  if (!block_bytes) block_bytes = BLOCK_BYTES_DEFAULT;
  if (ulonglong size = block_size_of(share)) block_bytes = uint32_t(size);
  return frondb_tree_options_set_block_bytes(options->get(), block_bytes);
}

/** Accepts 0 or the nearest valid size, as the server does for variables without a gap in their range. */
int check_block_size(MYSQL_THD, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value) {
  longlong size = 0;
  if (value->val_int(value, &size)) return 1;
  ulonglong wanted = size < 0 && !value->is_unsigned(value) ? 0 : std::min<ulonglong>(size, BLOCK_BYTES_MAX);
  *static_cast<ulonglong *>(save) = is_too_small(wanted) ? BLOCK_BYTES_MIN : wanted;
  return 0;
}

MYSQL_THDVAR_ENUM(default_compression, PLUGIN_VAR_RQCMDARG,
                  "COMPRESSION of new tables that do not set it: none, lz4, zstd (or zstd:1 to zstd:19), zstd-dictionary "
                  "(:1 to :19), zlib (:1 to :9), lzma (:0 to :9), or aggressive, which is zstd-dictionary:19.",
                  nullptr, nullptr, COMPRESSION_DEFAULT, &compressions);
MYSQL_THDVAR_ULONGLONG(default_block_size, PLUGIN_VAR_RQCMDARG,
                       "BLOCK_SIZE of new tables that do not set it: bytes of keys and values in a "
                       "block of consolidated data, at least 1024; 0: 16384, or what suits the codec.",
                       check_block_size, nullptr, 0, 0, BLOCK_BYTES_MAX, 0);
MYSQL_THDVAR_ULONGLONG(default_fanout, PLUGIN_VAR_RQCMDARG,
                       "FANOUT of new tables that do not set it: children of an inner node of a tree.",
                       nullptr, nullptr, 16, FANOUT_MIN, FANOUT_MAX, 0);

}  // namespace

struct st_mysql_sys_var *const default_compression_variable = MYSQL_SYSVAR(default_compression);
struct st_mysql_sys_var *const default_block_size_variable = MYSQL_SYSVAR(default_block_size);
struct st_mysql_sys_var *const default_fanout_variable = MYSQL_SYSVAR(default_fanout);

ha_create_table_option table_option_list[] = {
    HA_TOPTION_SYSVAR("COMPRESSION", compression, default_compression),
    HA_TOPTION_SYSVAR("BLOCK_SIZE", block_size, default_block_size),
    HA_TOPTION_SYSVAR("FANOUT", fanout, default_fanout),
    HA_TOPTION_ENUM("ENCRYPTED", encrypted, "DEFAULT,YES,NO", 0),
    HA_TOPTION_NUMBER("ENCRYPTION_KEY_ID", encryption_key_id, 0, 0, UINT_MAX32, 1),
    HA_TOPTION_BOOL("PAGE_COMPRESSED", page_compressed, 0),
    HA_TOPTION_NUMBER("PAGE_COMPRESSION_LEVEL", page_compression_level, 0, 0, 9, 1),
    HA_TOPTION_END};

ha_create_table_option index_option_list[] = {HA_IOPTION_BOOL("CLUSTERING", clustering, 0), HA_IOPTION_END};

bool is_clustering(const KEY &key) { return key.option_struct && key.option_struct->clustering; }

Error make_tree_options(const TABLE_SHARE *share, const KEY *key, bool is_primary, TreeOptions *options) {
  // Point reads never search an index that is not unique, so its filters need not distinguish whole keys.
  bool is_looked_up = is_primary || !key || key->flags & HA_NOSAME;
  if (Error error = is_looked_up ? frondb_tree_options_new(options->out())
                                 : frondb_tree_options_new_secondary(options->out()))
    return error;
  if (!is_looked_up) {
    size_t bytes = std::min<size_t>(KeyCodec(key).prefix_bytes(), UINT_MAX16);
    if (Error error = frondb_tree_options_set_filter(options->get(), FRONDB_FILTER_PREFIX, uint16_t(bytes))) return error;
  }
  // The server's internal tables have no options.
  const ha_table_option_struct *table = share->option_struct;
  if (!table) return {};
  if (Error error = set_packing_of(share, options)) return error;
  return frondb_tree_options_set_fanout(options->get(), uint32_t(table->fanout));
}

namespace {

constexpr const char *ENCRYPTED = "ENCRYPTED=YES";

/** The server's message has only the value; a warning lists the valid values. */
void refuse_value(const TABLE_SHARE *share, const char *option) {
  my_error(ER_BAD_OPTION_VALUE, MYF(0), std::string(text_of(share, option)).c_str(), option);
  THD *thd = _current_thd();
  if (!thd) return;
  if (std::string_view(option) == "FANOUT")
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_BAD_OPTION_VALUE, "FronDB: FANOUT is a number from %u to %u",
                        FANOUT_MIN, FANOUT_MAX);
  else
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_BAD_OPTION_VALUE,
                        "FronDB: BLOCK_SIZE is 0, or a size from %uK to %uM", BLOCK_BYTES_MIN >> 10, BLOCK_BYTES_MAX >> 20);
}

}  // namespace

const char *refused_option(const TABLE_SHARE *share) {
  constexpr uint ENCRYPTED_YES = 1;
  const ha_table_option_struct *table = share->option_struct;
  if (!table) return nullptr;
  if (table->encrypted == ENCRYPTED_YES) return ENCRYPTED;
  ulonglong number;
  if (!read_block_size(share, &number)) return "BLOCK_SIZE";
  std::string_view fanout = text_of(share, "FANOUT");
  return fanout.empty() || read_number(fanout, false, &number) ? nullptr : "FANOUT";
}

bool refuses_options(const TABLE_SHARE *share) {
  const char *refused = refused_option(share);
  if (!refused) return false;
  if (refused == ENCRYPTED)
    my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "FronDB", refused);
  else
    refuse_value(share, refused);
  return true;
}

void warn_of_options(MYSQL_THD thd, const HA_CREATE_INFO *info, const TABLE_SHARE *share, const TABLE_SHARE *before) {
  static const ha_table_option_struct none = {};
  const ha_table_option_struct *now = share->option_struct ? share->option_struct : &none;
  // Do not warn of options of the former definition: the statement that introduced them did.
  const ha_table_option_struct *old = before && before->option_struct ? before->option_struct : &none;
  std::string ignored;
  auto ignore = [&](bool is_asked_for, const char *option) {
    if (is_asked_for) ignored += (ignored.empty() ? "" : ", ") + std::string(option);
  };
  bool is_format_asked_for = info->used_fields & (HA_CREATE_USED_ROW_FORMAT | HA_CREATE_USED_ENGINE);
  ignore(info->row_type == ROW_TYPE_COMPRESSED && is_format_asked_for, "ROW_FORMAT=COMPRESSED");
  ignore(now->page_compressed && !old->page_compressed, "PAGE_COMPRESSED");
  ignore(now->page_compression_level && now->page_compression_level != old->page_compression_level,
         "PAGE_COMPRESSION_LEVEL");
  bool has_key = now->encryption_key_id && now->encryption_key_id != old->encryption_key_id;
  if (ignored.empty() && !has_key) return;
  Connection *connection = Connection::of(thd);
  // Warn once per statement, although this is called for each partition.
  if (connection && std::exchange(connection->warned_of_row_format, thd->query_id) == thd->query_id) return;
  if (!ignored.empty())
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                        "FronDB ignores %s: set the table's option COMPRESSION='...', or the variable "
                        "frondb_default_compression",
                        ignored.c_str());
  if (has_key)
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                 "FronDB ignores ENCRYPTION_KEY_ID: it does not encrypt tables");
}

Error change_packing(const TABLE_SHARE *share, frondb_tree *tree) {
  if (!share->option_struct) return {};
  TreeOptions options;
  if (Error error = frondb_tree_options_of(tree, options.out())) return error;
  if (Error error = set_packing_of(share, &options)) return error;
  return frondb_tree_set_options(tree, options.get());
}

bool same_packing(const TABLE_SHARE *a, const TABLE_SHARE *b) {
  if (!a->option_struct || !b->option_struct) return a->option_struct == b->option_struct;
  return a->option_struct->compression == b->option_struct->compression && block_size_of(a) == block_size_of(b);
}

bool same_fanout(const ha_table_option_struct *a, const ha_table_option_struct *b) {
  if (!a || !b) return a == b;
  return a->fanout == b->fanout;
}

}  // namespace fron
