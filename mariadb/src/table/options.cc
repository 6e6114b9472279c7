/* SPDX-License-Identifier: GPL-2.0-only

   See table/options.h. */

#include "table/options.h"

#include <mysql/plugin.h>
#include <sql_class.h>
#include <create_options.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "codec/key.h"
#include "engine/option_rows.h"
#include "engine/server.h"
#include "txn/connection.h"

namespace fron {
namespace {

/** A table option that sets an option of the table's trees, which the library checks. 0 means the default. */
struct NumberOption {
  const char *sql;
  const char *library;
  const char *variable;
  ulonglong ha_table_option_struct::*number;
  const OptionRow &row;
};
#define OPTION(field, sql, library) \
  constexpr NumberOption field##_option = {#sql, #library, "frondb_default_" #field, &ha_table_option_struct::field, \
                                           tree_rows::library};
SQL_TREE_OPTIONS(OPTION)
#undef OPTION

#define OPTION(field, sql, library) &field##_option,
constexpr const NumberOption *NUMBER_OPTIONS[] = {SQL_TREE_OPTIONS(OPTION)};
#undef OPTION

/** Returns the values of COMPRESSION: the codecs without a level, then all levels. An option file may have a codec's
    number instead of its name, so the first five keep the numbers that they had in 0.1.0. */
std::vector<std::string> codec_names() {
  std::vector<std::string> names = {"none", "lz4"};
  for (const CodecLevels &of : CODEC_LEVELS) names.push_back(of.codec);
  names.push_back("aggressive");
  for (const CodecLevels &of : CODEC_LEVELS)
    for (int level = of.first; level <= of.last; level++) names.push_back(std::string(of.codec) + ":" + std::to_string(level));
  return names;
}
const std::vector<std::string> compression_names = codec_names();
const uint COMPRESSION_DEFAULT =
    uint(std::find(compression_names.begin(), compression_names.end(), "zstd") - compression_names.begin());

std::vector<const char *> pointers_to(const std::vector<std::string> &names) {
  std::vector<const char *> pointers;
  for (const std::string &name : names) pointers.push_back(name.c_str());
  pointers.push_back(nullptr);
  return pointers;
}
std::vector<const char *> compression_pointers = pointers_to(compression_names);
TYPELIB compressions = type_library(compression_names.size(), "compression", compression_pointers.data());

Error set_option(TreeOptions *options, const char *name, const std::string &value) {
  return frondb_tree_options_set(options->get(), name, value.c_str());
}

Error set_codec(uint compression, TreeOptions *options) {
  const std::string &name = compression_names[std::min<size_t>(compression, compression_names.size() - 1)];
  return set_option(options, "codec", name == "zstd" ? SQL_ZSTD : name);
}

/** Returns the text of an option in a table's definition, where the last occurrence counts; empty for the default. */
std::string text_of(const TABLE_SHARE *share, const char *option) {
  std::string text;
  for (const engine_option_value *any = share->option_list; any; any = any->next)
    if (is_same_identifier(any->name.str, option))
      text = any->value.str ? std::string(any->value.str, any->value.length) : std::string();
  // The library reads a value up to a NUL byte, and would ignore the rest. No value contains a question mark.
  std::replace(text.begin(), text.end(), '\0', '?');
  return text;
}

/** Tests whether the library accepts a value. */
Error try_option(const NumberOption &option, const std::string &value) {
  TreeOptions options;
  if (Error error = frondb_tree_options_new(options.out())) return error;
  return set_option(&options, option.library, value);
}

/** Returns why the library refuses a value: its sentence, with `name` instead of its own name of the option. */
std::string reason(const NumberOption &option, const char *name, const Error &error) {
  std::string text = error.message();
  size_t length = strlen(option.library);
  return text.compare(0, length, option.library) == 0 ? name + text.substr(length) : text;
}

/** Returns the number that the server has read: the session variable's if the definition lacks the option. */
std::string number_of(const TABLE_SHARE *share, const NumberOption &option) {
  return std::to_string(share->option_struct->*option.number);
}

/** Returns the value that a table's definition gives an option. */
std::string value_of(const TABLE_SHARE *share, const NumberOption &option) {
  std::string text = text_of(share, option.sql);
  if (!text.empty() && !try_option(option, text)) return text;
  // Earlier versions accepted the leading digits of any text, and with IGNORE_BAD_TABLE_OPTIONS the definition keeps any
  // value.
  std::string number = number_of(share, option);
  return try_option(option, number) ? "0" : number;
}

/** Sets the codec according to the table's options, then the numbers: the default block size depends on the codec. */
Error set_options_of(const TABLE_SHARE *share, bool with_fixed, TreeOptions *options) {
  if (Error error = set_codec(share->option_struct->compression, options)) return error;
  for (const NumberOption *option : NUMBER_OPTIONS) {
    if (option->row.is_fixed && !with_fixed) continue;
    if (Error error = set_option(options, option->library, value_of(share, *option))) return error;
  }
  return {};
}

template <const NumberOption &OPTION>
int check_number(MYSQL_THD, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value) {
  longlong number = 0;
  if (value->val_int(value, &number)) return 1;
  bool is_negative = number < 0 && !value->is_unsigned(value);
  Error error = try_option(OPTION, is_negative ? std::to_string(number) : std::to_string(ulonglong(number)));
  if (error) {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "FronDB: %s", MYF(0), reason(OPTION, OPTION.variable, error).c_str());
    return 1;
  }
  *static_cast<ulonglong *>(save) = ulonglong(number);
  return 0;
}

std::string compression_help() {
  std::string text = "COMPRESSION of new tables that do not set it: none, lz4, ";
  for (const CodecLevels &of : CODEC_LEVELS) {
    std::string codec = of.codec;
    text += codec + " (or " + codec + ":" + std::to_string(of.first) + " to " + codec + ":" + std::to_string(of.last) + "), ";
  }
  return text + "or aggressive, which is zstd-dictionary.";
}
const std::string compression_text = compression_help();
MYSQL_THDVAR_ENUM(default_compression, PLUGIN_VAR_RQCMDARG, compression_text.c_str(),
                  check_name_of<compressions>, nullptr, COMPRESSION_DEFAULT, &compressions);

#define VARIABLE(field, sql, library)                                                                             \
  const std::string field##_text =                                                                                \
      std::string(#sql " of new tables that do not set it; 0: the default. ") + tree_rows::library.text;          \
  MYSQL_THDVAR_ULONGLONG(default_##field, PLUGIN_VAR_RQCMDARG, field##_text.c_str(), check_number<field##_option>, \
                         nullptr, 0, 0, tree_rows::library.max, 0);
SQL_TREE_OPTIONS(VARIABLE)
#undef VARIABLE

}  // namespace

SystemVariables table_option_variables() {
#define VARIABLE(field, sql, library) , MYSQL_SYSVAR(default_##field)
  return {MYSQL_SYSVAR(default_compression) SQL_TREE_OPTIONS(VARIABLE)};
#undef VARIABLE
}

ha_create_table_option table_option_list[] = {
    HA_TOPTION_SYSVAR("COMPRESSION", compression, default_compression),
#define OPTION(field, sql, library) HA_TOPTION_SYSVAR(#sql, field, default_##field),
    SQL_TREE_OPTIONS(OPTION)
#undef OPTION
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
    if (Error error = set_option(options, "filter", "prefix:" + std::to_string(bytes))) return error;
  }
  // The server's internal tables have no options.
  if (!share->option_struct) return {};
  return set_options_of(share, true, options);
}

namespace {

constexpr const char *ENCRYPTED = "ENCRYPTED=YES";

/** Returns whether the library does not accept the value that a definition gives an option, and why. */
bool is_bad(const TABLE_SHARE *share, const NumberOption &option, Error *why) {
  std::string text = text_of(share, option.sql);
  if (!share->option_struct || text.empty()) return false;
  *why = try_option(option, text);
  if (!*why) return false;
  // With IGNORE_BAD_TABLE_OPTIONS the server keeps the text of a number that it has brought into the range.
  bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  return !is_number || try_option(option, number_of(share, option));
}

/** Returns whether bad values only cause warnings, as those do that the server finds. */
bool ignores_bad_values(const THD *thd) {
  return thd && (thd->variables.sql_mode & MODE_IGNORE_BAD_TABLE_OPTIONS || thd->slave_thread);
}

/** Returns the option of a table whose value is refused, and why; null if there is none. */
const NumberOption *refused_number(const TABLE_SHARE *share, Error *why) {
  if (ignores_bad_values(_current_thd())) return nullptr;
  for (const NumberOption *option : NUMBER_OPTIONS)
    if (is_bad(share, *option, why)) return option;
  return nullptr;
}

void warn_of_value(THD *thd, const NumberOption &option, const Error &why) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_BAD_OPTION_VALUE, "FronDB: %s",
                      reason(option, option.sql, why).c_str());
}

/** Raises the server's error, which has only the value, and adds a warning with the reason. */
void refuse_value(const TABLE_SHARE *share, const NumberOption &option, const Error &why) {
  my_error(ER_BAD_OPTION_VALUE, MYF(0), text_of(share, option.sql).c_str(), option.sql);
  if (THD *thd = _current_thd()) warn_of_value(thd, option, why);
}

bool asks_for_encryption(const TABLE_SHARE *share) {
  constexpr uint ENCRYPTED_YES = 1;
  return share->option_struct && share->option_struct->encrypted == ENCRYPTED_YES;
}

}  // namespace

const char *refused_option(const TABLE_SHARE *share) {
  if (!share->option_struct) return nullptr;
  if (asks_for_encryption(share)) return ENCRYPTED;
  Error why;
  const NumberOption *refused = refused_number(share, &why);
  return refused ? refused->sql : nullptr;
}

bool refuses_options(const TABLE_SHARE *share) {
  if (asks_for_encryption(share)) {
    my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "FronDB", ENCRYPTED);
    return true;
  }
  Error why;
  const NumberOption *refused = share->option_struct ? refused_number(share, &why) : nullptr;
  if (refused) refuse_value(share, *refused, why);
  return refused != nullptr;
}

void warn_of_options(MYSQL_THD thd, const HA_CREATE_INFO *info, const TABLE_SHARE *share, const TABLE_SHARE *before) {
  static const ha_table_option_struct none = {};
  const ha_table_option_struct *now = share->option_struct ? share->option_struct : &none;
  // Do not warn of options of the former definition: the statement that introduced them has warned.
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
  std::vector<std::pair<const NumberOption *, Error>> bad;
  for (const NumberOption *option : NUMBER_OPTIONS) {
    Error why;
    bool is_new = !before || text_of(before, option->sql) != text_of(share, option->sql);
    if (is_new && is_bad(share, *option, &why)) bad.emplace_back(option, std::move(why));
  }
  if (ignored.empty() && !has_key && bad.empty()) return;
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
  for (const auto &[option, why] : bad) warn_of_value(thd, *option, why);
}

Error change_packing(const TABLE_SHARE *share, frondb_tree *tree) {
  if (!share->option_struct) return {};
  TreeOptions options;
  if (Error error = frondb_tree_options_of(tree, options.out())) return error;
  if (Error error = set_options_of(share, false, &options)) return error;
  return frondb_tree_set_options(tree, options.get());
}

bool same_packing(const TABLE_SHARE *a, const TABLE_SHARE *b) {
  if (!a->option_struct || !b->option_struct) return a->option_struct == b->option_struct;
  if (a->option_struct->compression != b->option_struct->compression) return false;
  return std::all_of(std::begin(NUMBER_OPTIONS), std::end(NUMBER_OPTIONS), [&](const NumberOption *option) {
    return option->row.is_fixed || value_of(a, *option) == value_of(b, *option);
  });
}

bool same_fixed_options(const ha_table_option_struct *a, const ha_table_option_struct *b) {
  if (!a || !b) return a == b;
  return std::all_of(std::begin(NUMBER_OPTIONS), std::end(NUMBER_OPTIONS), [&](const NumberOption *option) {
    auto value = [&](const ha_table_option_struct *of) { return of->*option->number ? of->*option->number : option->row.initial; };
    return !option->row.is_fixed || value(a) == value(b);
  });
}

void correct_defaults() {
  auto correct = [](const NumberOption &option, ulonglong *value) {
    Error error = try_option(option, std::to_string(*value));
    if (!error) return;
    sql_print_warning("FronDB: %s; new tables have the default instead", reason(option, option.variable, error).c_str());
    *value = 0;
  };
#define CORRECT(field, sql, library) correct(field##_option, &THDVAR(nullptr, default_##field));
  SQL_TREE_OPTIONS(CORRECT)
#undef CORRECT
}

}  // namespace fron
