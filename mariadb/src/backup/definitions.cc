/* SPDX-License-Identifier: GPL-2.0-only

   See backup/definitions.h. */

#include "backup/definitions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "dictionary/dictionary.h"
#include "engine/errors.h"

namespace fron {
namespace {

/** Reads a whole regular file. Returns 0 or an errno. */
int read_file(const std::string &path, std::string *bytes) {
  // Without O_NONBLOCK the call would wait for the other end of a named pipe.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  struct stat found;
  int error = fstat(file, &found) ? errno : S_ISREG(found.st_mode) ? 0 : EINVAL;
  if (error) {
    ::close(file);
    return error;
  }
  char piece[16 << 10];
  for (ssize_t read; (read = ::read(file, piece, sizeof piece)) != 0;) {
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) {
      error = errno;
      break;
    }
    bytes->append(piece, size_t(read));
  }
  ::close(file);
  return error;
}

/** Adds a file of the data directory, which is the server's working directory. Skips a missing file. */
Failure add(const std::string &path, std::vector<AttachedFile> *files) {
  AttachedFile file = {"definitions/" + path, {}};
  int error = read_file(path, &file.bytes);
  if (error == ENOENT) return {};
  if (error) return "cannot read " + path + ": " + strerror(error);
  files->push_back(std::move(file));
  return {};
}

}  // namespace

Failure read_definitions(std::vector<AttachedFile> *files) {
  std::vector<std::string> keys;
  if (Error error = dictionary().tables_of("", &keys)) return Sentence(error).text();
  std::set<std::string> paths;
  for (const std::string &key : keys) {
    std::string table = key.substr(0, key.find(PARTITION));
    // Skip tables with a name that the server has made up: temporary tables, and the tables that an ALTER makes as a
    // copy or has moved aside.
    if (table.find("/#sql") != std::string::npos) continue;
    paths.insert(table + ".frm");
    paths.insert(table + ".par");
    paths.insert(table.substr(0, table.find('/')) + "/db.opt");
  }
  for (const std::string &path : paths) {
    Failure failure = add(path, files);
    if (!failure.empty()) return failure;
  }
  return {};
}

}  // namespace fron
