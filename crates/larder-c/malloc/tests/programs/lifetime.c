/* Allocation outside of main: constructors, destructors, exit handlers, thread-specific data, libraries that come and go. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>

static void *early;
static pthread_key_t key;
static int destroyed;

__attribute__((constructor)) static void begin(void) {
  early = malloc(12345);
  CHECK(early, " ");
  stamp(early, 12345, 1);
}

__attribute__((destructor)) static void end(void) {
  CHECK(stamped(early, 12345, 1), "what the constructor wrote");
  early = realloc(early, 99999);
  free(early);
}

static void at_exit(void) { free(opaque(malloc(77))); }

/* Runs when its thread has nearly gone: it may still allocate, and set the value anew. */
static void destroy(void *p) {
  CHECK(stamped(p, 100, 2), " ");
  free(p);
  void *q = opaque(malloc(100));
  stamp(q, 100, 2);
  if (++destroyed % 3 == 0) pthread_setspecific(key, q);
  else free(q);
}

static void *with_specific(void *arg) {
  void *p = opaque(malloc(100));
  stamp(p, 100, 2);
  pthread_setspecific(key, p);
  return arg;
}

struct plugin {
  void *(*make)(size_t);
  void (*give_up)(void *);
  int (*thread_local_count)(void);
};

int main(int argc, char **argv) {
  atexit(at_exit);
  CHECK(pthread_key_create(&key, destroy) == 0, " ");
  for (int i = 0; i < 20; i++) {
    pthread_t id;
    CHECK(pthread_create(&id, NULL, with_specific, NULL) == 0, " ");
    pthread_join(id, NULL);
  }
  CHECK(destroyed >= 20, "%d", destroyed);
  CHECK(argc > 1, "give the plugin's path");
  void *left[100];
  for (int i = 0; i < 100; i++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    struct plugin *plugin = dlsym(library, "plugin");
    CHECK(plugin, "%s", dlerror());
    CHECK(plugin->thread_local_count() == 1, " ");
    left[i] = plugin->make((size_t)(i + 1) * 50);
    plugin->give_up(opaque(malloc(640))); /* ours, freed over there */
    CHECK(dlclose(library) == 0, " ");
  }
  for (int i = 0; i < 100; i++) {
    CHECK(stamped(left[i], (size_t)(i + 1) * 50, 3), "made by a library that is gone");
    free(left[i]);
  }
  CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL && dlerror() != NULL, " ");
  CHECK(system("true") == 0, "a program started from here");
  return done();
}
