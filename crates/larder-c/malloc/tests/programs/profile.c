/* Allocates known amounts by known functions, for a profile by samples. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

/* Of the library; none with the system's malloc. */
extern int larder_heap_profile_write(const char *) __attribute__((weak));
extern void free_sized(void *, size_t) __attribute__((weak));

#define SMALL 100000
#define ODD 3000
#define THREADS 4
#define EACH 20000

#define MOVED 200

static void *kept[SMALL + ODD + MOVED + THREADS * EACH + 10];
static size_t keeps;

static void put_back(void *p, size_t size) {
  if (free_sized)
    free_sized(p, size);
  else
    free(p);
}

/* 100,000 blocks of 100 bytes. */
__attribute__((noinline)) static void keep_small(void) {
  for (int i = 0; i < SMALL; i++) {
    void *p = kept[keeps++] = malloc(100);
    memset(p, 7, 100);
  }
}

/* 3,000 blocks of 1 to 3,000 bytes, which are 4,501,500, by the other functions. */
__attribute__((noinline)) static void keep_odd(void) {
  for (size_t i = 1; i <= ODD; i++) {
    void *p = i % 3 ? calloc(1, i) : memalign(256, i);
    for (size_t b = 0; i % 3 && b < i; b++) CHECK(((char *)p)[b] == 0, "%zu of %zu", b, i);
    CHECK(i % 3 || (uintptr_t)p % 256 == 0, "%p", p);
    CHECK(malloc_usable_size(p) >= i, "%zu", i);
    kept[keeps++] = memset(p, 7, i);
  }
}

/* 1,000,000 times 64 bytes, which do not live. */
__attribute__((noinline)) static void churn(void) {
  for (int i = 0; i < 1000000; i++) {
    char *p = opaque(i % 4 == 1 ? calloc(1, 64) : malloc(64));
    CHECK(i % 4 != 1 || (p[0] == 0 && p[31] == 0 && p[63] == 0), "%d", i);
    memset(p, 7, 64);
    if (i % 2)
      free(p);
    else
      put_back(p, 64);
  }
}

/* One block that grows to 40,000,000 bytes, by more than twice as much. */
__attribute__((noinline)) static void grow(void) {
  char *p = NULL;
  for (size_t size = 16; size < 40000000; size = size * 3 / 2) {
    p = realloc(p, size);
    p[size - 1] = 1;
  }
  kept[keeps++] = realloc(p, 40000000);
}

/* 200 blocks of 20,000 bytes that grow once, to 300,000. */
__attribute__((noinline)) static void grow_once(void) {
  for (int i = 0; i < MOVED; i++) {
    char *p = realloc(opaque(malloc(20000)), 300000);
    p[299999] = 1;
    kept[keeps++] = p;
  }
}

/* Each 20,000 blocks of 200 bytes. */
__attribute__((noinline)) static void *keep_in_thread(void *to) {
  for (int i = 0; i < EACH; i++) ((void **)to)[i] = malloc(200);
  return NULL;
}

__attribute__((noinline)) static void keep_in_child(void) {
  for (int i = 0; i < 1000; i++) CHECK(opaque(malloc(10000)), " ");
}

int main(int argc, char **argv) {
  keep_small();
  keep_odd();
  churn();
  grow();
  grow_once();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, keep_in_thread, &kept[keeps + (size_t)i * EACH]) == 0, " ");
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  keeps += THREADS * EACH;
  if (argc > 1) {
    int asked = strcmp(argv[1], "-") != 0;
    int answer = larder_heap_profile_write ? larder_heap_profile_write(argv[1]) : ENODATA;
    CHECK(answer == (asked && larder_heap_profile_write ? 0 : ENODATA), "%d", answer);
    CHECK(!larder_heap_profile_write || !asked || larder_heap_profile_write("/no/such/folder/file") == ENOENT, " ");
    /* A third of what lives goes, by this thread. */
    for (size_t i = 0; i < SMALL; i += 3) put_back(kept[i], 100);
  }
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0, " ");
  if (child == 0) {
    keep_in_child();
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
  printf("child %d\n", child);
  return done();
}
