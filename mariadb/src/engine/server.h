/* SPDX-License-Identifier: GPL-2.0-only

   What differs between the servers that the plugin is built for, MariaDB 10.11 and 11.8. All other files are the same
   for both, except where a comment names the version. */

#ifndef FRONDB_ENGINE_SERVER_H
#define FRONDB_ENGINE_SERVER_H

#include <my_global.h>
#include <mysql_version.h>
#include <sql_class.h>
#include <handler.h>
#include <mysqld.h>
#include <set_var.h>

#include <string>

#if MYSQL_VERSION_ID >= 110800
#define FRONDB_SERVER_11_8 1
#else
#define FRONDB_SERVER_11_8 0
#endif

#if FRONDB_SERVER_11_8
/** First parameter of a transaction's hooks, with its comma. */
#define HOOK_PARAMETER
/** The limit of rows that the optimizer passes to estimates of several ranges, as parameter and argument. */
#define RANGES_LIMIT_PARAMETER ha_rows limit,
#define RANGES_LIMIT_ARGUMENT limit,
/** Shows an error number with its text in a message of the server. */
#define SHOWN_ERRNO "%iE"
#else
#define HOOK_PARAMETER handlerton *,
#define RANGES_LIMIT_PARAMETER
#define RANGES_LIMIT_ARGUMENT
#define SHOWN_ERRNO "%M"
#endif

// Some patch releases of 11.8 pass an argument to handler::column_bitmaps_signal(); CMakeLists.txt looks into handler.h.
#ifndef SIGNAL_PARAMETER
#define SIGNAL_PARAMETER
#endif

namespace fron {

#if FRONDB_SERVER_11_8

using Timestamp = my_timeval;

/** The default of InnoDB's variable in this server. */
inline constexpr bool SNAPSHOT_ISOLATION_BY_DEFAULT = true;

inline constexpr ha_extra_function BEGIN_COPY = HA_EXTRA_BEGIN_ALTER_COPY;
inline constexpr ha_extra_function END_COPY = HA_EXTRA_END_ALTER_COPY;
inline constexpr ha_extra_function ABORT_COPY = HA_EXTRA_ABORT_ALTER_COPY;

inline bool is_fulltext(const KEY &key) { return key.algorithm == HA_KEY_ALG_FULLTEXT; }
inline bool is_spatial(const KEY &key) { return key.algorithm == HA_KEY_ALG_RTREE; }

/** Compares two names as the server compares names of columns and keys. */
inline bool is_same_identifier(const char *a, const char *b) {
  return system_charset_info->streq({a, strlen(a)}, {b, strlen(b)});
}

inline std::string lower_case(const std::string &name) {
  std::string lower(name.size() * system_charset_info->casedn_multiply() + 1, '\0');
  lower.resize(system_charset_info->casedn(name.data(), name.size(), lower.data(), lower.size()));
  return lower;
}

inline const char *dropped_name(const Alter_drop &drop) { return drop.name.str; }

/** Returns whether the option `version` has replaced the server's version. */
inline bool has_custom_version() { return !IS_SYSVAR_AUTOSIZE(&server_version_ptr); }

inline void init_definition(THD *thd, TABLE_SHARE *share, const char *database, const char *table, const char *path) {
  init_tmp_table_share(thd, share, database, 0, table, path, true);
}

#else

using Timestamp = timeval;

inline constexpr bool SNAPSHOT_ISOLATION_BY_DEFAULT = false;

inline constexpr ha_extra_function BEGIN_COPY = HA_EXTRA_BEGIN_COPY;
inline constexpr ha_extra_function END_COPY = HA_EXTRA_END_COPY;
inline constexpr ha_extra_function ABORT_COPY = HA_EXTRA_ABORT_COPY;

inline bool is_fulltext(const KEY &key) { return key.flags & HA_FULLTEXT; }
inline bool is_spatial(const KEY &key) { return key.flags & HA_SPATIAL; }

inline bool is_same_identifier(const char *a, const char *b) { return !my_strcasecmp(system_charset_info, a, b); }

inline std::string lower_case(std::string name) {
  name.resize(my_casedn_str(system_charset_info, name.data()));
  return name;
}

inline const char *dropped_name(const Alter_drop &drop) { return drop.name; }

inline bool has_custom_version() { return using_custom_server_version; }

inline void init_definition(THD *thd, TABLE_SHARE *share, const char *database, const char *table, const char *path) {
  init_tmp_table_share(thd, share, database, 0, table, path);
}

#endif

/** Returns a list of names; `names` ends with a null pointer, which is not counted. */
inline TYPELIB type_library(size_t count, const char *name, const char **names) {
  TYPELIB library = {};
  library.count = uint(count);
  library.name = name;
  library.type_names = names;
  return library;
}

}  // namespace fron

#endif
