/* fork while 8 threads allocate: the child goes on, frees what it inherited, starts threads and forks again. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

static atomic_int stop;

static void *churn(void *arg) {
  uint64_t rng = 77u + (uintptr_t)arg;
  void *live[64] = {0};
  while (!atomic_load(&stop)) {
    uint64_t r = draw(&rng);
    free(live[r % 64]);
    live[r % 64] = opaque(malloc(r >> 20 & ((r & 64) ? 0x3ffff : 0x3ff)));
  }
  for (int i = 0; i < 64; i++) free(live[i]);
  return NULL;
}

static void *little(void *arg) {
  for (int i = 0; i < 2000; i++) free(opaque(malloc((size_t)i * 5 % 3000)));
  return arg;
}

/* Handlers of the program's own, which allocate. */
static void *kept;
static void before(void) { kept = opaque(malloc(333)); }
static void after(void) { free(kept); }

static void child(void *inherited, int depth) {
  free(inherited);
  little(NULL);
  pthread_t id;
  CHECK(pthread_create(&id, NULL, little, NULL) == 0, "a thread in the child");
  pthread_join(id, NULL);
  if (depth > 0) {
    void *again = opaque(malloc(10000));
    pid_t pid = fork();
    CHECK(pid >= 0, "a child of the child");
    if (pid == 0) {
      child(again, depth - 1);
      _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child's child ended with %x", status);
    free(again);
  }
}

int main(void) {
  pthread_t ids[8];
  alarm(100); /* a child that waits for a lock for ever ends the test */
  CHECK(pthread_atfork(before, after, after) == 0, " ");
  for (uintptr_t i = 0; i < 8; i++) CHECK(pthread_create(&ids[i], NULL, churn, (void *)i) == 0, " ");
  for (long i = 0; i < work(16); i++) {
    void *inherited = opaque(malloc(1 + (size_t)i * 997 % 100000));
    pid_t pid = fork();
    CHECK(pid >= 0, "fork %ld", i);
    if (pid == 0) {
      alarm(60);
      child(inherited, i % 4 == 0);
      _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid, " ");
    CHECK(status == 0, "child %ld ended with %x", i, status);
    free(inherited);
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < 8; i++) pthread_join(ids[i], NULL);
  return done();
}
