/* SPDX-License-Identifier: GPL-2.0-only

   See plugin/abi.h. Three kinds of evidence, used when the plugin starts:

     the table of virtual functions of the server's `handler`, entry by entry: with one more or less, every call of a
         later entry would reach another function;
     objects filled by our headers and read by the server's functions, and the reverse;
     the comparison of all classes with the server's debug information, after the build (xtask/src/mariadb/layout.rs).
         Without it, the headers must be of the server's own version.

   Functions of the server that the plugin calls need no check here: the loader resolves all of them before the plugin
   runs, by names that include the types of their arguments. */

#include "plugin/abi.h"

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <mysqld.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/server.h"
#include "foreign/server_lists.h"

#if __has_include("frondb_layouts.h")
#include "frondb_layouts.h"
#endif
/** The version of the server whose debug information agrees with the headers; empty if there was no comparison. */
#ifndef FRONDB_LAYOUTS_COMPARED_WITH
#define FRONDB_LAYOUTS_COMPARED_WITH ""
#endif
/** The version of the source from which handler.h comes. */
#ifndef FRONDB_HEADERS_VERSION
#define FRONDB_HEADERS_VERSION "an unknown version"
#endif

// Functions of the server that no header declares.
extern "C" bool thd_is_strict_mode(const MYSQL_THD thd);
extern "C" enum durability_properties thd_get_durability_property(const MYSQL_THD thd);
extern "C" void *thd_mdl_context(MYSQL_THD thd);

namespace fron {

/** A handler that is never created: it overrides only the mandatory functions, so that its table of virtual functions
    has the server's own functions everywhere else. */
class AbiProbe final : public handler {
 public:
  AbiProbe(handlerton *ht, TABLE_SHARE *share) : handler(ht, share) {}
  int close() override;
  int rnd_next(uchar *) override { return 0; }
  int rnd_pos(uchar *, uchar *) override { return 0; }
  void position(const uchar *) override {}
  int info(uint) override { return 0; }
  ulong index_flags(uint, uint, bool) const override { return 0; }
  int open(const char *, int, uint) override { return 0; }
  int rnd_init(bool) override { return 0; }
  Table_flags table_flags() const override { return 0; }
  int create(const char *, TABLE *, HA_CREATE_INFO *) override { return 0; }
};

/** This function is not inline, so that the compiler puts the class's table of virtual functions here. */
int AbiProbe::close() { return 0; }

}  // namespace fron

/** The table of AbiProbe, by the name that the compiler gives it. Exported, so that dladdr1() finds its size. */
extern "C" const void *const probe_table[] __asm__("_ZTVN4fron8AbiProbeE");

namespace fron {
namespace {

// Read through pointers that the compiler cannot see through, so that the texts stand in the file as a whole: a test
// changes them there.
const char *const volatile HEADERS_VERSION = FRONDB_HEADERS_VERSION;
const char *const volatile COMPARED_WITH = FRONDB_LAYOUTS_COMPARED_WITH;

/** Entries of a table before the first function: the offset to the top, and the type. */
constexpr size_t TABLE_HEAD = 2;

/** Returns the number of entries of the table at `address`, whose symbol is `name`; 0 if it is unknown. */
size_t entries_of(const void *address, const char *name) {
  Dl_info info;
  ElfW(Sym) *symbol = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT)) return 0;
  if (!symbol || !info.dli_sname || strcmp(info.dli_sname, name) != 0) return 0;
  return symbol->st_size / sizeof(void *);
}

/** Returns the name of a function as in C++. */
std::string name_of(const void *function) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_sname) return "a function without a name";
  struct Free {
    void operator()(char *text) const { free(text); }
  };
  int status = 0;
  std::unique_ptr<char, Free> name{abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status)};
  return status == 0 && name ? name.get() : info.dli_sname;
}

/** Returns whether both addresses are in the same file. */
bool is_beside(const void *a, const void *b) {
  Dl_info first, second;
  return dladdr(a, &first) && dladdr(b, &second) && first.dli_fbase == second.dli_fbase;
}

/** Compares the entries that AbiProbe inherits with the server's. Entries in our own file are overridden, or copies of
    inline functions. Reports only the first difference, which moves all later entries. */
std::string table_difference() {
  auto theirs = static_cast<const void *const *>(dlsym(RTLD_DEFAULT, "_ZTV7handler"));
  if (!theirs) return "the server does not export its class `handler`";
  size_t found = entries_of(theirs, "_ZTV7handler"), expected = entries_of(probe_table, "_ZTVN4fron8AbiProbeE");
  for (size_t entry = TABLE_HEAD; entry < found && entry < expected; ++entry) {
    if (probe_table[entry] == theirs[entry] || is_beside(probe_table[entry], probe_table)) continue;
    return "virtual function " + std::to_string(entry - TABLE_HEAD) + " of the class `handler` is " +
           name_of(theirs[entry]) + " in the server and " + name_of(probe_table[entry]) + " in the headers";
  }
  if (found == expected) return "";
  return "the class `handler` has " + std::to_string(found) + " entries in the server and " + std::to_string(expected) +
         " in the headers";
}

/** Memory for an object of the server, filled with zeros. The object may be larger in the server than in the
    headers. Its destructor never runs. */
template <typename T>
class Blank {
 public:
  Blank() : memory_(2 * sizeof(T) / sizeof(std::max_align_t) + 64) {}
  T *get() { return reinterpret_cast<T *>(memory_.data()); }
  T *operator->() { return get(); }

 private:
  std::vector<std::max_align_t> memory_;
};

/** Values that appear nowhere else in an object filled with zeros. */
constexpr ulong MARK = 0x5AA5;

/** Fills a connection through the headers and reads it through the server's functions. */
std::string connection_differences() {
  Blank<THD> blank;
  Blank<LEX> statement;
  THD *thd = blank.get();
  handlerton engine = {};
  int data;
  thd->lex = statement.get();
  thd->thread_id = MARK;
  thd->query_id = MARK + 1;
  thd->lex->sql_command = SQLCOM_LOAD;
  thd->variables.option_bits = OPTION_NOT_AUTOCOMMIT;
  thd->variables.sql_mode = MODE_STRICT_ALL_TABLES;
  thd->variables.auto_increment_offset = MARK + 2;
  thd->tx_isolation = ISO_SERIALIZABLE;
  thd->tx_read_only = true;
  thd->in_lock_tables = true;
  thd->killed = KILL_CONNECTION_HARD;
  thd->ha_data[engine.slot].ha_ptr = &data;
  thd->durability_property = HA_IGNORE_DURABILITY;
  ulong offset = 0, increment = 0;
  thd_get_autoinc(thd, &offset, &increment);
  const struct {
    const char *member;
    bool agrees;
  } members[] = {
      {"lex and LEX::sql_command", thd_sql_command(thd) == SQLCOM_LOAD},
      {"thread_id", thd_get_thread_id(thd) == MARK},
      {"query_id", thd_query_id(thd) == MARK + 1},
      {"variables.option_bits", thd_test_options(thd, OPTION_NOT_AUTOCOMMIT) == OPTION_NOT_AUTOCOMMIT},
      {"variables.sql_mode", thd_is_strict_mode(thd)},
      {"variables.auto_increment_offset", offset == MARK + 2},
      {"tx_isolation", thd_tx_isolation(thd) == ISO_SERIALIZABLE},
      {"tx_read_only", thd_tx_is_read_only(thd) == 1},
      {"in_lock_tables", thd_in_lock_tables(thd) == 1},
      {"killed", thd_kill_level(thd) == THD_ABORT_ASAP},
      {"ha_data", thd_get_ha_data(thd, &engine) == &data},
      {"durability_property", thd_get_durability_property(thd) == HA_IGNORE_DURABILITY},
      {"db", thd_current_db(thd) == &thd->db},
      {"mdl_context", thd_mdl_context(thd) == &thd->mdl_context},
  };
  std::string list;
  for (const auto &member : members)
    if (!member.agrees) list += (list.empty() ? "" : ", ") + std::string(member.member);
  return list.empty() ? "" : "the class THD has other places in the server for " + list;
}

/** Lets the server create the description of a table change. The server's function reads the current connection;
    without a connection nothing is checked. */
std::string change_difference() {
  if (!current_thd) return "";
  Blank<Alter_inplace_info> blank;
  Blank<HA_CREATE_INFO> create;
  Blank<Alter_info> change;
  Blank<KEY> key;
  auto made = new (blank.get()) Alter_inplace_info(create.get(), change.get(), key.get(), MARK, nullptr, true, false);
  bool agrees = made->create_info == create.get() && made->alter_info == change.get() &&
                made->key_info_buffer == key.get() && made->key_count == MARK && made->ignore && !made->online;
  return agrees ? "" : "the class Alter_inplace_info has other places in the server for its members";
}

/** Returns "10.11.19" for "10.11.19-MariaDB-log". If the option `version` has replaced that text, by any other, returns
    the version in mysql_version.h: the server loads no plugin that was built for another version. */
std::string running_version() {
  std::string version = has_custom_version() ? MYSQL_SERVER_VERSION : server_version;
  return version.substr(0, version.find_first_not_of("0123456789."));
}

}  // namespace

std::string seen_differences() {
  std::string list;
  auto add = [&list](const std::string &sentence) {
    if (!sentence.empty()) list += (list.empty() ? "" : "; ") + sentence;
  };
  add(table_difference());
  add(connection_differences());
  add(change_difference());
  if (!can_see_foreign_keys()) add("a statement's list of keys is at another place in the server's memory");
  return list;
}

std::string abi_difference() {
  const std::string running = running_version(), headers = HEADERS_VERSION, compared = COMPARED_WITH;
  const std::string versions = "the headers are of MariaDB " + headers + ", and the server is " + server_version + ": ";
  std::string seen = seen_differences();
  if (!seen.empty()) return versions + seen;
  if (headers == running || running == compared) return "";
  return versions + "their classes were not compared: build the plugin on a machine with libmariadbd-dev of this server's "
                    "version (make plugin), or with the source of this version";
}

}  // namespace fron
