/* A program with a malloc inside, as rustc has: its names come before those of a library that is preloaded. Each side frees its own. */
#include "check.h"
#include <pthread.h>

static char memory[16 << 20] __attribute__((aligned(16)));
static size_t used;

static int ours(void *p) {
  return (char *)p >= memory && (char *)p < memory + sizeof memory;
}

void *malloc(size_t n) {
  n = (n + 31) / 16 * 16;
  size_t at = __atomic_fetch_add(&used, n, __ATOMIC_RELAXED);
  CHECK(at + n <= sizeof memory, "the memory of the program ends");
  *(size_t *)(memory + at) = n - 16;
  return memory + at + 16;
}

void free(void *p) {
  CHECK(!p || ours(p), "%p is no block of the program", p);
}

void *calloc(size_t count, size_t size) {
  return malloc(count * size); /* Memory is zero, and used once. */
}

void *realloc(void *p, size_t n) {
  CHECK(!p || ours(p), "%p is no block of the program", p);
  void *to = malloc(n);
  if (p) {
    size_t had = ((size_t *)p)[-2];
    memcpy(to, p, had < n ? had : n);
  }
  return to;
}

int posix_memalign(void **to, size_t align, size_t n) {
  *to = (void *)(((uintptr_t)malloc(n + align) + align - 1) / align * align);
  return 0;
}

static void *thread(void *arg) {
  for (int i = 0; i < 100; i++) free(opaque(strdup("of a thread")));
  return arg;
}

int main(void) {
  for (int i = 0; i < 8; i++) {
    pthread_t t;
    CHECK(pthread_create(&t, 0, thread, 0) == 0, "a thread");
    CHECK(pthread_join(t, 0) == 0, "its end");
  }
  void *p = opaque(realloc(opaque(malloc(10)), 100000));
  CHECK(ours(p), "malloc is that of the program");
  free(p);
  puts("ok");
  return 0;
}
