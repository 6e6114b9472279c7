/* SPDX-License-Identifier: GPL-2.0-only

   See handler/costs.h. */

#include "handler/costs.h"

#include <algorithm>

#include "handler/ha_frondb.h"

using namespace fron;

namespace {

double blocks(double rows, double bytes) { return std::max(1.0, rows * (bytes + ROW_OVERHEAD) / BLOCK_BYTES); }

}  // namespace

#if FRONDB_SERVER_11_8

/** The server adds the costs of the rows, and multiplies `io`, counted in IO_SIZE bytes, by the cost of a read. */
IO_AND_CPU_COST ha_frondb::scan_time() {
  double all = blocks(double(stats.records), double(row_bytes_));
  return {all * BLOCK_BYTES / IO_SIZE, all * INDEX_BLOCK_COPY_COST};
}

/** At most what a scan reads. */
ulonglong ha_frondb::row_blocks() { return ulonglong(scan_time().io); }

namespace {

/** Sets the milliseconds of each step. */
void update_costs(OPTIMIZER_COSTS *costs) {
  costs->row_next_find_cost = 0.00007013;
  costs->row_lookup_cost = 0.00076597;
  costs->key_next_find_cost = 0.00009900;
  costs->key_lookup_cost = 0.00079112;
  costs->row_copy_cost = 0.00006087;
}

}  // namespace

void fron::set_cost_hook(handlerton *ht) { ht->update_optimizer_costs = update_costs; }

#else

double ha_frondb::scan_time() { return blocks(double(stats.records), double(row_bytes_)); }

double ha_frondb::read_time(uint index, uint ranges, ha_rows rows) {
  // For a clustering key the server expects the costs of a primary key: rows are in its order.
  if (index >= table->s->keys || !is_clustering_key(index)) return handler::read_time(index, ranges, rows);
  if (rows <= 2) return double(rows);
  double all = scan_time();
  if (stats.records < rows) return all;
  // The cost of the searches, and the fraction of a scan that reads these rows.
  return double(ranges) + double(rows) / double(stats.records) * all;
}

void fron::set_cost_hook(handlerton *) {}

#endif
