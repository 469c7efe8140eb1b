/* A signal handler that forks, within fork itself and within malloc; and one that allocates within the fork of a program
 * with threads.
 *
 * POSIX lists fork among what a handler may call, so a handler that interrupts fork may also call malloc. The C library's
 * malloc lets a program with one thread fork even where the handler interrupted malloc, and the child may go on with the
 * interrupted call. */
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <time.h>

static timer_t timer;
static atomic_int stop;
static volatile sig_atomic_t in_fork, in_malloc, child_goes_on, has_threads;
static volatile long hit_fork, hit_malloc;

static void blocks(void) {
  /* All classes' slow paths, and pages. */
  static const size_t sizes[] = {24, 3000, 40000, 300000};
  void *live[12];
  for (int i = 0; i < 12; i++) CHECK((live[i] = opaque(malloc(sizes[i % 4]))), " ");
  for (int i = 0; i < 12; i++) free(live[i]);
}

static void wait_for(pid_t pid, const char *what) {
  int status;
  while (waitpid(pid, &status, 0) != pid) CHECK(errno == EINTR, "%s", what);
  CHECK(status == 0, "%s ended with %x", what, status);
}

/* SIGUSR2 is blocked from the beginning on, SIGALRM only in its handler. */
static void same_mask(int usr1) {
  sigset_t now;
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0, " ");
  for (int sig = 1; sig < 32; sig++)
    CHECK(sigismember(&now, sig) == (sig == SIGUSR2 || (usr1 && sig == SIGUSR1)), "signal %d after a fork", sig);
}

static void handler(int sig) {
  (void)sig;
  int kept = errno;
  hit_fork += in_fork;
  hit_malloc += in_malloc;
  if (in_fork) blocks();
  if (has_threads) { /* the C library's own fork cannot be interrupted by another one then */
    errno = kept;
    return;
  }
  pid_t pid = fork();
  CHECK(pid >= 0, " ");
  same_mask(1);
  if (pid == 0) {
    alarm(60);
    if (in_fork) blocks();
    if (!child_goes_on) _exit(0);
    stop = 2; /* back to what was interrupted, in the child */
  } else {
    wait_for(pid, "the handler's child");
  }
  errno = kept;
}

/* One signal, some time from now. */
static void signal_within(uint64_t nanoseconds) {
  struct itimerspec when = {{0, 0}, {0, (long)(1 + nanoseconds)}};
  CHECK(timer_settime(timer, 0, &when, NULL) == 0, " ");
}

static void one_fork(uint64_t *rng, long *usual) {
  struct timespec before, after;
  void *inherited = opaque(malloc(1 + draw(rng) % 100000));
  clock_gettime(CLOCK_MONOTONIC, &before);
  signal_within(draw(rng) % (uint64_t)*usual);
  in_fork = 1;
  pid_t pid = fork();
  in_fork = 0;
  clock_gettime(CLOCK_MONOTONIC, &after);
  CHECK(pid >= 0, " ");
  same_mask(0);
  if (pid == 0) {
    alarm(60);
    free(inherited);
    blocks();
    _exit(0);
  }
  /* Most signals shall come within a fork: so long does it take, interrupted ones left out. */
  long took = (after.tv_sec - before.tv_sec) * 1000000000l + after.tv_nsec - before.tv_nsec;
  if (took < 2 * *usual) *usual = took / 2 + *usual / 2 + 1000;
  wait_for(pid, "the child");
  free(inherited);
}

static void forks(long count) {
  uint64_t rng = 7;
  long usual = 200000;
  for (long i = 0; i < work(count); i++) one_fork(&rng, &usual);
}

static void forks_within_malloc(void) {
  uint64_t rng = 11;
  child_goes_on = 1;
  for (long i = 0; i < work(600); i++) {
    long before = hit_malloc;
    in_malloc = 1;
    signal_within(draw(&rng) % 30000);
    while (before == hit_malloc) {
      blocks();
      malloc_trim(0);
    }
    in_malloc = 0;
    if (stop == 2) {
      blocks();
      _exit(0);
    }
  }
  child_goes_on = 0;
}

static void *churn(void *arg) {
  while (!atomic_load(&stop)) {
    blocks();
    usleep(100);
  }
  return arg;
}

/* The C library's own malloc may hang here: its fork holds locks with signals open when there are threads. */
static void forks_of_threads(void) {
  pthread_t ids[2];
  has_threads = 1;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0, " ");
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&ids[i], NULL, churn, NULL) == 0, " ");
  CHECK(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL) == 0, " ");
  forks(800);
  atomic_store(&stop, 1);
  for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
}

int main(void) {
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  CHECK(pthread_sigmask(SIG_BLOCK, &usr2, NULL) == 0, " ");
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0, " ");
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, " ");
  alarm(100); /* a process that waits for a lock of its own ends the test */
  blocks();
  const char *mode = getenv("LARDER_MALLOC_MODE");
  if (mode && strcmp(mode, "per-cpu") == 0) {
    has_threads = 1; /* restartable sequences were tried by one, so the C library's fork locks for good */
  } else {
    CHECK(__libc_single_threaded, " ");
    forks(1500);
    CHECK(hit_fork > 0, "no signal came within fork");
    forks_within_malloc();
  }
  if (getenv("LARDER_TEST_STRICT")) forks_of_threads();
  return done();
}
