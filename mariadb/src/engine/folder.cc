/* SPDX-License-Identifier: GPL-2.0-only

   See engine/folder.h. The server's working directory is its data directory. A crash leaves one of the two names,
   because rename() is atomic, and the next start continues from either. */

#include "engine/folder.h"

#include <my_global.h>
#include <log.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace fron {
namespace {

/** An open file or folder, closed with the object. */
class Opened {
 public:
  Opened(const std::string &path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Opened() {
    if (file_ >= 0) ::close(file_);
  }
  Opened(const Opened &) = delete;
  Opened &operator=(const Opened &) = delete;
  bool is_open() const { return file_ >= 0; }
  int number() const { return file_; }

 private:
  int file_;
};

/** Returns whether a file of this name exists, including a link whose target is missing. */
bool exists(const char *name) {
  struct stat found;
  return lstat(name, &found) == 0;
}

bool is_folder(const char *name) {
  struct stat found;
  return stat(name, &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

std::string take_earlier_folder() {
  const std::string earlier = EARLIER_DATABASE_DIR, present = DATABASE_DIR;
  if (!is_folder(EARLIER_DATABASE_DIR)) return {};
  if (exists(DATABASE_DIR))
    return "the data directory has both " + present + " and " + earlier +
           ", the name in earlier versions: stop the server, and move away the one that does not have the tables' data";
  // A database that another process has open must not be moved.
  Opened lock(earlier + "/LOCK", O_RDWR);
  if (lock.is_open() && flock(lock.number(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? "another process has the database in " + earlier + " open: stop it"
                                : "cannot lock " + earlier + "/LOCK: " + strerror(errno);
  if (!lock.is_open() && errno != ENOENT) return "cannot open " + earlier + "/LOCK: " + strerror(errno);
  if (rename(EARLIER_DATABASE_DIR, DATABASE_DIR) != 0)
    return "cannot rename " + earlier + " to " + present + ": " + strerror(errno) +
           ": rename it while the server is stopped; a file system that is mounted there has to be mounted anew";
  Opened data_directory(".", O_RDONLY | O_DIRECTORY);
  if (!data_directory.is_open() || fsync(data_directory.number()) != 0)
    return "cannot sync the data directory: " + std::string(strerror(errno));
  sql_print_information("FronDB: renamed the folder %s to %s, which the server does not take for a database",
                        EARLIER_DATABASE_DIR, DATABASE_DIR);
  return {};
}

/** Returns the first component of a path below the data directory; ".." if the path lies elsewhere. */
static std::string first_below(const std::filesystem::path &data_directory, const std::filesystem::path &path) {
  std::filesystem::path inside = path.lexically_relative(data_directory);
  return inside.empty() ? ".." : inside.begin()->string();
}

std::string refuse_log_dir(const char *path) {
  std::error_code error;
  std::filesystem::path data_directory = std::filesystem::canonical(".", error);
  if (error) return "cannot resolve the data directory: " + error.message();
  // Keep "..": only the file system can resolve it after a symbolic link.
  std::filesystem::path given = std::filesystem::absolute(path, error);
  if (!given.has_filename()) given = given.parent_path();
  if (std::filesystem::is_symlink(given, error) && !std::filesystem::exists(given, error))
    return "frondb_log_dir is a link that leads nowhere: " + given.string();
  // The server lists a link to a folder too, so check the place of each link on the path like the place of the folder.
  std::filesystem::path folder = std::filesystem::weakly_canonical(given, error);
  std::vector<std::filesystem::path> places = {folder};
  std::filesystem::path begin;
  for (const std::filesystem::path &part : given) {
    begin /= part;
    if (std::filesystem::is_symlink(begin, error))
      places.push_back(std::filesystem::weakly_canonical(begin.parent_path(), error) / part);
  }
  for (const std::filesystem::path &one : places) {
    std::string first = first_below(data_directory, one);
    if (first == "..") continue;
    bool has_log = std::filesystem::exists(folder / "LOG", error);
    if ((first == DATABASE_DIR || first == EARLIER_DATABASE_DIR) && !has_log)
      return "frondb_log_dir is in the folder of the data, where the log is without it: leave it out";
    if (first.rfind("#sql", 0) == 0) continue;
    std::string why = "frondb_log_dir is in the data directory, where the server takes each folder for a database";
    if (!has_log) return why + ": choose a folder outside of it";
    sql_print_warning("FronDB: %s: stop the server, move the folder or link out of the data directory, and set frondb_log_dir to "
                      "its new place", why.c_str());
    return {};
  }
  return {};
}

}  // namespace fron
