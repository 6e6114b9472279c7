/* SPDX-License-Identifier: GPL-2.0-only

   See ddl/lost_tables.h. The bytes of a definition are the server's (TABLE_SHARE::init_from_binary_frm_image()). */

#include "ddl/lost_tables.h"

#include <my_global.h>
#include <mysqld_error.h>
#include <sql_class.h>
#include <table.h>
#include <unireg.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

#include "dictionary/dictionary.h"
#include "dictionary/tree_names.h"
#include "engine/errors.h"

namespace fron {
namespace {

constexpr char ENGINE[] = "FronDB";
constexpr char DEFINITION[] = ".frm";
/** Maximum number of tables named in the warning. */
constexpr size_t NAMED_MAX = 10;

/** The cause and the remedy: in the log for many tables, in a statement for one table. */
constexpr char WHY[] = "mariadb-backup does not copy FronDB's files";
constexpr char WHAT_TO_DO[] =
    "stop the server and restore the folder #sql-frondb from a backup of the same moment (frondb restore), or use DROP TABLE";

/** An open file. The destructor closes it. */
class File {
 public:
  explicit File(const char *path) : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (file_ >= 0) ::close(file_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  /** Reads bytes at an offset: fewer than wanted at the end of the file, none after an error. */
  size_t read(uchar *to, size_t wanted, off_t offset) const {
    ssize_t done = file_ < 0 ? -1 : pread(file_, to, wanted, offset);
    return done < 0 ? 0 : size_t(done);
  }

 private:
  int file_;
};

/** An open folder. The destructor closes it. */
class Folder {
 public:
  explicit Folder(const char *path) : folder_(opendir(path)) {}
  ~Folder() {
    if (folder_) closedir(folder_);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  /** Returns the next name; null at the end, or if the folder cannot be read. */
  const char *next() {
    const dirent *entry = folder_ ? readdir(folder_) : nullptr;
    return entry ? entry->d_name : nullptr;
  }

 private:
  DIR *folder_;
};

bool is_ours(const uchar *name, size_t length) {
  return length == strlen(ENGINE) && !strncasecmp(reinterpret_cast<const char *>(name), ENGINE, length);
}

/** Returns whether the definition file of a table without partitions names this engine. The engine's name follows
    the default record and the connection string. */
bool names_us(const File &file, const uchar *head) {
  uint key_bytes = uint2korr(head + 14) == 0xFFFF ? uint4korr(head + 47) : uint2korr(head + 14);
  off_t at = off_t(uint2korr(head + 6)) + key_bytes + uint2korr(head + 16);
  uchar bytes[2 + sizeof ENGINE];
  if (file.read(bytes, 2, at) < 2) return false;
  at += 2 + uint2korr(bytes);
  size_t read = file.read(bytes, sizeof bytes, at);
  return read >= 2 && read - 2 >= uint2korr(bytes) && is_ours(bytes + 2, uint2korr(bytes));
}

/** Returns whether the definition file of a partitioned table names this engine. The engine of the partitions is one
    of the entries after the header: type, length, value. */
bool partitions_name_us(const uchar *bytes, size_t read) {
  size_t end = std::min<size_t>(read, FRM_HEADER_SIZE + uint2korr(bytes + 4));
  for (size_t at = FRM_HEADER_SIZE; at + 2 <= end;) {
    uchar type = bytes[at++];
    size_t length = bytes[at++];
    if (length == 0) {
      if (at + 2 > end) return false;
      length = uint2korr(bytes + at);
      at += 2;
    }
    if (at + length > end) return false;
    if (type == EXTRA2_DEFAULT_PART_ENGINE) return is_ours(bytes + at, length);
    at += length;
  }
  return false;
}

std::string quoted(const std::string &name) {
  std::string text = "`";
  for (char letter : name) text.append(letter == '`' ? 2 : 1, letter);
  return text + "`";
}

/** Names of tables, "db/table", as they are in files. */
using Names = std::set<std::string>;

/** Lists the tables in the dictionary, without their partitions. */
Error known_tables(Names *names) {
  std::vector<std::string> keys;
  if (Error error = dictionary().tables_of("", &keys)) return error;
  for (const std::string &key : keys) names->insert(key.substr(0, key.find(PARTITION)));
  return {};
}

class Search {
 public:
  void begin() {
    if (thread_.joinable()) return;
    began_ = time(nullptr);
    stops_ = false;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::exception &) {
      sql_print_warning("FronDB: cannot search for tables without data: cannot create a thread");
    }
  }
  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    my_thread_init();
    pthread_setname_np(pthread_self(), "frondb-lost");
    try {
      search();
    } catch (const std::bad_alloc &) {
      sql_print_warning("FronDB: cannot search for tables without data: out of memory");
    }
    my_thread_end();
  }

  void search() {
    Names known, lost;
    Error error = known_tables(&known);
    Folder databases(".");
    while (const char *name = error ? nullptr : databases.next())
      if (*name != '.' && *name != '#') search_database(name, known, &lost);
    if (lost.empty() || stops_) {
      if (error) sql_print_warning("FronDB: cannot search for tables without data: %s", error.message());
      return;
    }
    // A statement may have created or dropped a table between the two searches.
    Names now;
    if ((error = known_tables(&now))) return;
    for (auto at = lost.begin(); at != lost.end();)
      at = now.count(*at) || !is_definition_of_ours((*at + DEFINITION).c_str()) ? lost.erase(at) : std::next(at);
    if (!lost.empty()) warn(lost);
  }

  void search_database(const std::string &database, const Names &known, Names *lost) {
    Folder tables(database.c_str());
    while (const char *file = stops_ ? nullptr : tables.next()) {
      size_t length = strlen(file), end = strlen(DEFINITION);
      if (length <= end || strcmp(file + length - end, DEFINITION) != 0 || *file == '#') continue;
      std::string name = database + "/" + std::string(file, length - end);
      std::string path = name + DEFINITION;
      if (known.count(name) || !is_definition_of_ours(path.c_str()) || is_new(path.c_str())) continue;
      lost->insert(name);
    }
  }

  /** Returns whether a statement has written the definition since the search began. Uses the inode's change time,
      which a restore of the file cannot set back. */
  bool is_new(const char *path) const {
    struct stat found;
    return stat(path, &found) != 0 || found.st_ctime > began_;
  }

  static void warn(const Names &lost) {
    std::string names;
    size_t named = 0;
    for (const std::string &name : lost) {
      if (named == NAMED_MAX) {
        names += " and " + std::to_string(lost.size() - named) + " more";
        break;
      }
      names += (named++ ? ", " : "") + sql_name(name);
    }
    sql_print_warning("FronDB: tables with a definition but without data: %s; %s: %s", names.c_str(), WHY, WHAT_TO_DO);
  }

  std::thread thread_;
  std::atomic<bool> stops_{false};
  time_t began_ = 0;
};

Search lost_tables;

}  // namespace

bool is_definition_of_ours(const char *path) {
  File file(path);
  // Space for the entries after the header: the definition's version and the engine of partitions.
  uchar bytes[512];
  size_t read = file.read(bytes, sizeof bytes, 0);
  if (read < FRM_HEADER_SIZE || bytes[0] != 0xFE || bytes[1] != 1) return false;
  auto type = legacy_db_type(bytes[3]);
  if (type == DB_TYPE_PARTITION_DB) return partitions_name_us(bytes, read);
  // The number does not identify an engine that is a plugin, so compare its name.
  return (type == DB_TYPE_UNKNOWN || type >= DB_TYPE_FIRST_DYNAMIC) && names_us(file, bytes);
}

std::string sql_name(const std::string &key) {
  IndexName name(key, "");
  std::string text = quoted(name.database) + "." + quoted(name.table);
  return name.partition.empty() ? text : text + " partition " + quoted(name.partition);
}

void search_for_lost_tables() { lost_tables.begin(); }
void stop_search_for_lost_tables() { lost_tables.stop(); }

void explain_lost_table(const std::string &name) {
  THD *thd = _current_thd();
  if (!thd) return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NO_SUCH_TABLE_IN_ENGINE,
                      "FronDB has no data of %s; %s: %s", sql_name(name).c_str(), WHY, WHAT_TO_DO);
}

}  // namespace fron
