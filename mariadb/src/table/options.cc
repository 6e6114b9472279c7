/* SPDX-License-Identifier: GPL-2.0-only

   See table/options.h. */

#include "table/options.h"

#include <mysql/plugin.h>
#include <sql_class.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "codec/key.h"
#include "txn/connection.h"

namespace fron {
namespace {

/** Bytes of a block of consolidated data where neither the user nor the codec asks for another size. */
constexpr uint32_t BLOCK_BYTES_DEFAULT = 16 << 10;
constexpr uint32_t BLOCK_BYTES_MIN = 1 << 10;

/** The library's name of the codec that COMPRESSION='...' names. `zstd` alone is level 1 under SQL. */
std::string codec_name(const char *compression) {
  std::string name = compression ? compression : "";
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return name.empty() || name == "zstd" ? "zstd:1" : name;
}

/** Sets the codec, and returns the size of blocks that suits it, or 0, in `block_bytes`. */
Error set_codec(const char *compression, TreeOptions *options, uint32_t *block_bytes) {
  return frondb_tree_options_set_codec_name(options->get(), codec_name(compression).c_str(), block_bytes);
}

/** Refuses a value of frondb_default_compression that names no codec. */
int check_compression(MYSQL_THD thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value) {
  char buffer[STRING_BUFFER_USUAL_SIZE];
  int length = sizeof(buffer);
  const char *name = value->val_str(value, buffer, &length);
  TreeOptions options;
  uint32_t block_bytes = 0;
  if (!name || frondb_tree_options_new(options.out())) return 1;
  name = thd_strmake(thd, name, size_t(length));
  if (Error error = set_codec(name, &options, &block_bytes)) return 1;
  *static_cast<const char **>(save) = name;
  return 0;
}

MYSQL_THDVAR_STR(default_compression, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
                 "COMPRESSION of new tables that do not set it: none, lz4, zstd[:1-19], zstd-dictionary[:1-19], "
                 "zlib[:1-9], lzma[:0-9] or aggressive, which is zstd-dictionary:19.",
                 check_compression, nullptr, "zstd");
MYSQL_THDVAR_ULONGLONG(default_block_size, PLUGIN_VAR_RQCMDARG,
                       "BLOCK_SIZE of new tables that do not set it: bytes of keys and values in a "
                       "block of consolidated data, at least 1024; 0: 16384, or what suits the codec.",
                       nullptr, nullptr, 0, 0, 4 << 20, 0);
MYSQL_THDVAR_ULONGLONG(default_fanout, PLUGIN_VAR_RQCMDARG,
                       "FANOUT of new tables that do not set it: children of an inner node of a tree.",
                       nullptr, nullptr, 16, 2, 1024, 0);

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
  // Point reads never search an index that is not unique, so its filters need not tell whole keys apart.
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
  uint32_t block_bytes = 0;
  if (Error error = set_codec(table->compression, options, &block_bytes)) return error;
  if (!block_bytes) block_bytes = BLOCK_BYTES_DEFAULT;
  if (table->block_size) block_bytes = std::max(uint32_t(table->block_size), BLOCK_BYTES_MIN);
  if (Error error = frondb_tree_options_set_block_bytes(options->get(), block_bytes)) return error;
  return frondb_tree_options_set_fanout(options->get(), uint32_t(table->fanout));
}

bool asks_for_encryption(const TABLE_SHARE *share) {
  constexpr uint YES = 1;
  return share->option_struct && share->option_struct->encrypted == YES;
}

void warn_of_options(MYSQL_THD thd, const HA_CREATE_INFO *info, const TABLE_SHARE *share, const TABLE_SHARE *before) {
  static const ha_table_option_struct none = {};
  const ha_table_option_struct *now = share->option_struct ? share->option_struct : &none;
  // Do not warn of options of the former definition: the statement that introduced them has done so.
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

bool same_tree_options(const ha_table_option_struct *a, const ha_table_option_struct *b) {
  if (!a || !b) return a == b;
  return codec_name(a->compression) == codec_name(b->compression) && a->block_size == b->block_size && a->fanout == b->fanout;
}

}  // namespace fron
