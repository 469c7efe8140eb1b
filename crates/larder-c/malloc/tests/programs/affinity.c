/* Threads are moved from CPU to CPU while they allocate. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int stop;
static pthread_t ids[4];

static void *churn(void *arg) {
  uint64_t rng = 31 + (uintptr_t)arg;
  struct { void *p; unsigned token; } live[200] = {{0}};
  for (unsigned i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
    uint64_t r = draw(&rng);
    unsigned slot = r % 200;
    size_t n = 8 + slot * 3;
    if (live[slot].p) CHECK(stamped(live[slot].p, n, live[slot].token), "turn %u", i);
    free(live[slot].p);
    live[slot].p = opaque(malloc(n));
    CHECK(live[slot].p, " ");
    live[slot].token = i;
    stamp(live[slot].p, n, i);
  }
  for (int i = 0; i < 200; i++) free(live[i].p);
  return NULL;
}

int main(void) {
  cpu_set_t all;
  CHECK(sched_getaffinity(0, sizeof all, &all) == 0, " ");
  int cpus[CPU_SETSIZE], n = 0;
  for (int c = 0; c < CPU_SETSIZE; c++)
    if (CPU_ISSET(c, &all)) cpus[n++] = c;
  for (uintptr_t i = 0; i < 4; i++) CHECK(pthread_create(&ids[i], NULL, churn, (void *)i) == 0, " ");
  for (long turn = 0; turn < work(300); turn++) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[turn % n], &one);
    pthread_setaffinity_np(ids[turn % 4], sizeof one, &one);
    sched_yield();
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
  return done();
}
