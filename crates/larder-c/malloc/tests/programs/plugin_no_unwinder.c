/* Preloaded behind larder: the library that walks stacks is missing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <string.h>

void *dlopen(const char *name, int flags) {
  void *(*next)(const char *, int);
  if (name && strcmp(name, "libgcc_s.so.1") == 0) return NULL;
  *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  return next(name, flags);
}
