/* Signals at a high rate.
 *
 * POSIX does not let a handler call malloc when it may have interrupted malloc. What it does allow: a handler that calls no
 * malloc may interrupt one at any place; and a handler may call malloc when what it interrupted was no unsafe function. Both
 * are here. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

static atomic_long hits, allocated;
static _Thread_local volatile sig_atomic_t may_allocate;

static void handler(int sig) {
  (void)sig;
  int kept = errno;
  atomic_fetch_add(&hits, 1);
  if (may_allocate) {
    size_t n = 1 + (size_t)atomic_fetch_add(&allocated, 1) * 89 % 5000;
    char *p = opaque(malloc(n));
    CHECK(p, "%zu", n);
    stamp(p, n, 9);
    CHECK(stamped(p, n, 9), " ");
    free(p);
  }
  errno = kept;
}

static void start_timer(timer_t *timer) {
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  event._sigev_un._tid = gettid();
  CHECK(timer_create(CLOCK_MONOTONIC, &event, timer) == 0, " ");
  struct itimerspec every = {{0, 20000}, {0, 20000}}; /* 20 microseconds */
  CHECK(timer_settime(*timer, 0, &every, NULL) == 0, " ");
}

static void *interrupted(void *arg) {
  timer_t timer;
  start_timer(&timer);
  uint64_t rng = 5 + (uintptr_t)arg;
  struct { void *p; size_t n; unsigned token; } live[128] = {{0}};
  for (long i = 0; i < work(100000); i++) {
    uint64_t r = draw(&rng);
    unsigned slot = r % 128;
    if (live[slot].p) {
      CHECK(stamped(live[slot].p, live[slot].n, live[slot].token), "turn %ld", i);
      free(live[slot].p);
    }
    live[slot].n = r >> 20 & 0x1ff;
    live[slot].token = (unsigned)i;
    live[slot].p = opaque(malloc(live[slot].n));
    CHECK(live[slot].p, " ");
    stamp(live[slot].p, live[slot].n, live[slot].token);
  }
  timer_delete(timer);
  for (int i = 0; i < 128; i++) free(live[i].p);
  return NULL;
}

static void *computes(void *arg) {
  timer_t timer;
  may_allocate = 1;
  start_timer(&timer);
  volatile uint64_t sum = (uintptr_t)arg;
  while (atomic_load(&allocated) < work(5000)) sum += sum * 31 + 1; /* nothing unsafe is interrupted here */
  may_allocate = 0;
  timer_delete(timer);
  return NULL;
}

int main(void) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0, " ");
  alarm(100);
  pthread_t ids[4];
  for (uintptr_t i = 0; i < 4; i++) CHECK(pthread_create(&ids[i], NULL, i < 3 ? interrupted : computes, (void *)i) == 0, " ");
  for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
  CHECK(atomic_load(&hits) > 0, "no signal came");
  return done();
}
