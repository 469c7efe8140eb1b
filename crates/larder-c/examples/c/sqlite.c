/* SQLite's page cache: a rule, one budget for all connections, and memory that goes back.
 *
 *   cc sqlite.c $(pkg-config --cflags --libs larder) -lsqlite3 && ./a.out
 */
#include <inttypes.h>
#include <larder.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int code, sqlite3 *db) {
  if (code != SQLITE_OK) {
    fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    exit(1);
  }
}

static larder_sqlite_stats numbers(void) {
  larder_sqlite_stats stats = {.size = sizeof stats};
  larder_sqlite_stats_read(&stats, NULL);
  return stats;
}

int main(void) {
  larder_error error = {0};
  larder_sqlite_options options;
  larder_sqlite_options_init(&options);
  options.policy = "s3-fifo";
  options.limit_bytes = 1 << 20; /* of the pages of all connections */

  /* First of all: SQLite takes a page cache only before it begins. */
  if (larder_sqlite_install(sqlite3_config, &options, &error) != LARDER_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }

  sqlite3 *db = NULL; /* a temporary file */
  must(sqlite3_open("", &db), db);
  must(sqlite3_exec(db,
                    "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT);"
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
                    "  INSERT INTO t SELECT i, 'row ' || i FROM n;",
                    NULL, NULL, NULL),
       db);
  sqlite3_stmt *count = NULL;
  must(sqlite3_prepare_v2(db, "SELECT count(s) FROM t", -1, &count, NULL), db);
  if (sqlite3_step(count) == SQLITE_ROW) printf("%d rows, all of them there\n", sqlite3_column_int(count, 0));
  must(sqlite3_finalize(count), db);

  larder_sqlite_stats stats = numbers();
  printf("%" PRIu64 " hits, %" PRIu64 " misses\n", stats.hits, stats.misses);
  printf("within %" PRIu64 " bytes: %s, pages left: %s\n", stats.limit_bytes,
         stats.bytes <= stats.limit_bytes ? "yes" : "no", stats.evictions > 0 ? "yes" : "no");
  if (larder_sqlite_install(sqlite3_config, NULL, &error) == LARDER_BUSY) printf("again: %s\n", error.message);

  must(sqlite3_close(db), db);
  larder_sqlite_trim();
  printf("all given back: %s\n", numbers().held_bytes == 0 ? "yes" : "no");
  sqlite3_shutdown();
  puts("done");
  return 0;
}
