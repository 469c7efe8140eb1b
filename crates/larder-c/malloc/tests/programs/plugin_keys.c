/* Preloaded behind larder: the first key of the process is refused, as where all keys are in use. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

int pthread_key_create(pthread_key_t *key, void (*end)(void *)) {
  static int calls;
  int (*next)(pthread_key_t *, void (*)(void *));
  if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) == 0) return EAGAIN;
  *(void **)&next = dlsym(RTLD_NEXT, "pthread_key_create");
  return next(key, end);
}
