/* What the malloc without debug mode is told that is wrong: the argument says which. What is free goes back to the slabs afterwards. */
#include "check.h"

#include <malloc.h>
#include <pthread.h>

static const char *what;

static void *wrong(void *arg) {
  char *volatile p = malloc(100);
  if (strcmp(what, "foreign") == 0) free((void *)0x123450);
  if (strcmp(what, "realloc_foreign") == 0) p = realloc((void *)0x123451, 200);
  free(p);
  return arg;
}

int main(int argc, char **argv) {
  what = argc > 1 ? argv[1] : "";
  pthread_t thread;
  pthread_create(&thread, NULL, wrong, NULL);
  pthread_join(thread, NULL);
  malloc_trim(0);
  printf("ok\n");
  return 0;
}
