/* The system refuses memory: of the calls that ask for it, one in each run, and in a second series all from that one on.
 *
 * The program traces itself. A child runs the workload below; a filter stops it at the calls that the kernel may answer with
 * ENOMEM, and the tracer answers the chosen one so instead of the kernel. Counted are the calls of the C library and of malloc
 * from the first instruction on. Those of the dynamic loader are let through: without its own memory it ends the process, and
 * rightly so. The tracer prints in how many runs something was refused.
 *
 * LARDER_TEST_WORK=PERCENT takes that part of the calls. */
#include "check.h"

#if !defined(__x86_64__)
int main(void) {
  puts("skipped: calls are refused in registers of x86-64");
  return 0;
}
#else
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

/* No call of the kernel's: the workload says by it that from now on nothing shall be refused. */
enum { GRANT = 29793, FORBIDDEN = 77, PATIENCE_SECONDS = 30, NEVER = -1 };

/* ---- The workload. Each request is answered by memory that keeps what is written, or by NULL and ENOMEM. ---- */

enum { KEPT = 300, THREADS = 2, SHARED = 32, ROUNDS = 100 };

struct block {
  unsigned char *p;
  size_t size;
  unsigned token;
};

/* Large blocks are marked here and there: the faults of their pages would take most of the time. */
static size_t step(size_t size) { return size > 8192 ? 32749 : 1; }

static void mark(const struct block *b) {
  for (size_t i = 0; i < b->size; i += step(b->size)) b->p[i] = (unsigned char)(b->token * 131u + i * 7u);
  b->p[b->size - 1] = (unsigned char)b->token;
}

static void check_marks(const struct block *b, size_t size, size_t stride, const char *when) {
  for (size_t i = 0; i < size; i += stride)
    CHECK(i == b->size - 1 || b->p[i] == (unsigned char)(b->token * 131u + i * 7u), "%s: byte %zu of %zu", when, i, b->size);
  if (size == b->size) CHECK(b->p[size - 1] == (unsigned char)b->token, "%s: the last byte of %zu", when, size);
}

/* errno is meant to be 0 before the request. */
static struct block answered(void *p, size_t size, unsigned token, const char *function) {
  struct block b = {opaque(p), size, token};
  if (b.p == NULL)
    CHECK(errno == ENOMEM, "%s(%zu): errno %d", function, size, errno);
  else
    mark(&b);
  errno = 0;
  return b;
}

static void give(struct block *b) {
  if (b->p == NULL) return;
  check_marks(b, b->size, step(b->size), "before free");
  errno = 4711;
  free(b->p);
  CHECK(errno == 4711, "free of %zu changed errno to %d", b->size, errno);
  errno = 0;
  b->p = NULL;
}

static struct block zeroed(size_t count, size_t size, unsigned token) {
  unsigned char *p = opaque(calloc(count, size));
  if (p)
    for (size_t i = 0; i < count * size; i += step(count * size))
      CHECK(p[i] == 0, "calloc(%zu, %zu): byte %zu is %d", count, size, i, p[i]);
  return answered(p, count * size, token, "calloc");
}

static struct block aligned(size_t align, size_t size, unsigned token) {
  void *p = NULL;
  if (token % 2 == 0) {
    p = aligned_alloc(align, size);
  } else {
    int code = posix_memalign(&p, align, size);
    CHECK(code == 0 || (code == ENOMEM && p == NULL), "posix_memalign: %d", code);
    /* The C library's sets it. */
    CHECK(errno == 0 || getenv("LARDER_TEST_STRICT") == NULL, "posix_memalign set errno to %d", errno);
    errno = code;
  }
  CHECK((uintptr_t)p % align == 0, "%p is not aligned to %zu", p, align);
  return answered(p, size, token, "aligned_alloc");
}

/* A block that cannot be resized stays as it was. */
static void resize(struct block *b, size_t size) {
  size_t both = b->p == NULL ? 0 : size < b->size ? size : b->size, stride = step(b->size);
  struct block now = {opaque(realloc(b->p, size)), b->p ? b->size : size, b->token};
  if (now.p == NULL) {
    CHECK(errno == ENOMEM, "realloc to %zu: errno %d", size, errno);
    if (b->p) check_marks(b, b->size, stride, "after a refused realloc");
  } else {
    /* `now` has the old size still, since the old marks were made for it. */
    check_marks(&now, both, stride, "after realloc");
    *b = (struct block){now.p, size, b->token};
    mark(b);
  }
  errno = 0;
}

static _Atomic(struct block *) shared[SHARED];

/* Puts what it allocates where others find it, and frees what it finds there. */
static void *hand_over(void *seed) {
  static const size_t sizes[] = {20, 200, 2000, 6000, 150000};
  uint64_t state = (uint64_t)(uintptr_t)seed;
  for (int i = 0; i < ROUNDS; i++) {
    errno = 0;
    size_t size = sizes[draw(&state) % (sizeof sizes / sizeof *sizes)];
    struct block *b = opaque(malloc(sizeof *b));
    if (b)
      *b = answered(malloc(size), size, (unsigned)draw(&state), "malloc");
    else
      CHECK(errno == ENOMEM, "errno %d in a thread", errno);
    struct block *found = __atomic_exchange_n(&shared[draw(&state) % SHARED], b, __ATOMIC_ACQ_REL);
    if (found) give(found);
    free(found);
    if (i == ROUNDS / 2) malloc_trim(0);
  }
  return NULL;
}

static void work_through(void) {
  static const size_t sizes[] = {1, 24, 200, 1000, 5000, 17000, 70000, 300000, 1 << 20, 3 << 20};
  static const size_t aligns[] = {64, 4096, 65536, 1 << 21};
  static struct block kept[KEPT];
  int n = 0;
  errno = 0;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int j = sizes[i] > 20000 ? 1 : 20; j > 0; j--, n++) kept[n] = answered(malloc(sizes[i]), sizes[i], (unsigned)n, "malloc");
  for (unsigned i = 0; i < sizeof aligns / sizeof *aligns; i++)
    for (int j = 0; j < 2; j++, n++) kept[n] = aligned(aligns[i], aligns[i] * (1 + (size_t)j), (unsigned)n);
  for (size_t size = 8; size < (2 << 20); size *= 17, n++) kept[n] = zeroed(size, 2, (unsigned)n);
  struct block grown = {NULL, 0, 99};
  for (size_t size = 10; size < 700000; size *= 4) resize(&grown, size);
  for (int i = 0; i < n; i += 3) give(&kept[i]);
  malloc_trim(0);
  for (size_t size = 200000; size > 0; size /= 9) resize(&grown, size);
  give(&grown);

  pthread_attr_t attr;
  pthread_attr_init(&attr);
  CHECK(pthread_attr_setstacksize(&attr, 128 << 10) == 0, " ");
  pthread_t threads[THREADS];
  int started = 0;
  for (uintptr_t i = 1; i <= THREADS; i++)
    if (pthread_create(&threads[started], &attr, hand_over, (void *)(i * 7919)) == 0) started++;
  hand_over((void *)1);
  for (int i = 0; i < started; i++) CHECK(pthread_join(threads[i], NULL) == 0, " ");
  for (int i = 0; i < SHARED; i++)
    if (shared[i]) {
      give(shared[i]);
      free(shared[i]);
    }
  for (int i = 0; i < n; i++) give(&kept[i]);
  malloc_trim(0);
}

/* When nothing is refused any more there is memory: at once where one call was refused. A malloc that was refused all calls
 * may let some of its own pass before it asks again. */
static void recover(int attempts) {
  static const size_t sizes[] = {1, 100, 2000, 30000, 500000, 4 << 20};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct block b = {NULL, 0, 0};
    for (int turn = 0; b.p == NULL; turn++) {
      CHECK(turn < attempts, "nothing of %zu bytes after all was freed", sizes[i]);
      b = answered(malloc(sizes[i]), sizes[i], i, "malloc");
    }
    give(&b);
  }
}

static int workload(int attempts) {
  work_through();
  syscall(GRANT);
  recover(attempts);
  return 0;
}

/* ---- The tracer. ---- */

static const struct call {
  int number;
  const char *name;
} CALLS[] = {{SYS_mmap, "mmap"},       {SYS_mprotect, "mprotect"}, {SYS_munmap, "munmap"},
             {SYS_mremap, "mremap"},   {SYS_madvise, "madvise"},   {SYS_process_madvise, "process_madvise"}};
enum { COUNT = sizeof CALLS / sizeof *CALLS };

static const char *name_of(unsigned long long number) {
  for (int i = 0; i < COUNT; i++)
    if ((int)number == CALLS[i].number) return CALLS[i].name;
  return "?";
}

/* Stops at the calls, and leaves all others alone. */
static int install_filter(void) {
  struct sock_filter code[COUNT + 4] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  for (int i = 0; i <= COUNT; i++)
    code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(i < COUNT ? CALLS[i].number : GRANT),
                                               (unsigned char)(COUNT + 1 - i), 0);
  code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[COUNT + 3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  struct sock_fprog program = {COUNT + 4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

struct range {
  unsigned long begin, end;
};

/* Where a process has the loader, which the kernel mapped beside the program. */
static struct range loader_of(pid_t child) {
  char name[64], line[512];
  snprintf(name, sizeof name, "/proc/%d/maps", child);
  FILE *maps = fopen(name, "r");
  CHECK(maps, "%s", name);
  struct range all = {0, 0};
  while (fgets(line, sizeof line, maps)) {
    unsigned long begin, end;
    if (strstr(line, "/ld-") && sscanf(line, "%lx-%lx", &begin, &end) == 2) {
      if (all.begin == 0) all.begin = begin;
      all.end = end;
    }
  }
  fclose(maps);
  CHECK(all.begin, "no loader in %s", name);
  return all;
}

static int is_refused(long call, long nth, int on) { return nth != NEVER && (on ? call >= nth : call == nth); }

/* One run: refuses call `nth`, or all from that one on. How many calls there were; exits where the run fails. */
static long run(const char *self, long nth, int on) {
  pid_t child = fork();
  CHECK(child >= 0, " ");
  if (child == 0) {
    /* A process that hangs ends by a signal: the alarm outlives the exec. */
    alarm(PATIENCE_SECONDS);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0 || raise(SIGSTOP) != 0 || !install_filter()) _exit(FORBIDDEN);
    execl(self, self, on ? "100000" : "1", (char *)NULL);
    _exit(1);
  }
  int status;
  CHECK(waitpid(child, &status, __WALL) == child, " ");
  long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (WIFEXITED(status) || ptrace(PTRACE_SETOPTIONS, child, 0, options) != 0) {
    puts("skipped: ptrace is not allowed here");
    exit(0);
  }
  CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0, " ");

  struct range loader = {0, 0};
  struct user_regs_struct refused = {0};
  long calls = 0;
  int granting = 0;
  for (;;) {
    pid_t thread = waitpid(-1, &status, __WALL);
    CHECK(thread > 0, " ");
    if (!WIFSTOPPED(status)) {
      if (thread != child) continue;
      if (WIFEXITED(status) && WEXITSTATUS(status) == FORBIDDEN && loader.begin == 0) {
        puts("skipped: no filter of system calls is allowed here");
        exit(0);
      }
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
            "status %#x after %s call %ld of %ld was refused, %s(%#llx, %#llx, %#llx)", status,
            on ? "each from" : "only", nth, calls, name_of(refused.orig_rax), refused.rdi, refused.rsi, refused.rdx);
      return calls;
    }
    int event = status >> 16, signal = 0;
    if (event == PTRACE_EVENT_EXEC) {
      loader = loader_of(child);
    } else if (event == PTRACE_EVENT_SECCOMP && loader.begin) {
      struct user_regs_struct regs;
      CHECK(ptrace(PTRACE_GETREGS, thread, 0, &regs) == 0, " ");
      if (regs.orig_rax == GRANT) {
        granting = 1;
      } else if (regs.rip < loader.begin || regs.rip >= loader.end) {
        if (!granting && is_refused(calls, nth, on)) {
          if (refused.rip == 0) refused = regs;
          /* No call at all, and its answer. */
          regs.orig_rax = (unsigned long long)-1;
          regs.rax = (unsigned long long)-ENOMEM;
          CHECK(ptrace(PTRACE_SETREGS, thread, 0, &regs) == 0, " ");
        }
        if (!granting) calls++;
      }
    } else if (event == 0 && WSTOPSIG(status) != SIGSTOP) {
      signal = WSTOPSIG(status); /* A thread begins with SIGSTOP; the rest is the workload's own. */
    }
    /* Another thread may have ended the process meanwhile. */
    CHECK(ptrace(PTRACE_CONT, thread, 0, signal) == 0 || errno == ESRCH, " ");
  }
}

int main(int argc, char **argv) {
  if (argc > 1) return workload(atoi(argv[1]));
  long all = run(argv[0], NEVER, 0), refusals = 0, stride = 100 / work(100);
  for (int on = 0; on < 2; on++)
    /* Threads make the number differ from run to run. */
    for (long nth = 0, calls = 1; nth < calls; nth += stride) {
      calls = run(argv[0], nth, on);
      refusals += nth < calls;
    }
  printf("refused %ld\ncalls %ld\n", refusals, all);
  return done();
}
#endif
