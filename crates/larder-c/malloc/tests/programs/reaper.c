/* A burst, all of it freed, and then no call: the thread that LARDER_MALLOC_REAPER asks for gives the memory back. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
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

/* Waits until no more than so many percent of the peak are there. */
static void wait_for_return(const char *who, long peak, long percent) {
  long held = peak;
  for (int turn = 0; turn < 3000; turn++) {
    held = resident();
    if (held <= peak / 100 * percent) return;
    nap(20);
  }
  CHECK(0, "%s: %ld KiB at the peak, %ld still, more than %ld %%", who, peak, held, percent);
}

/* 32 MiB in blocks of four sizes, as much of each; the last block is a run of pages. A GiB of it, and less where the machine has less
   than 4 GiB. With fewer, the runs that the two threads keep would be too large a share. */
enum { PAGES = 2048, MEDIUM = 82, LARGE = 8, UNIT = PAGES + MEDIUM + LARGE + 1, LEAST_UNITS = 24, MOST_UNITS = 32, UNIT_KIB = 32 << 10 };
_Static_assert(MOST_UNITS * UNIT <= COUNT, "a place for each block");

static size_t mixed_size(long i) {
  long at = i % UNIT;
  if (at < PAGES) return 4096;
  if (at < PAGES + MEDIUM) return 100 << 10;
  if (at < UNIT - 1) return 1 << 20;
  return 8 << 20;
}

static long mixed_count;
static sem_t freed, over;

static void release_every_other(long from) {
  for (long i = from; i < mixed_count; i += 2) free(blocks[i]);
}

/* Frees what the first thread took, and rests. */
static void *other(void *arg) {
  (void)arg;
  release_every_other(1);
  sem_post(&freed);
  while (sem_wait(&over) != 0) {
  }
  return NULL;
}

/* Each of two threads keeps its magazines and the run that it freed last: 8 MiB of a GiB, and some MiB of 1 MiB and of 100 KiB blocks. */
static void mixed(const char *who) {
  long units = number("/proc/meminfo", "MemAvailable:") / 4 / UNIT_KIB;
  if (units < LEAST_UNITS) {
    dprintf(2, "%s: skipped, fewer than 3 GiB are available\n", who);
    return;
  }
  if (units > MOST_UNITS) units = MOST_UNITS;
  mixed_count = units * UNIT;
  CHECK(sem_init(&freed, 0, 0) == 0 && sem_init(&over, 0, 0) == 0, " ");
  for (long i = 0; i < mixed_count; i++) {
    size_t size = mixed_size(i);
    blocks[i] = opaque(malloc(size));
    CHECK(blocks[i] != NULL, " ");
    memset(blocks[i], 1, size);
  }
  long peak = resident();
  CHECK(peak > units * UNIT_KIB / 4 * 3, "%ld KiB", peak);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other, NULL) == 0, " ");
  release_every_other(0);
  while (sem_wait(&freed) != 0) {
  }
  wait_for_return(who, peak, 10);
  sem_post(&over);
  pthread_join(thread, NULL);
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
  wait_for_return(who, peak, 20);
}

int main(int argc, char **argv) {
  int meant = getenv("LARDER_MALLOC_REAPER") != NULL && argc < 2;
  first = pthread_self();
  alarm(220);
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
  mixed("blocks of many sizes");
  return done();
}
