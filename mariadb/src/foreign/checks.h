/* SPDX-License-Identifier: GPL-2.0-only

   Checks the foreign keys of one handler's table when it writes a row, and finds which child rows an action changes.

     child     after the write: the parent's key is locked in shared mode until the transaction ends, and must exist
     parent    before the write: the row's own key is locked, so that no child is added; then, if all foreign keys
               restrict, no child may exist. If any has an action, all are processed after the write, in order

   Both sides meet at the lock of the encoded parent key. So a range of keys is locked only if no parent was found, or
   to wait for a prepared transaction. Reads see the newest rows at every isolation level. A key that is not a whole
   unique key is locked too, although no entry has exactly these bytes. */

#ifndef FRONDB_FOREIGN_CHECKS_H
#define FRONDB_FOREIGN_CHECKS_H

#include <my_global.h>
#include <sql_class.h>

#include <string>
#include <vector>

#include "dictionary/foreign_keys.h"
#include "foreign/column_key.h"
#include "foreign/copied_parents.h"
#include "table/row_encoder.h"
#include "table/statement_use.h"

namespace fron {

/** A write by a statement or by an action, linked to the write that caused the action. */
struct Cause {
  const Cause *before;
  /** The table of the write. */
  const std::string *table;
  bool is_update;
  /** The foreign key whose action writes; null for the statement's own write. */
  const ForeignKey *by;

  size_t depth() const { return before ? before->depth() + 1 : 0; }
  bool updates(const std::string &other) const {
    return (is_update && *table == other) || (before && before->updates(other));
  }
};

/** One side of a foreign key in a handler's table, and the tree of the other table's index. */
struct ForeignSide {
  ForeignKeyPtr key;
  std::shared_ptr<ColumnKey> columns;
  /** The number of the handler's index; MAX_KEY if there is none. Without an index, rows of a child can be written, but
      rows of a parent cannot be changed or deleted. */
  uint index = MAX_KEY;
  Tree other;
  /** Finds parents that are only in the old table. Open for a new foreign key of a table to itself, while an ALTER
      copies the table. */
  CopiedParents copied;
};

/** Shared, so that a running check keeps its side even if the handler's lists are read again. */
using ForeignSidePtr = std::shared_ptr<const ForeignSide>;

/** The children of one row by one foreign key. */
struct Children {
  ForeignSidePtr side;
  Action action;
  /** The bytes with which the children's index entries begin: the encoded columns of the foreign key. */
  std::string prefix;
  /** The key images of the parent's row before the write, and after it; both are empty if the row is deleted. */
  std::vector<uchar> image_before, image;
  /** Whether the row is one of its own children. */
  bool has_itself = false;
  /** The position of the parent's index among the indexes. */
  uint rank = 0;
};

/** The checks that follow the write of a row. */
struct RowChecks {
  std::vector<Children> children;
  /** A foreign key in which the row is a child that may have another parent now. */
  struct Parent {
    ForeignSidePtr side;
    /** The position of the child's index among the indexes. */
    uint rank;
  };
  std::vector<Parent> parents;

  bool empty() const { return children.empty() && parents.empty(); }
  /** Calls one of the functions for each check until one fails: index by index, like InnoDB, and for each index the
      children before the parents. */
  template <typename OfChildren, typename OfParent>
  int each(OfChildren of_children, OfParent of_parent) const {
    size_t parent = 0;
    for (size_t i = 0; i <= children.size(); i++) {
      for (; parent < parents.size() && (i == children.size() || parents[parent].rank < children[i].rank); parent++)
        if (int error = of_parent(parents[parent])) return error;
      if (i == children.size()) break;
      if (int error = of_children(children[i])) return error;
    }
    return 0;
  }
};

class ForeignChecks {
 public:
  void open(RowEncoder *encoder, const StatementUse *use) {
    encoder_ = encoder;
    use_ = use;
    generation_ = 0;
  }
  void close() {
    own_.clear();
    referencing_.clear();
    generation_ = 0;
  }
  void begin_statement() { is_fenced_ = false; }

  /** Sets `is_due` to whether this statement checks writes of the table at all. Cheap if nothing has changed. */
  int prepare(THD *thd, bool *is_due);

  /** Called before a write: determines the checks to do after it. `before` is null for a new row, `after` for a
      deleted one. Fails if a child forbids the write. `by` is the foreign key whose action writes, which is not
      checked. */
  int plan(const uchar *before, const uchar *after, const ForeignKey *by, RowChecks *checks);
  /** Fails if there is a child. Called after the write, for a foreign key that restricts while others have actions. */
  int refuse_children(const Children &children);
  /** Checks again after the write if foreign keys have changed since `generation`: an ALTER may be adding one, and
      may have taken its snapshot before the write. */
  int recheck(THD *thd, const uchar *before, const uchar *after, uint64_t generation);
  /** Fails if the row has no parent. Called after the write. */
  int check_parent(const RowChecks::Parent &parent, const uchar *after) { return find_parent(*parent.side, after); }
  /** Called if the row has a duplicate in this index. Returns the error if a foreign key of this index, or of an
      earlier one, forbids the write: InnoDB processes one index after the other, and reports that error. */
  int check_before_duplicate(uint index, const RowChecks &checks, const uchar *after);

 private:
  int load(THD *thd);
  bool lacks_trees() const;
  int add_side(const ForeignKeyPtr &key, bool is_child, std::vector<ForeignSidePtr> *sides);
  int plan_children(const std::vector<ForeignSidePtr> &sides, const uchar *before, const uchar *after, RowChecks *checks);
  uint rank_of(uint index) const;
  int share_parent(const ForeignSide &side, const uchar *after);
  int find_parent(const ForeignSide &side, const uchar *after);
  bool is_own_child(const ForeignKeyPtr &key, const uchar *record, const std::string &prefix);
  bool is_own_parent(const ForeignSide &side, const uchar *record);
  int fail(const ForeignKeyPtr &key, int error) const;

  RowEncoder *encoder_ = nullptr;
  const StatementUse *use_ = nullptr;
  std::vector<ForeignSidePtr> own_, referencing_;
  /** The value of ForeignKeys::generation() for the lists above. */
  uint64_t generation_ = 0;
  bool is_fenced_ = false;
  /** Scratch memory. */
  std::string key_;
  std::vector<uchar> image_, other_image_;
  std::string other_key_;
};

}  // namespace fron

#endif
