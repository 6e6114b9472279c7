/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/lock_rows.h. */

#include "inspect/lock_rows.h"

#include "dictionary/dictionary.h"
#include "engine/db.h"

namespace fron {
namespace {

const char *area_name(frondb_lock_area area) {
  switch (area) {
    case FRONDB_AREA_ROW: return "ROW";
    case FRONDB_AREA_GAP: return "GAP";
    case FRONDB_AREA_SCANNED: return "SCANNED";
    default: return "RANGE";
  }
}

LockRow row_of(const frondb_lock_info &info, TreeNames *names) {
  LockRow row;
  row.transaction = info.transaction;
  row.tree = info.tree;
  row.index = names->find(info.tree);
  row.mode = info.mode == FRONDB_LOCK_EXCLUSIVE ? "EXCLUSIVE" : "SHARED";
  row.area = area_name(info.area);
  KeyReader unknown;
  const KeyReader &reader = row.index ? row.index->reader : unknown;
  row.has_lower = info.lo.len > 0;
  if (row.has_lower) row.lower = reader.text(view(info.lo));
  row.has_upper = info.hi.data != nullptr;
  if (row.has_upper) row.upper = reader.text(view(info.hi));
  row.blockers.assign(info.blockers, info.blockers + info.blockers_count);
  row.waited_seconds = double(info.waited_nanos) / 1e9;
  uint64_t table;
  if (!row.index && dictionary().is_counter_lock(info.tree, view(info.lo), &table)) {
    row.index = names->counter_of(table);
    row.has_lower = false;
    row.lower.clear();
  }
  return row;
}

Error rows_of(const Locks &locks, TreeNames *names, std::vector<LockRow> *rows) {
  std::vector<frondb_lock_info> infos;
  if (Error error = locks.read(&infos, LOCK_ROWS_MAX)) return error;
  rows->reserve(infos.size());
  for (const frondb_lock_info &info : infos) rows->push_back(row_of(info, names));
  return {};
}

}  // namespace

std::string LockRow::text() const {
  std::string where = index ? index->name.text() : "tree " + std::to_string(tree);
  std::string all = std::string(mode) + " " + area + " of " + where;
  if (std::string_view(area) == "ROW") return has_lower ? all + " (" + lower + ")" : all;
  return all + " from " + (has_lower ? "(" + lower + ")" : "the beginning") + " to " +
         (has_upper ? "before (" + upper + ")" : "the end");
}

Error held_locks(TreeNames *names, std::vector<LockRow> *rows) {
  Locks locks;
  if (Error error = frondb_db_locks(db(), LOCK_ROWS_MAX, locks.out())) return error;
  return rows_of(locks, names, rows);
}

Error lock_waits(TreeNames *names, std::vector<LockRow> *rows) {
  Locks waits;
  if (Error error = frondb_db_lock_waits(db(), waits.out())) return error;
  return rows_of(waits, names, rows);
}

Error last_deadlock(TreeNames *names, frondb_deadlock_info *info, std::vector<LockRow> *rows, bool *found) {
  Locks waits;
  if (Error error = frondb_db_last_deadlock(db(), info, waits.out(), found)) return error;
  return *found ? rows_of(waits, names, rows) : Error();
}

}  // namespace fron
