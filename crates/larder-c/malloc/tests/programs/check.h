/* What every program of the suite needs. A program prints "ok" and returns 0, or says in one line what does not hold. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition, ...)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      dprintf(2, "%s:%d: not so: %s ", __FILE__, __LINE__, #condition); \
      dprintf(2, __VA_ARGS__);                                        \
      dprintf(2, "\n");                                               \
      _exit(1);                                                       \
    }                                                                 \
  } while (0)

/* A pointer that the compiler knows nothing about, so that it removes no allocation. */
static inline void *opaque(void *p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

static inline size_t opaque_size(size_t n) {
  __asm__ volatile("" : "+r"(n));
  return n;
}

/* Fills a block with a pattern of its own, and looks whether it is still there. */
static inline void stamp(void *p, size_t n, unsigned token) {
  unsigned char *b = p;
  for (size_t i = 0; i < n; i++) b[i] = (unsigned char)(token * 131u + i * 7u);
}

static inline int stamped(const void *p, size_t n, unsigned token) {
  const unsigned char *b = p;
  for (size_t i = 0; i < n; i++)
    if (b[i] != (unsigned char)(token * 131u + i * 7u)) return 0;
  return 1;
}

/* xorshift64*: the same numbers everywhere. */
static inline uint64_t draw(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717ull;
}

/* How much work: LARDER_TEST_WORK percent of the usual, at least 1. Valgrind gets less. */
static inline long work(long usual) {
  const char *text = getenv("LARDER_TEST_WORK");
  long n = usual * (text ? atol(text) : 100) / 100;
  return n > 0 ? n : 1;
}

static inline int done(void) {
  puts("ok");
  return 0;
}

#endif
