/* SPDX-License-Identifier: GPL-2.0-only

   Tables for tests of the codecs: fields of the server's own classes, over records in memory. No server runs: the
   fields are made as a server makes them from a definition, and their values are bytes as a server stores them. */

#ifndef FRONDB_TEST_COLUMNS_H
#define FRONDB_TEST_COLUMNS_H

#include <my_global.h>
#include <sql_class.h>
#include <field.h>
#include <table.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "random.h"

/** All collations of the server. */
const std::vector<CHARSET_INFO *> &all_collations();

/** A table of random columns, whose records hold one row each. */
class Columns {
 public:
  explicit Columns(Random &random);
  ~Columns();
  Columns(const Columns &) = delete;
  Columns &operator=(const Columns &) = delete;

  /** Makes a key of some columns, each at most once. */
  KEY *make_key(uint parts_max);
  /** Puts a random row into a record of the table. */
  void fill(uchar *record);

  TABLE *table() { return &table_; }
  uchar *record(uint i) { return table_.record[i]; }
  uint bytes() const { return share_.reclength; }
  /** The type of a field, for messages. */
  std::string describe(uint i) const;

 private:
  enum class Type {
    Tiny, Short, Medium, Long, Longlong, Float, Double, Decimal, Year, Date, Time, DateTime, Timestamp, Bit,
    Char, Varchar, Blob, Geometry, Enum, Set, Count
  };
  static bool is_blob(Type type) { return type == Type::Blob || type == Type::Geometry; }
  Field *make(Type type, uchar *at, uchar *null_byte, uchar null_bit);
  void fill_field(uint i, uchar *at, uchar *record);
  std::string text(CHARSET_INFO *cs, uint chars, bool is_char);
  std::string geometry();

  Random &random_;
  TABLE_SHARE share_{};
  TABLE table_{};
  std::vector<Type> types_;
  std::vector<Field *> fields_;
  std::vector<uchar> records_;
  std::vector<KEY_PART_INFO> parts_;
  KEY key_{};
  LEX_CSTRING name_ = {STRING_WITH_LEN("c")};
  MEM_ROOT root_;
  /** Memory that blobs of records point to. */
  std::deque<std::string> blobs_;
};

#endif
