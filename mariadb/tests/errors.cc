/* SPDX-License-Identifier: GPL-2.0-only

   Tests the server's message for every kind of the engine's errors, without a server: none comes out as a bare 1030, and
   each kind has a line in the plugin's table. The messages are printed by the server's own code, from the embedded
   server's library. */

#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <mysqld_error.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/errors.h"
#include "engine/error_numbers.h"

extern my_bool init_errmessage();
extern char lc_messages_dir[];

namespace {

constexpr const char *SENTENCE = "the pump is dry";

/** The error that was raised last. */
unsigned raised;
char raised_text[1024];

void keep(uint number, const char *text, myf) {
  raised = number;
  snprintf(raised_text, sizeof raised_text, "%s", text);
}

/** A handler that only has an error. */
class Failing : public handler {
 public:
  Failing(handlerton *ht, TABLE_SHARE *share) : handler(ht, share) {}
  bool get_error_message(int error, String *text) override {
    if (error == fron::HA_ERR_FRONDB) text->append(SENTENCE, strlen(SENTENCE));
    return false;
  }
  const char *table_type() const override { return "FronDB"; }
  int info(uint) override { return 0; }
  int rnd_init(bool) override { return 0; }
  int rnd_next(uchar *) override { return 0; }
  int rnd_pos(uchar *, uchar *) override { return 0; }
  void position(const uchar *) override {}
  int open(const char *, int, uint) override { return 0; }
  int close() override { return 0; }
  int create(const char *, TABLE *, HA_CREATE_INFO *) override { return 0; }
  ulonglong table_flags() const override { return 0; }
  ulong index_flags(uint, uint, bool) const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *, THR_LOCK_DATA **to, thr_lock_type) override { return to; }
};

/** A statement and its table, filled only as far as the printing of errors reads them; the rest is zeros. */
class Printer {
 public:
  Printer() {
    share_.db = {STRING_WITH_LEN("test")};
    share_.table_name = {STRING_WITH_LEN("t")};
    table_.s = &share_;
    table_.file = &handler_;
    table_.in_use = static_cast<THD *>(thd_);
    handler_.change_table_ptr(&table_, &share_);
  }
  ~Printer() { free(thd_); }

  void print(int number) { handler_.print_error(number, MYF(0)); }

 private:
  void *thd_ = calloc(1, sizeof(THD) * 2);
  TABLE_SHARE share_{};
  TABLE table_{};
  handlerton hton_{};
  Failing handler_{&hton_, &share_};
};

bool failed(frondb_kind kind, const char *what) {
  fprintf(stderr, "FRONDB kind %u (%s), number %d: %s; raised %u: %s\n", kind, frondb_kind_name(kind), fron::number_of(kind),
          what, raised, raised_text);
  return false;
}

/** Checks that the raised error says what happened: not only a number, and with the sentence if it is the engine's. */
bool is_said(frondb_kind kind, const char *by) {
  if (raised == 0) return failed(kind, (std::string("nothing is said by ") + by).c_str());
  if (raised == ER_GET_ERRNO || raised == ER_UNKNOWN_ERROR)
    return failed(kind, (std::string("a bare number is said by ") + by).c_str());
  return true;
}

bool check(Printer *printer, frondb_kind kind) {
  int number = fron::number_of(kind);
  if (number <= 0) return failed(kind, "no number");
  raised = 0;
  // The server itself reports a KILL to the killed statement.
  if (number != HA_ERR_ABORTED_BY_USER) {
    printer->print(number);
    if (!is_said(kind, "the server")) return false;
    if (number == fron::HA_ERR_FRONDB && !strstr(raised_text, SENTENCE)) return failed(kind, "without the sentence");
  }
  raised = 0;
  fron::raise_bare(number, "testing");
  if (!is_said(kind, "the plugin")) return false;
  if (raised == ER_GET_ERRMSG && !strstr(raised_text, SENTENCE)) return failed(kind, "without the sentence");
  return true;
}

}  // namespace

int main() {
  error_handler_hook = keep;
  // The folders of Debian's packages of MariaDB 11.8 and 10.11.
  const char *places[] = {"/usr/share/mariadb", "/usr/share/mysql"};
  strcpy(lc_messages_dir, access((std::string(places[0]) + "/english").c_str(), F_OK) == 0 ? places[0] : places[1]);
  my_default_lc_messages = &my_locale_en_US;
  if (init_errmessage()) return EXIT_FAILURE;
  auto printer = new Printer;
  // Errors without a text of the server use the thread's sentence.
  if (fron::ha_internal(SENTENCE) != fron::HA_ERR_FRONDB) return EXIT_FAILURE;
  frondb_kind kind = FRONDB_OK + 1;
  bool is_good = true;
  for (; strcmp(frondb_kind_name(kind), "?") != 0; kind++) is_good &= check(printer, kind);
  if (kind != std::size(fron::ERROR_NUMBERS)) is_good = failed(kind, "the table and the engine have different kinds");
  // Check that this test detects the number that must not appear.
  printer->print(fron::HA_ERR_FRONDB + 1);
  if (raised != ER_GET_ERRNO) is_good = failed(kind, "an unknown number is not seen");
  delete printer;
  printf("%u kinds\n", kind - 1);
  return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
