/* What the programs that misuse malloc need. Each names its options and, in its last comment, what it must print in debug
 * mode: addresses are @1, @2 and so on in the order in which they come, threads are T, frames are names down to main. */
#ifndef MISUSE_H
#define MISUSE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#else
#include <stddef.h>
/* C23; the system may have none. */
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));
#endif

#define OUT_OF_LINE __attribute__((noinline, noclone, used, visibility("default")))

/* Functions of their own, so that the stacks have names in them. */
OUT_OF_LINE char *get(size_t n) {
  char *p = (char *)malloc(n);
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

OUT_OF_LINE void give(void *p) {
  free(p);
  __asm__ volatile("" : : : "memory");
}

OUT_OF_LINE void poke(volatile char *p) {
  *p = 1;
  __asm__ volatile("" : : : "memory");
}

/* What calls that have returned left on the stack would count as pointers to what was lost. */
OUT_OF_LINE void forget_calls(void) {
  volatile char stale[1 << 16];
  for (size_t i = 0; i < sizeof stale; i++) stale[i] = 0;
}

#ifdef __cplusplus
}
#endif
#endif
