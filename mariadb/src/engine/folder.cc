/* SPDX-License-Identifier: GPL-2.0-only

   See engine/folder.h. The server's working directory is its data directory. A crash leaves one of the two names, since
   rename() is atomic, and the next start goes on from either. */

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

namespace fron {
namespace {

/** A file or folder that is open; closed with it. */
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

/** Whether there is something of this name, also a link whose target is missing. */
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
  // A database that another process has open must not move under it.
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

std::string refuse_log_dir(const char *path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error);
  if (!error) folder = std::filesystem::weakly_canonical(folder, error);
  if (error) return "cannot resolve " + std::string(path) + ": " + error.message();
  std::filesystem::path data_directory = std::filesystem::canonical(".", error);
  if (error) return "cannot resolve the data directory: " + error.message();
  std::filesystem::path inside = folder.lexically_relative(data_directory);
  std::string first = inside.empty() ? ".." : inside.begin()->string();
  if (first == ".." || first.rfind("#sql", 0) == 0) return {};
  std::string why = "frondb_log_dir is in the data directory, where the server takes each folder for a database";
  if (!std::filesystem::exists(folder / "LOG", error)) return why + ": choose a folder outside of it";
  sql_print_warning("FronDB: %s: stop the server, move the folder out of the data directory, and set frondb_log_dir to its new place",
                    why.c_str());
  return {};
}

}  // namespace fron
