/* fork while threads use streams: one has its stream locked and allocates, one has the list of all streams and waits for that
 * stream. The child may open a stream in each of its threads. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* Longer than what a thread has ready, so that the line's memory comes from what all threads share. */
#define LINE (1 << 20)

static atomic_int stop;
static FILE *lines;

/* Without one, a thread takes its lock again before a waiting thread is awake. */
static void pause_between(void) { usleep(1); }

static void *read_lines(void *arg) {
  while (!atomic_load(&stop)) {
    char *line = NULL;
    size_t size = 0;
    rewind(lines);
    CHECK(getline(&line, &size, lines) == LINE, " ");
    free(line);
    pause_between();
  }
  return arg;
}

static void *flush_all(void *arg) {
  while (!atomic_load(&stop)) {
    fflush(NULL);
    pause_between();
  }
  return arg;
}

static void *print(void *arg) {
  while (!atomic_load(&stop)) {
    char *text = NULL;
    CHECK(asprintf(&text, "%100000d", 7) == 100000, " ");
    free(text);
    pause_between();
  }
  return arg;
}

static void open_and_close(void) {
  char *text = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  CHECK(stream, " ");
  CHECK(fprintf(stream, "%100000d", 7) == 100000 && fclose(stream) == 0 && size == 100000, "%zu", size);
  free(text);
}

static void *open_streams(void *arg) {
  while (!atomic_load(&stop)) {
    open_and_close();
    pause_between();
  }
  return arg;
}

static void *open_one(void *arg) {
  open_and_close();
  return arg;
}

/* By another thread, which does not have what the one that forked has. */
static void child(void) {
  pthread_t id;
  alarm(60);
  open_and_close();
  CHECK(pthread_create(&id, NULL, open_one, NULL) == 0 && pthread_join(id, NULL) == 0, "a thread in the child");
}

int main(void) {
  void *(*const works[])(void *) = {read_lines, flush_all, print, open_streams};
  pthread_t ids[4];
  alarm(200); /* a process that waits for a lock for ever ends the test */
  lines = tmpfile();
  CHECK(lines, " ");
  for (int i = 1; i < LINE; i++) putc('x', lines);
  putc('\n', lines);
  CHECK(fflush(lines) == 0, " ");
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&ids[i], NULL, works[i], NULL) == 0, " ");
  for (long i = 0; i < work(200); i++) {
    pid_t pid = fork();
    CHECK(pid >= 0, "fork %ld", i);
    if (pid == 0) {
      child();
      _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid, " ");
    CHECK(status == 0, "child %ld ended with %x", i, status);
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
  return done();
}
