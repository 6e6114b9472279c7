/* SPDX-License-Identifier: GPL-2.0-only

   See backup/place.h. */

#include "backup/place.h"

#include <my_global.h>
#include <mysqld.h>
#include <sql_acl.h>
#include <sql_class.h>

#include <cstdlib>
#include <memory>

namespace fron {
namespace {

/** The path without symbolic links; what does not exist yet is kept as it is. Empty after an error. */
std::string resolved(const std::string &path) {
  struct Free {
    void operator()(char *text) const { free(text); }
  };
  if (std::unique_ptr<char, Free> real{realpath(path.c_str(), nullptr)}) return real.get();
  size_t slash = path.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos) return {};
  std::string last = path.substr(slash);
  if (last == "/.." || last == "/.") return {};
  // A slash at the end names the same folder.
  std::string before = slash == 0 ? "/" : resolved(path.substr(0, slash));
  if (before.empty() || last == "/") return before;
  return before == "/" ? last : before + last;
}

/** Whether `path` is `folder` or lies in it; both are resolved. */
bool is_within(const std::string &path, const std::string &folder) {
  if (folder == "/") return true;
  return path.compare(0, folder.size(), folder) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

bool lacks_privileges(THD *thd) { return check_global_access(thd, RELOAD_ACL) || check_global_access(thd, FILE_ACL); }

Failure check_place(const std::string &dir, const char *allowed_prefix) {
  if (dir[0] != '/') return "give an absolute path";
  std::string path = resolved(dir);
  if (path.empty()) return "a folder of the path cannot be read, or has \"..\" below a missing one";
  std::string data = resolved(mysql_real_data_home);
  if (is_within(path, data)) return "the path is in the data directory: give one outside of it";
  if (allowed_prefix && *allowed_prefix && !is_within(path, resolved(allowed_prefix)))
    return "the path is outside of frondb_backup_allowed_prefix, " + std::string(allowed_prefix);
  if (!is_secure_file_path(path.data())) return "secure_file_priv allows no files there";
  return {};
}

}  // namespace fron
