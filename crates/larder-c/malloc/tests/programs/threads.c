/* 1000 threads come and go and leave objects behind; others read, grow and free them. */
#include "check.h"
#include <pthread.h>

enum { EACH = 16, AT_ONCE = 20 };

static void *objects[1000][EACH];

static size_t size_of(int thread, int i) { return 1 + (size_t)(thread * 37 + i * 211) % 9000; }

static void *leave(void *arg) {
  int me = (int)(intptr_t)arg;
  for (int i = 0; i < EACH; i++) {
    size_t n = size_of(me, i);
    void *p = opaque(malloc(n));
    CHECK(p, "%zu", n);
    stamp(p, n, (unsigned)(me * EACH + i));
    objects[me][i] = p;
    free(opaque(malloc(n))); /* something in this thread's stock when it goes */
  }
  return NULL;
}

static void *take(void *arg) {
  int me = (int)(intptr_t)arg;
  for (int i = 0; i < EACH; i++) {
    size_t n = size_of(me, i);
    CHECK(stamped(objects[me][i], n, (unsigned)(me * EACH + i)), "thread %d, object %d", me, i);
    if (i % 3 == 0) {
      objects[me][i] = opaque(realloc(objects[me][i], n * 2));
      CHECK(stamped(objects[me][i], n, (unsigned)(me * EACH + i)), "thread %d, object %d, grown", me, i);
    }
    free(objects[me][i]);
  }
  return NULL;
}

static void all(int threads, void *(*body)(void *)) {
  pthread_t ids[AT_ONCE];
  for (int from = 0; from < threads; from += AT_ONCE) {
    int n = threads - from < AT_ONCE ? threads - from : AT_ONCE;
    for (int i = 0; i < n; i++)
      CHECK(pthread_create(&ids[i], NULL, body, (void *)(intptr_t)(from + i)) == 0, " ");
    for (int i = 0; i < n; i++) pthread_join(ids[i], NULL);
  }
}

int main(void) {
  int threads = (int)work(1000);
  all(threads, leave);
  all(threads, take);
  return done();
}
