/* SPDX-License-Identifier: GPL-2.0-only

   See backup/place.h. */

#include "backup/place.h"

#include <my_global.h>
#include <mysqld.h>
#include <sql_acl.h>
#include <sql_class.h>

#include <climits>
#include <cstdlib>
#include <memory>

#include <sys/stat.h>

namespace fron {
namespace {

/** Returns the path without symbolic links; components that do not exist yet are kept. Empty after an error. */
std::string resolved(const std::string &path) {
  struct Free {
    void operator()(char *text) const { free(text); }
  };
  std::string there = path, missing;
  for (;;) {
    if (std::unique_ptr<char, Free> real{realpath(there.c_str(), nullptr)}) {
      std::string found = real.get();
      if (missing.empty()) return found;
      return found == "/" ? missing : found + missing;
    }
    struct stat link;
    if (errno != ENOENT || lstat(there.c_str(), &link) == 0) return {};
    size_t slash = there.find_last_of('/');
    if (slash == std::string::npos) return {};
    std::string last = there.substr(slash);
    if (last == "/.." || last == "/.") return {};
    // A trailing slash names the same folder.
    if (last != "/") missing = last + missing;
    there = slash == 0 ? "/" : there.substr(0, slash);
  }
}

/** Returns whether `path` is `folder` or lies in it; both are resolved. */
bool is_within(const std::string &path, const std::string &folder) {
  if (folder.empty()) return false;
  if (folder == "/") return true;
  return path.compare(0, folder.size(), folder) == 0 && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

bool lacks_privileges(THD *thd) { return check_global_access(thd, RELOAD_ACL) || check_global_access(thd, FILE_ACL); }

namespace {

/** Checks a folder that the session names; `resolved_path` receives it without symbolic links. */
Failure check_folder(const std::string &dir, const char *allowed_prefix, std::string *resolved_path) {
  if (dir[0] != '/') return "give an absolute path";
  if (dir.size() >= PATH_MAX) return "the path is too long";
  std::string path = *resolved_path = resolved(dir);
  if (path.empty()) return "a folder of the path cannot be read, is a link to what does not exist, or has \"..\" below a missing one";
  if (allowed_prefix && *allowed_prefix) {
    if (*allowed_prefix != '/' || !is_within(path, resolved(allowed_prefix)))
      return "the path is outside of frondb_backup_allowed_prefix, " + std::string(allowed_prefix);
  }
  // Do not use the server's is_secure_file_path(): it refuses paths below a missing folder.
  const char *secure = opt_secure_file_priv;
  if (secure && *secure && !is_within(path, resolved(secure)))
    return "the path is outside of secure_file_priv, " + std::string(secure);
  return {};
}

}  // namespace

Failure check_place(const BackupOrder &order, const char *allowed_prefix) {
  std::string path, since;
  Failure failure = check_folder(order.dir, allowed_prefix, &path);
  if (!failure.empty()) return failure;
  std::string data = resolved(mysql_real_data_home);
  if (data.empty() || is_within(path, data))
    return "the path is in the data directory: give one outside of it";
  if (order.since.empty()) return {};
  failure = check_folder(order.since, allowed_prefix, &since);
  return failure.empty() ? failure : "frondb_backup_since: " + failure;
}

}  // namespace fron
