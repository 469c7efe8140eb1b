/* Each misuse of malloc by its word. The program goes on after it as a real one would, and prints "ok" at its end: then it was not
 * noticed. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* C++'s operators, by their mangled names: the program itself needs no C++. */
extern void *_Znwm(size_t) __attribute__((weak));
extern void _ZdlPvm(void *, size_t) __attribute__((weak));

static char *get(size_t n) {
  char *p = opaque(malloc(n));
  memset(p, 1, n);
  return p;
}

static void *give(void *p) {
  free(p);
  return NULL;
}

/* Other blocks come and go, as they do in programs. */
static void go_on(void) {
  for (int i = 0; i < 20000; i++) give(get(100));
}

/* Blocks beside each other, lowest address first. */
static void neighbours(char *p[3]) {
  char *all[64];
  for (int i = 0; i < 64; i++) all[i] = get(96);
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < i; j++)
      if (all[j] > all[i]) {
        char *t = all[i];
        all[i] = all[j];
        all[j] = t;
      }
  for (int i = 0; i < 3; i++) p[i] = all[30 + i];
}

static char in_data[200];

/* A handler of the program's, which calls the one that was there before. */
static struct sigaction former;

static void handle(int signal, siginfo_t *info, void *context) {
  former.sa_sigaction(signal, info, context);
  _exit(7);
}

static int misuse(const char *what) {
  char on_stack[200], *p, *q, *next[3];
  pthread_t thread;
#define IS(word) if (strcmp(what, word) == 0)
  IS("twice at once") { p = get(100); give(p); give(p); return 1; }
  IS("twice after another") { p = get(100); q = get(40); give(p); give(q); give(p); return 1; }
  IS("twice around another") { p = get(100); q = get(100); give(p); give(q); give(p); get(100); get(100); get(100); return 1; }
  IS("twice in two threads") {
    p = get(100);
    pthread_create(&thread, NULL, give, p);
    pthread_join(thread, NULL);
    give(p);
    return 1;
  }
  IS("twice around malloc") { p = get(100); give(p); q = get(100); give(p); give(q); return 1; }
  IS("twice a large one") { p = get(5 << 20); give(p); give(p); return 1; }
  IS("free on the stack") { give(opaque(on_stack + 16)); return 1; }
  IS("free of data") { give(opaque(in_data + 16)); return 1; }
  IS("free inside") { p = get(100); give(p + 32); return 1; }
  IS("free unaligned") { p = get(100); give(p + 1); return 1; }
  IS("free of another heap") {
    p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    give(p + 64);
    return 1;
  }
  IS("realloc of a freed") { p = get(100); give(p); opaque(realloc(p, 300)); return 1; }
  IS("delete with a wrong size") {
    if (!_ZdlPvm) return 1;
    p = opaque(_Znwm(100));
    _ZdlPvm(p, 24);
    return 1;
  }
  IS("overflow by 1") { p = get(100); p[100] = 2; give(p); return 1; }
  IS("overflow by 8") { p = get(96); memset(p + 96, 2, 8); give(p); return 1; }
  IS("overflow by 400") { neighbours(next); memset(next[0] + 96, 2, 400); give(next[1]); give(next[0]); return 1; }
  IS("underflow") { neighbours(next); memset(next[1] - 8, 2, 8); give(next[1]); return 1; }
  IS("write after free") { p = get(100); give(p); p[40] = 2; go_on(); return 1; }
  IS("read after free") { p = get(100); give(p); p[0] = p[40]; go_on(); return 1; }
  /* Right behind a block, and right before one: where only reads are wrong. */
  IS("read behind") { for (int i = 0; i < 64; i++) { p = get(96); p[0] = p[96]; } return 1; }
  IS("read before") { for (int i = 0; i < 64; i++) { p = get(96); p[0] = p[-1]; } return 1; }
  IS("read after free, handled") {
    struct sigaction own = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &own, &former);
    p = get(100);
    give(p);
    p[0] = p[40];
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  CHECK(argc > 1 && misuse(argv[1]), "there is no such misuse");
  return done();
}
