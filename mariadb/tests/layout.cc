/* SPDX-License-Identifier: GPL-2.0-only

   The headers of the server that the plugin includes, for their debug information (xtask/src/mariadb/layout.rs). */

#include <my_global.h>
#include <mysql/plugin.h>
#include <mysqld.h>
#include <sql_class.h>
#include <handler.h>
#include <backup.h>
#include <create_options.h>
#include <field.h>
#include <item.h>
#include <key.h>
#include <lock.h>
#include <mdl.h>
#include <my_check_opt.h>
#include <partition_info.h>
#include <set_var.h>
#include <sql_acl.h>
#include <sql_alter.h>
#include <sql_base.h>
#include <sql_i_s.h>
#include <sql_lex.h>
#include <sql_parse.h>
#include <sql_partition.h>
#include <sql_show.h>
#include <sql_table.h>
#include <table.h>
#include <thr_lock.h>
#include <unireg.h>
#include <xa.h>
