/* A thread makes blocks larger and smaller where they are, while another one frees the blocks behind them: hardened mode then looks at
 * the end of the block before. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { COUNT = 40000 };
static char *blocks[COUNT];
/* An even one: the thread resizes it, and the next one is freed. */
static atomic_int turn;

static int by_address(const void *a, const void *b) {
  const char *p = *(char *const *)a, *q = *(char *const *)b;
  return (p > q) - (p < q);
}

static void *resize(void *arg) {
  for (int i; (i = atomic_load(&turn)) < COUNT;) {
    blocks[i] = opaque(realloc(blocks[i], 100));
    blocks[i] = opaque(realloc(blocks[i], 101));
  }
  return arg;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i < COUNT; i++) CHECK((blocks[i] = opaque(malloc(101))) != NULL, " ");
  qsort(blocks, COUNT, sizeof *blocks, by_address);
  CHECK(pthread_create(&thread, NULL, resize, NULL) == 0, " ");
  for (long i = 0; i < work(COUNT / 2); i++) {
    /* Until the thread is there. */
    for (volatile int spin = 0; spin < 500; spin++) {
    }
    free(blocks[2 * i + 1]);
    atomic_store(&turn, (int)(2 * i + 2));
  }
  atomic_store(&turn, COUNT);
  pthread_join(thread, NULL);
  for (int i = 0; i < COUNT; i += 2) free(blocks[i]);
  return done();
}
