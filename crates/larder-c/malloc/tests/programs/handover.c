/* Objects made by one thread and freed by another, with the maker's token in each: none is lost, none has two owners. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { PAIRS = 4, SLOTS = 256 };

static _Atomic(void *) ring[PAIRS][SLOTS];
static long turns;

struct object { size_t size; unsigned token; };

static void *make(void *arg) {
  int pair = (int)(intptr_t)arg;
  uint64_t rng = 1000003u * (unsigned)(pair + 1);
  for (long i = 0; i < turns; i++) {
    size_t n = sizeof(struct object) + draw(&rng) % 700;
    struct object *o = opaque(malloc(n));
    CHECK(o, "%zu", n);
    o->size = n;
    o->token = (unsigned)(pair << 24 | (i & 0xffffff));
    stamp(o + 1, n - sizeof *o, o->token);
    void *none = NULL;
    _Atomic(void *) *slot = &ring[pair][i % SLOTS];
    while (!atomic_compare_exchange_weak(slot, &none, o)) {
      none = NULL;
      sched_yield();
    }
  }
  return NULL;
}

static void *use(void *arg) {
  int pair = (int)(intptr_t)arg;
  for (long i = 0; i < turns; i++) {
    struct object *o;
    while ((o = atomic_exchange(&ring[pair][i % SLOTS], NULL)) == NULL) sched_yield();
    CHECK(o->token == (unsigned)(pair << 24 | (i & 0xffffff)), "turn %ld", i);
    CHECK(stamped(o + 1, o->size - sizeof *o, o->token), "turn %ld", i);
    free(o);
  }
  return NULL;
}

int main(void) {
  pthread_t ids[2 * PAIRS];
  turns = work(40000);
  for (intptr_t i = 0; i < PAIRS; i++) {
    CHECK(pthread_create(&ids[2 * i], NULL, make, (void *)i) == 0, " ");
    CHECK(pthread_create(&ids[2 * i + 1], NULL, use, (void *)i) == 0, " ");
  }
  for (int i = 0; i < 2 * PAIRS; i++) pthread_join(ids[i], NULL);
  return done();
}
