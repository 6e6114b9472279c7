/* SPDX-License-Identifier: GPL-2.0-only

   Keys that writers of a parent record while a foreign key is being added: keys that the parent had and may no longer
   have. Any thread may call the functions. */

#ifndef FRONDB_FOREIGN_WATCH_H
#define FRONDB_FOREIGN_WATCH_H

#include <map>
#include <mutex>
#include <string>

namespace fron {

class ForeignKeyWatch {
 public:
  /** Records that a row with this key is deleted or gets another key; `child` is the key as encoded by the children's
      index. */
  void note(const std::string &parent, const std::string &child) {
    std::lock_guard<std::mutex> guard(mutex_);
    gone_.emplace(parent, child);
  }
  std::map<std::string, std::string> noted() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return gone_;
  }

 private:
  /** Guards `gone_`. LOCK: innermost. */
  mutable std::mutex mutex_;
  std::map<std::string, std::string> gone_;
};

}  // namespace fron

#endif
