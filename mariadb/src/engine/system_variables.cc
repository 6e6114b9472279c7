/* SPDX-License-Identifier: GPL-2.0-only

   See engine/system_variables.h. */

#include "engine/system_variables.h"

#include <my_global.h>
#include <mysql/plugin.h>
#include <mysql/service_thd_alloc.h>

#include <cstring>

namespace fron {
namespace {

constexpr size_t BUFFER_BYTES = 512;

/** Reads a text; null for NULL. Returns false if it has a NUL byte. */
bool read_text(struct st_mysql_value *value, char *buffer, const char **text, int *length) {
  *length = BUFFER_BYTES;
  *text = value->val_str(value, buffer, length);
  return !*text || !memchr(*text, 0, size_t(*length));
}

}  // namespace

int check_text(THD *thd, struct st_mysql_sys_var *, void *save, struct st_mysql_value *value) {
  char buffer[BUFFER_BYTES];
  const char *text;
  int length;
  if (!read_text(value, buffer, &text, &length)) return 1;
  if (text && !(text = thd_strmake(thd, text, size_t(length)))) return 1;
  *static_cast<const char **>(save) = text;
  return 0;
}

int check_name(const st_typelib &names, void *save, struct st_mysql_value *value) {
  long long number;
  if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING) {
    char buffer[BUFFER_BYTES];
    const char *text;
    int length;
    if (!read_text(value, buffer, &text, &length) || !text) return 1;
    number = find_type(text, &names, 0) - 1;
  } else if (value->val_int(value, &number)) {
    return 1;
  }
  if (number < 0 || number >= (long long)(names.count)) return 1;
  *static_cast<long *>(save) = long(number);
  return 0;
}

}  // namespace fron
