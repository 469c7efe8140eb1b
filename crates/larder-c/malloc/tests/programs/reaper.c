/* A burst, all of it freed, and then no call: the thread that LARDER_MALLOC_REAPER asks for gives the memory back. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* The number behind a word in a file of the kernel's, without an allocation. */
static long number(const char *path, const char *word) {
  char text[4096] = {0};
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "%s", path);
  close(fd);
  const char *at = strstr(text, word);
  CHECK(at != NULL, "%s in %s", word, path);
  return atol(at + strlen(word));
}

static long resident(void) { return number("/proc/self/status", "\nVmRSS:"); }
static long threads(void) { return number("/proc/self/status", "\nThreads:"); }

static void nap(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

enum { COUNT = 200000 };
static void *blocks[COUNT];
static const size_t sizes[] = {32, 64, 160, 512, 1024, 4096};

static void burst(void) {
  for (int i = 0; i < COUNT; i++) {
    size_t size = sizes[i % 6];
    blocks[i] = opaque(malloc(size));
    CHECK(blocks[i] != NULL, " ");
    memset(blocks[i], 1, size);
  }
}

static void release(void) {
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
}

/* Waits until four fifths of all memory are gone; the program's own limit ends it where they never go. */
static void wait_for_return(const char *who, long peak) {
  long held = peak;
  for (int turn = 0; turn < 1500; turn++) {
    held = resident();
    if (held <= peak / 5) return;
    nap(20);
  }
  CHECK(0, "%s: %ld KiB at the peak, %ld still", who, peak, held);
}

static pthread_t first;
static volatile sig_atomic_t elsewhere;
static void handler(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), first)) elsewhere = 1;
}

static void whole(const char *who) {
  burst();
  long peak = resident();
  CHECK(peak > 100000, "%ld KiB", peak);
  release();
  wait_for_return(who, peak);
}

int main(int argc, char **argv) {
  int meant = getenv("LARDER_MALLOC_REAPER") != NULL && argc < 2;
  first = pthread_self();
  alarm(200);
  free(opaque(malloc(10)));
  CHECK(threads() == 1, "a thread before there is anything to give back");
  if (argc > 1 && strcmp(argv[1], "count") == 0) {
    burst();
    printf("threads %ld\n", threads());
    release();
    return done();
  }
  if (argc > 1 && strcmp(argv[1], "leave") == 0) {
    burst();
    release();
    puts("ok");
    fflush(stdout);
    pthread_exit(NULL); /* the last thread of the program: the process ends */
  }
  burst();
  release();
  if (!meant) return done();
  CHECK(threads() == 2, "%ld threads", threads());
  struct sigaction action = {.sa_handler = handler};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 100; i++) kill(getpid(), SIGUSR1);
  CHECK(!elsewhere, "the thread took a signal of the program's");
  whole("the parent");
  /* The child has one thread until it allocates slowly, and then its own second one. */
  pid_t pid = fork();
  CHECK(pid >= 0, " ");
  if (pid == 0) {
    alarm(120);
    CHECK(threads() == 1, "%ld threads in the child", threads());
    whole("the child");
    CHECK(threads() == 2, "%ld threads in the child after a burst", threads());
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with %x", status);
  return done();
}
