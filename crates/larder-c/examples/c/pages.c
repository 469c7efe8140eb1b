/* Pages from a pool: one by one, many at once, contiguous, by a handle; limits, errors, statistics.
 *
 *   cc pages.c $(pkg-config --cflags --libs larder) && ./a.out
 */
#include <larder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program when a call fails that must not. */
static void must(larder_status status, const larder_error *error) {
  if (status != LARDER_OK) {
    fprintf(stderr, "%s: %s\n", larder_strerror(status), error->message);
    exit(1);
  }
}

int main(void) {
  larder_error error = {0};

  larder_pool_options options;
  larder_pool_options_init(&options);
  options.cluster_pages = 64;
  options.limit_bytes = 16 << 20;
  options.flags = LARDER_POOL_IGNORE_ENVIRONMENT;
  larder_pool *pool = NULL;
  must(larder_pool_new(&options, &pool, &error), &error);
  size_t page_size = larder_pool_page_size(pool);

  /* One page, whatever a former owner left in it. */
  void *page = NULL;
  must(larder_pool_get(pool, &page, &error), &error);
  memset(page, 0x5a, page_size);
  must(larder_pool_put(pool, page), &error);

  /* A page of zeroes, although the last one was full of something else. */
  must(larder_pool_get_zeroed(pool, &page, &error), &error);
  for (size_t i = 0; i < page_size; i++) {
    if (((unsigned char *)page)[i] != 0) {
      fprintf(stderr, "byte %zu is not zero\n", i);
      return 1;
    }
  }
  must(larder_pool_put(pool, page), &error);

  /* Many: all of them or none. */
  void *pages[100];
  must(larder_pool_get_many(pool, pages, 100, &error), &error);
  for (int i = 0; i < 100; i++) memset(pages[i], i, page_size);
  must(larder_pool_put_many(pool, pages, 100, &error), &error);

  /* Neighbours. */
  larder_run *run = NULL;
  must(larder_pool_get_run(pool, 5, true, &run, &error), &error);
  memset(larder_run_data(run), 1, larder_run_bytes(run));
  printf("a run of %zu pages\n", larder_run_bytes(run) / page_size);
  larder_run_free(run);

  /* A stock of one's own: no lock, no atomic instruction. */
  larder_page_handle *handle = NULL;
  must(larder_page_handle_new(pool, &handle, &error), &error);
  for (int i = 0; i < 1000; i++) {
    must(larder_page_handle_get(handle, &page, &error), &error);
    *(int *)page = i;
    must(larder_page_handle_put(handle, page), &error);
  }
  larder_page_handle_free(handle);

  /* What fails says why. */
  larder_status status = larder_pool_get_run(pool, 5000, false, &run, &error);
  printf("too much: %s\n", status == LARDER_OK ? "granted?" : larder_strerror(status));
  printf("put of garbage: %s\n", larder_strerror(larder_pool_put(pool, &error)));

  larder_pool_stats stats = {.size = sizeof stats};
  must(larder_pool_stats_read(pool, &stats, &error), &error);
  printf("limit %llu bytes\n", (unsigned long long)stats.limit_bytes);
  size_t needed = 0;
  larder_pool_stats_json(pool, NULL, 0, &needed, NULL);
  char *json = malloc(needed);
  if (json == NULL) return 1;
  must(larder_pool_stats_json(pool, json, needed, NULL, &error), &error);
  printf("%s\n", json);
  free(json);

  size_t given = 0;
  must(larder_pool_trim(pool, &given), &error);
  must(larder_pool_free(pool), &error);
  puts("done");
  return 0;
}
