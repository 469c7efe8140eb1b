/* A library that lifetime.c loads and unloads; it allocates whenever it can. */
#include "check.h"

static void *mine;
static _Thread_local int count;
static _Thread_local char big[9000];

__attribute__((constructor)) static void begin(void) { mine = calloc(100, 10); }
__attribute__((destructor)) static void end(void) { free(mine); }

static void *make(size_t n) {
  void *p = malloc(n);
  if (p) stamp(p, n, 3);
  return p;
}

static void give_up(void *p) { free(p); }

static int thread_local_count(void) {
  big[8999] = 1;
  return ++count;
}

struct plugin {
  void *(*make)(size_t);
  void (*give_up)(void *);
  int (*thread_local_count)(void);
};

struct plugin plugin = {make, give_up, thread_local_count};
