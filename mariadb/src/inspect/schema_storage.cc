/* SPDX-License-Identifier: GPL-2.0-only

   See inspect/information_schema.h. Here: the tables about storage, FRONDB_TREES and FRONDB_FILES. */

#include "inspect/information_schema.h"

#include "inspect/schema_row.h"

#include <sql_i_s.h>

#include <map>

#include "dictionary/dictionary.h"
#include "dictionary/tree_names.h"
#include "engine/db.h"
#include "engine/kill.h"

namespace fron {
namespace {

using namespace Show;
// The server has another class named ULonglong.
using Number = Show::ULonglong;

constexpr uint NAME_CHARS = 64;

/** The engine's names of a tree's statistics, in the order of the columns. */
constexpr const char *TREE_STATISTICS[] = {"height",     "leaves",         "views",      "entries",          "deletes",
                                        "raw_bytes",  "base_raw_bytes", "disk_bytes", "memtable_entries", "memtable_bytes"};

ST_FIELD_INFO trees_fields[] = {Column("DATABASE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("TABLE_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("PARTITION_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("INDEX_NAME", Varchar(NAME_CHARS), NULLABLE),
                                Column("TREE", Number(), NOT_NULL),
                                Column("TREE_NAME", Varchar(NAME_CHARS), NOT_NULL),
                                Column("HEIGHT", Number(), NOT_NULL),
                                Column("LEAVES", Number(), NOT_NULL),
                                Column("VIEWS", Number(), NOT_NULL),
                                Column("ENTRIES", Number(), NOT_NULL),
                                Column("DELETES", Number(), NOT_NULL),
                                Column("RAW_BYTES", Number(), NOT_NULL),
                                Column("BASE_RAW_BYTES", Number(), NOT_NULL),
                                Column("DISK_BYTES", Number(), NOT_NULL),
                                Column("MEMTABLE_ENTRIES", Number(), NOT_NULL),
                                Column("MEMTABLE_BYTES", Number(), NOT_NULL),
                                CEnd()};

ST_FIELD_INFO files_fields[] = {Column("FILE", Varchar(512), NOT_NULL), Column("KIND", Varchar(8), NOT_NULL),
                                Column("BYTES", Number(), NOT_NULL),
                                Column("ALLOCATED_BYTES", Number(), NOT_NULL), CEnd()};

/** Maps the names of trees to the indexes of all tables. */
Error index_names(std::map<std::string, IndexName> *names) {
  return dictionary().each_table([names](const std::string &key, const TableRecord &record) -> Error {
    for (const IndexRecord &index : record.indexes)
      names->emplace(Dictionary::tree_name(record.number, index.number), IndexName(key, index.name));
    return {};
  });
}

/** Reads a tree's statistics; `found` is false if the tree was dropped meanwhile. */
Error tree_statistics(const std::string &name, uint64_t *id, Stats *stats, bool *found) {
  Tree tree;
  Error error = open_tree(name, &tree);
  if (!error) error = frondb_tree_id(tree.get(), id);
  if (!error) error = frondb_tree_stats(tree.get(), stats->out());
  *found = !error;
  if (error && error.kind() == FRONDB_NOT_FOUND) return {};
  return error;
}

Error store_tree(MYSQL_THD thd, TABLE *table, const std::string &tree, const IndexName *name, bool *failed) {
  uint64_t id;
  Stats stats;
  bool found;
  if (Error error = tree_statistics(tree, &id, &stats, &found)) return error;
  if (!found) return {};
  SchemaRow row(thd, table);
  if (name)
    row.text(name->database).text(name->table).text_or_null(name->partition, !name->partition.empty()).text(name->index);
  else
    row.null().null().null().null();
  row.number(id).text(tree);
  for (const char *statistic : TREE_STATISTICS) {
    uint64_t value;
    if (Error error = frondb_stats_find(stats.get(), statistic, &value)) return error;
    row.number(value);
  }
  *failed = row.store();
  return {};
}

int fill_trees(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  std::map<std::string, IndexName> names;
  if (Error error = index_names(&names)) return schema_error(error);
  List list;
  std::vector<frondb_slice> trees;
  if (Error error = list_trees(&list, &trees)) return schema_error(error);
  for (frondb_slice tree : trees) {
    if (is_killed(thd)) return 1;
    std::string key(view(tree));
    auto name = names.find(key);
    bool failed = false;
    if (Error error = store_tree(thd, tables->table, key, name == names.end() ? nullptr : &name->second, &failed))
      return schema_error(error);
    if (failed) return 1;
  }
  return 0;
}

const char *kind_name(frondb_file_kind kind) {
  switch (kind) {
    case FRONDB_FILE_DATA: return "DATA";
    case FRONDB_FILE_LOG: return "LOG";
    case FRONDB_FILE_MANIFEST: return "MANIFEST";
    default: return "MARK";
  }
}

int fill_files(MYSQL_THD thd, TABLE_LIST *tables, Item *) {
  if (!may_see(thd)) return 0;
  Files list;
  std::vector<frondb_file_info> files;
  if (Error error = frondb_db_files(db(), list.out())) return schema_error(error);
  if (Error error = list.read(&files)) return schema_error(error);
  for (const frondb_file_info &info : files) {
    SchemaRow row(thd, tables->table);
    row.text(info.path).text(kind_name(info.kind)).number(info.bytes).number(info.allocated_bytes);
    if (row.store()) return 1;
  }
  return 0;
}

}  // namespace

int init_trees_table(void *place) { return init_schema_table(place, trees_fields, guarded<fill_trees>); }
int init_files_table(void *place) { return init_schema_table(place, files_fields, guarded<fill_files>); }

}  // namespace fron
