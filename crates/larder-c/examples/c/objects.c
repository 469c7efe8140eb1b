/* Arenas, object caches and heaps: ranges of numbers, objects that stay constructed, memory of any size.
 *
 *   cc objects.c $(pkg-config --cflags --libs larder) && ./a.out
 */
#include <inttypes.h>
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

/* --- arenas: ports of a machine, and pages cut from a range of addresses ------------------------------------------- */

static bool show(const larder_segment *segment, void *user) {
  static const char *const kinds[] = {"?", "span", "imported span", "free", "allocated", "cached"};
  (void)user;
  printf("  %-9s %6" PRIu64 " from %" PRIu64 " on\n", kinds[segment->kind], segment->units, segment->addr);
  return true;
}

static void arenas(void) {
  larder_error error = {0};

  larder_arena_options options;
  larder_arena_options_init(&options);
  options.name = "ports";
  options.span_addr = 1024;
  options.span_units = 64512;
  options.fit = LARDER_FIT_NEXT; /* what was given back is not soon handed out again */
  larder_arena *ports = NULL;
  must(larder_arena_new(&options, &ports, &error), &error);

  uint64_t port = 0, pair = 0;
  must(larder_arena_alloc(ports, 1, &port, &error), &error);
  larder_arena_request request; /* an even one and the next, above 40000 */
  larder_arena_request_init(&request);
  request.units = 2;
  request.align = 2;
  request.min = 40000;
  must(larder_arena_xalloc(ports, &request, &pair, &error), &error);
  printf("port %" PRIu64 ", pair %" PRIu64 "\n", port, pair);
  must(larder_arena_walk(ports, show, NULL, &error), &error);

  if (larder_arena_destroy(ports, &error) == LARDER_BUSY) printf("busy: %s\n", error.message);
  must(larder_arena_dealloc(ports, pair, 2, &error), &error);
  if (larder_arena_dealloc(ports, port, 2, &error) == LARDER_SIZE) printf("size: %s\n", error.message);
  must(larder_arena_dealloc(ports, port, 1, &error), &error);
  must(larder_arena_destroy(ports, &error), &error);

  /* One arena over another: spans of 1 MiB are imported and go back. */
  larder_arena *machine = NULL, *pages = NULL;
  larder_arena_options_init(&options);
  options.name = "machine";
  options.quantum = 1 << 16;
  options.span_addr = UINT64_C(1) << 32;
  options.span_units = 1 << 24;
  must(larder_arena_new(&options, &machine, &error), &error);
  larder_arena_options_init(&options);
  options.name = "pages";
  options.quantum = 4096;
  options.quantum_max = 4 * 4096; /* 1 to 4 pages come from magazines, without a lock */
  options.import_units = 1 << 20;
  options.source = machine;
  must(larder_arena_new(&options, &pages, &error), &error);
  larder_arena_handle *mine = NULL;
  must(larder_arena_handle_new(pages, &mine, &error), &error);
  for (int i = 0; i < 1000; i++) {
    uint64_t page;
    must(larder_arena_handle_alloc(mine, 4096, &page, &error), &error);
    must(larder_arena_handle_dealloc(mine, page, 4096, &error), &error);
  }
  printf("imported %" PRIu64 " units\n", larder_arena_in_use(machine));
  larder_arena_handle_free(mine);
  must(larder_arena_trim(pages, NULL), &error);
  must(larder_arena_destroy(pages, &error), &error);
  must(larder_arena_destroy(machine, &error), &error);
}

/* --- object caches: a connection keeps its buffer while it is free ------------------------------------------------- */

struct connection {
  char *buffer;
  unsigned requests;
};

struct account {
  unsigned made, ended;
};

static bool connect_up(void *object, void *user) {
  struct connection *connection = object;
  connection->buffer = malloc(16 << 10);
  connection->requests = 0;
  if (connection->buffer == NULL) return false;
  ((struct account *)user)->made++; /* this example has one thread */
  return true;
}

static void hang_up(void *object, void *user) {
  free(((struct connection *)object)->buffer);
  ((struct account *)user)->ended++;
}

static void objects(larder_family *family) {
  larder_error error = {0};
  struct account account = {0, 0};
  larder_cache_options options;
  larder_cache_options_init(&options);
  options.name = "connection";
  options.construct = connect_up;
  options.destruct = hang_up;
  options.user = &account;
  larder_cache *cache = NULL;
  must(larder_cache_new(family, sizeof(struct connection), 0, &options, &cache, &error), &error);

  void *object = NULL;
  for (int i = 0; i < 1000; i++) {
    must(larder_cache_get(cache, &object, &error), &error);
    struct connection *connection = object;
    connection->buffer[0] = 'x';
    connection->requests++;
    must(larder_cache_put(cache, connection), &error);
  }
  printf("1000 connections, %u constructed\n", account.made);

  void *many[100];
  must(larder_cache_get_many(cache, many, 100, &error), &error);
  must(larder_cache_put_many(cache, many, 100, &error), &error);

  /* A stock of one's own: no lock, no atomic instruction. */
  larder_cache_handle *handle = NULL;
  must(larder_cache_handle_new(cache, &handle, &error), &error);
  for (int i = 0; i < 1000; i++) {
    must(larder_cache_handle_get(handle, &object, &error), &error);
    must(larder_cache_handle_put(handle, object), &error);
  }
  larder_cache_handle_free(handle);

  printf("put of garbage: %s\n", larder_strerror(larder_cache_put(cache, &account)));
  larder_cache_stats stats = {.size = sizeof stats};
  must(larder_cache_stats_read(cache, &stats, &error), &error);
  printf("cache %s: %" PRIu64 " bytes each, %" PRIu64 " in a slab\n", stats.name, stats.stride_bytes,
         stats.objects_per_slab);
  must(larder_cache_destroy(cache, &error), &error);
  printf("all ended: %s\n", account.made == account.ended ? "yes" : "no");
}

/* --- heaps: an interpreter's memory, gone in one step -------------------------------------------------------------- */

static void warn(const larder_heap_stats *stats, void *user) {
  printf("%s has taken more than 256 KiB: %s\n", (const char *)user, stats->charged_bytes > 256 << 10 ? "yes" : "no");
}

static void heaps(larder_family *family) {
  larder_error error = {0};
  larder_heap *heap = NULL;
  must(larder_heap_new_private(family, &heap, &error), &error);
  must(larder_heap_set_limit(heap, 1 << 20), &error);
  char name[] = "the script";
  must(larder_heap_set_warning(heap, 256 << 10, warn, name, &error), &error);

  void *text = NULL;
  must(larder_heap_realloc(heap, &text, 10, &error), &error);
  memcpy(text, "a text\n", 8);
  must(larder_heap_realloc(heap, &text, 1000, &error), &error);
  fputs(text, stdout);
  must(larder_heap_dealloc_sized(heap, text, 1000), &error);

  /* Never given back one by one: the heap's end is theirs. */
  larder_status status;
  unsigned n = 0;
  void *object;
  while ((status = larder_heap_alloc(heap, 1000, &object, &error)) == LARDER_OK) {
    memset(object, 1, 1000);
    n++;
  }
  printf("after %s: %s\n", n > 900 ? "more than 900 objects" : "too few objects", larder_strerror(status));
  must(larder_heap_free(heap), &error);

  /* Shared classes: what one heap allocated another may give back, or any thread through the classes. */
  larder_classes *classes = NULL;
  larder_heap *a = NULL, *b = NULL;
  must(larder_classes_new(family, &classes, &error), &error);
  must(larder_heap_new(classes, &a, &error), &error);
  must(larder_heap_new(classes, &b, &error), &error);
  must(larder_heap_alloc_zeroed(a, 100, &object, &error), &error);
  must(larder_heap_dealloc(b, object), &error);
  must(larder_classes_alloc_aligned(classes, 100, 4096, &object, &error), &error);
  must(larder_heap_dealloc_aligned(a, object, 100, 4096), &error);
  must(larder_heap_free(b), &error);
  must(larder_heap_free(a), &error);
  must(larder_classes_free(classes), &error);
}

int main(void) {
  larder_error error = {0};
  arenas();

  larder_pool_options pages;
  larder_pool_options_init(&pages);
  pages.limit_bytes = 64 << 20;
  pages.flags = LARDER_POOL_IGNORE_ENVIRONMENT;
  larder_family_options options;
  larder_family_options_init(&options);
  options.pages = &pages;
  larder_family *family = NULL;
  must(larder_family_new(&options, &family, &error), &error);
  objects(family);
  heaps(family);
  must(larder_family_trim(family, NULL), &error);
  must(larder_family_free(family), &error);
  puts("done");
  return 0;
}
