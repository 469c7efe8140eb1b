/* Identifiers: descriptors, process ids that rest, and handles that tell a reused slot from its former use.
 *
 *   cc ids.c $(pkg-config --cflags --libs larder) && ./a.out
 */
#include <inttypes.h>
#include <larder.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program when a call fails that must not. */
static void must(larder_status status, const larder_error *error) {
  if (status != LARDER_OK) {
    fprintf(stderr, "%s: %s\n", larder_strerror(status), error->message);
    exit(1);
  }
}

/* --- descriptors: the lowest free one, or one that is asked for ------------------------------------------------------ */

static void descriptors(void) {
  larder_error error = {0};
  larder_ids_options options;
  larder_ids_options_init(&options);
  options.last = 1023;
  options.rule = LARDER_RULE_LOWEST;
  larder_ids *fds = NULL;
  must(larder_ids_new(&options, &fds, &error), &error);

  uint64_t in = 0, out = 0, copy = 0;
  must(larder_ids_alloc(fds, &in, &error), &error);
  must(larder_ids_alloc(fds, &out, &error), &error);
  must(larder_ids_alloc_at(fds, 10, &copy, &error), &error); /* as dup2 does */
  printf("descriptors %" PRIu64 ", %" PRIu64 " and %" PRIu64 "\n", in, out, copy);
  if (larder_ids_alloc_at(fds, 10, &copy, &error) == LARDER_BUSY) printf("busy: %s\n", error.message);

  must(larder_ids_dealloc(fds, in, &error), &error);
  if (larder_ids_dealloc(fds, in, &error) == LARDER_FOREIGN) printf("foreign: %s\n", error.message);
  must(larder_ids_alloc(fds, &in, &error), &error);
  printf("again %" PRIu64 "\n", in);
  must(larder_ids_free(fds), &error); /* whatever is still open */
}

/* --- process ids: a number does not return before 100 others were handed out ----------------------------------------- */

static void processes(void) {
  larder_error error = {0};
  larder_ids_options options;
  larder_ids_options_init(&options);
  options.first = 300;
  options.last = 32767;
  options.rest_allocations = 100;
  larder_ids *pids = NULL;
  must(larder_ids_new(&options, &pids, &error), &error);

  uint64_t first = 0, pid = 0, others = 0;
  must(larder_ids_alloc(pids, &first, &error), &error);
  must(larder_ids_dealloc(pids, first, &error), &error);
  for (;;) {
    must(larder_ids_alloc(pids, &pid, &error), &error);
    if (pid == first) break;
    others++;
  }
  printf("pid %" PRIu64 " came back after %" PRIu64 " others\n", first, others);

  larder_ids_stats stats = {.size = sizeof stats};
  must(larder_ids_stats_read(pids, &stats, &error), &error);
  printf("%" PRIu64 " processes, %" PRIu64 " numbers left\n", stats.allocated_ids, stats.free_ids);
  if (larder_ids_destroy(pids, &error) == LARDER_BUSY) printf("busy: %s\n", error.message);
  must(larder_ids_free(pids), &error);
}

/* --- handles: the slot of a table below, and above it how often the slot was given back -------------------------------- */

static void handles(void) {
  static const char *table[1000];
  larder_error error = {0};
  larder_ids_options options;
  larder_ids_options_init(&options);
  options.last = 999;
  options.handle_bits = 32;
  larder_ids *slots = NULL;
  must(larder_ids_new(&options, &slots, &error), &error);

  uint64_t old = 0, now = 0, slot = 0;
  must(larder_ids_alloc(slots, &old, &error), &error);
  must(larder_ids_check(slots, old, &slot, &error), &error);
  table[slot] = "the former request";
  must(larder_ids_dealloc(slots, old, &error), &error);

  must(larder_ids_alloc_at(slots, slot, &now, &error), &error); /* the same slot */
  table[slot] = "the request of now";
  if (larder_ids_check(slots, old, &slot, &error) == LARDER_FOREIGN) printf("a late answer: %s\n", error.message);
  must(larder_ids_check(slots, now, &slot, &error), &error);
  printf("%s\n", table[slot]);
  must(larder_ids_dealloc(slots, now, &error), &error);
  must(larder_ids_destroy(slots, &error), &error);
}

int main(void) {
  descriptors();
  processes();
  handles();
  puts("done");
  return 0;
}
