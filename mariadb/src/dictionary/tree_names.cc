/* SPDX-License-Identifier: GPL-2.0-only

   See dictionary/tree_names.h. */

#include "dictionary/tree_names.h"

#include <mutex>

#include "dictionary/dictionary.h"
#include "engine/db.h"

#include <sql_table.h>

namespace fron {
namespace {

/** The name that users see for the index of a table without a primary key. */
constexpr const char *HIDDEN_INDEX = "(hidden)";
/** Stands for the index name of a counter's lock. */
constexpr const char *COUNTER = "(AUTO_INCREMENT)";

/** Guards listed(). LOCK: innermost. TRUNCATE takes it while it holds Share::counting. */
std::mutex listing_lock;

TreeShapes &listed() {
  static TreeShapes shapes;
  return shapes;
}

/** Returns the name that the user gave, decoded from the server's file name. */
std::string name_of_file(const std::string &file) {
  char name[NAME_LEN + 1];
  uint length = filename_to_tablename(file.c_str(), name, sizeof name, true);
  return std::string(name, length);
}

}  // namespace

IndexName::IndexName(const std::string &key, const std::string &of) : index(of.empty() ? HIDDEN_INDEX : of) {
  size_t slash = key.rfind('/');
  std::string file = slash == std::string::npos ? key : key.substr(slash + 1);
  size_t mark = file.find(PARTITION);
  if (mark != std::string::npos) partition = name_of_file(file.substr(mark + strlen(PARTITION)));
  table = name_of_file(file.substr(0, mark));
  if (slash != std::string::npos) database = name_of_file(key.substr(0, slash));
}

std::string IndexName::text() const {
  return database + "." + table + (partition.empty() ? "" : "(" + partition + ")") + "." + index;
}

Listing::Listing(TreeShapes shapes) {
  for (const auto &[tree, shape] : shapes) trees_.push_back(tree);
  std::lock_guard<std::mutex> guard(listing_lock);
  for (auto &[tree, shape] : shapes) listed()[tree] = std::move(shape);
}

Listing::~Listing() {
  std::lock_guard<std::mutex> guard(listing_lock);
  for (uint64_t tree : trees_) listed().erase(tree);
}

TreeNames::TreeNames() {
  std::lock_guard<std::mutex> guard(listing_lock);
  shapes_ = listed();
}

std::shared_ptr<const IndexShape> TreeNames::find(uint64_t tree) {
  auto found = shapes_.find(tree);
  if (found == shapes_.end() && !has_read_) {
    has_read_ = true;
    // If the dictionary cannot be read, the status page does not name the trees.
    if (Error error = read_dictionary()) return nullptr;
    found = shapes_.find(tree);
  }
  return found == shapes_.end() ? nullptr : found->second;
}

std::shared_ptr<const IndexShape> TreeNames::counter_of(uint64_t table) {
  std::shared_ptr<const IndexShape> found;
  // If the dictionary cannot be read, the status page does not name the counter.
  Error ignored = dictionary().each_table([&](const std::string &key, const TableRecord &record) -> Error {
    if (record.number == table) found = std::make_shared<IndexShape>(IndexShape{IndexName(key, COUNTER), KeyReader()});
    return {};
  });
  return found;
}

Error TreeNames::read_dictionary() {
  return dictionary().each_table([this](const std::string &key, const TableRecord &record) -> Error {
    for (const IndexRecord &index : record.indexes) {
      Tree tree;
      uint64_t number;
      // Skip a tree that was dropped meanwhile.
      if (Error error = open_tree(Dictionary::tree_name(record.number, index.number), &tree)) continue;
      if (Error error = frondb_tree_id(tree.get(), &number)) continue;
      shapes_.emplace(number, std::make_shared<IndexShape>(IndexShape{IndexName(key, index.name), KeyReader()}));
    }
    return {};
  });
}

}  // namespace fron
