/* What the heap holds, by the functions of malloc.h, and whether they agree. */
#include "check.h"
#include <limits.h>
#include <malloc.h>

static int strict;

/* The number behind a word of a text. */
static size_t number(const char *text, const char *word) {
  const char *at = strstr(text, word);
  CHECK(at, "%s in %s", word, text);
  return strtoul(at + strlen(word), NULL, 10);
}

static struct mallinfo2 look(void) {
  struct mallinfo2 all = mallinfo2();
  CHECK(all.uordblks + all.fordblks == all.arena, "%zu %zu %zu", all.uordblks, all.fordblks, all.arena);
  CHECK(all.keepcost <= all.fordblks + all.hblkhd, "%zu", all.keepcost);
  return all;
}

/* malloc_stats and malloc_info say what mallinfo2 says. */
static void compare(void) {
  char said[2000] = {0}, xml[20000] = {0};
  FILE *file = tmpfile();
  CHECK(file, " ");
  setvbuf(file, NULL, _IONBF, 0);
  int old = dup(2);
  FILE *err = tmpfile();
  CHECK(err && dup2(fileno(err), 2) == 2, " ");
  struct mallinfo2 all = look();
  malloc_stats();
  CHECK(malloc_info(0, file) == 0, " ");
  CHECK(malloc_info(1, file) != 0, "there are no options");
  struct mallinfo2 same = look();
  dup2(old, 2);
  close(old);
  CHECK(memcmp(&all, &same, sizeof all) == 0 || !strict, "nothing was allocated");
  CHECK(pread(fileno(err), said, sizeof said - 1, 0) > 0, " ");
  CHECK(pread(fileno(file), xml, sizeof xml - 1, 0) > 0, " ");
  fclose(err);
  fclose(file);
  if (!strict) return;
  size_t held = all.arena + all.hblkhd, used = all.uordblks + all.hblkhd;
  CHECK(number(said, "system bytes     =") == held, "%s", said);
  CHECK(number(said, "in use bytes     =") == used, "%s", said);
  CHECK(number(xml, "</heap>\n<total type=\"used\" size=\"") == used, "%s", xml);
  CHECK(number(xml, "<total type=\"mmap\" size=\"") == all.hblkhd, "%s", xml);
  CHECK(number(xml, "<system type=\"current\" size=\"") == held, "%s", xml);
  CHECK(strcmp(xml + strlen(xml) - 10, "</malloc>\n") == 0, "%s", xml);
}

int main(void) {
  strict = getenv("LARDER_TEST_STRICT") != NULL;
  enum { COUNT = 3000, SIZE = 1000 };
  static void *blocks[COUNT];
  free(opaque(malloc(1)));
  compare();
  struct mallinfo2 before = look();
  size_t usable = 0;
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = memset(opaque(malloc(SIZE)), 1, SIZE);
    usable += malloc_usable_size(blocks[i]);
  }
  compare();
  struct mallinfo2 with = look();
  size_t more = with.uordblks - before.uordblks;
  CHECK(usable >= COUNT * SIZE, "%zu", usable);
  /* A magazine of objects may be between what the heap knows and what is in use. */
  CHECK(more + 200000 >= usable && more <= usable + 400000, "%zu %zu", more, usable);
  void *large = opaque(malloc(8 << 20));
  memset(large, 1, 8 << 20);
  struct mallinfo2 larger = look();
  CHECK(larger.hblkhd >= with.hblkhd + (8 << 20), "%zu %zu", larger.hblkhd, with.hblkhd);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  CHECK((size_t)narrow.arena == larger.arena && (size_t)narrow.hblkhd == larger.hblkhd, " ");
  CHECK((size_t)narrow.uordblks == larger.uordblks && (size_t)narrow.fordblks == larger.fordblks, " ");
  CHECK((size_t)narrow.keepcost == larger.keepcost || !strict, " ");
  free(large);
  for (int i = 0; i < COUNT; i++) free(blocks[i]);
  struct mallinfo2 after = look();
  CHECK(after.hblkhd == before.hblkhd, "%zu", after.hblkhd);
  CHECK(after.uordblks < before.uordblks + 400000 || !strict, "%zu %zu", after.uordblks, before.uordblks);
  CHECK(malloc_trim(0) == 1, " ");
  struct mallinfo2 trimmed = look();
  CHECK(trimmed.arena < after.arena || !strict, "%zu %zu", trimmed.arena, after.arena);
  CHECK(trimmed.arena < before.arena + (1 << 20), "%zu %zu", trimmed.arena, before.arena);
  CHECK(malloc_trim(0) == 0 || !strict, "nothing is left to return");
  /* A large block alone, of which no slab goes. */
  large = opaque(malloc(8 << 20));
  memset(large, 1, 8 << 20);
  free(large);
  CHECK(malloc_trim(0) == 1 || !strict, "it has gone already");
  compare();
  CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1 && mallopt(M_ARENA_MAX, 1) == 1, "hints");
  CHECK(mallopt(12345, 1) == 0 || !strict, "there is no such option");
  return done();
}
