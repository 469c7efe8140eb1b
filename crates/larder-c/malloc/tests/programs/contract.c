/* What the C standard, POSIX and glibc's manual promise of each function. */
#include "check.h"
#include <malloc.h>

/* What larder promises beyond glibc. */
static int strict;

static void aligned(void *p, size_t alignment, size_t size) {
  CHECK(p != NULL, "of %zu aligned to %zu", size, alignment);
  CHECK((uintptr_t)p % alignment == 0, "%p to %zu", p, alignment);
  CHECK(malloc_usable_size(p) >= size, "%zu of %zu", malloc_usable_size(p), size);
  memset(p, 0xa5, malloc_usable_size(p));
}

static void sizes_of_zero(void) {
  void *a = opaque(malloc(0)), *b = opaque(malloc(0)), *c = opaque(calloc(0, 8)), *d = opaque(calloc(8, 0));
  CHECK(a && b && c && d, "a size of 0 is a block");
  CHECK(a != b && c != d && a != c, "each of its own");
  free(a), free(b), free(c), free(d);
  free(opaque(NULL));
  void *e = opaque(realloc(NULL, 0));
  CHECK(e != NULL, "realloc of nothing is malloc");
  errno = 0;
  CHECK(opaque(realloc(e, 0)) == NULL, "as in glibc: it frees");
  CHECK(malloc_usable_size(NULL) == 0, " ");
}

static void too_much(void) {
  size_t limit = opaque_size((size_t)PTRDIFF_MAX);
  size_t huge[] = {limit + 1, SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX - 15};
  for (unsigned i = 0; i < sizeof huge / sizeof *huge; i++) {
    size_t n = opaque_size(huge[i]);
    errno = 0;
    CHECK(opaque(malloc(n)) == NULL && errno == ENOMEM, "malloc(%zu)", n);
    errno = 0;
    CHECK(opaque(calloc(1, n)) == NULL && errno == ENOMEM, "calloc(1, %zu)", n);
    errno = 0;
    CHECK(opaque(memalign(64, n)) == NULL && errno == ENOMEM, "memalign(64, %zu)", n);
    errno = 0;
    CHECK(opaque(aligned_alloc(64, n)) == NULL && errno == ENOMEM, "aligned_alloc(64, %zu)", n);
    errno = 0;
    CHECK(opaque(valloc(n)) == NULL && errno == ENOMEM, "valloc(%zu)", n);
    errno = 0;
    CHECK(opaque(pvalloc(n)) == NULL && errno == ENOMEM, "pvalloc(%zu)", n);
    void *p = opaque(malloc(100));
    stamp(p, 100, 1);
    errno = 0;
    CHECK(opaque(realloc(p, n)) == NULL && errno == ENOMEM, "realloc(%zu)", n);
    CHECK(stamped(p, 100, 1), "a failed realloc leaves the block");
    errno = 0;
    CHECK(opaque(reallocarray(p, n, 2)) == NULL && errno == ENOMEM, "reallocarray");
    CHECK(stamped(p, 100, 1), "a failed reallocarray leaves the block");
    free(p);
    void *q = (void *)8;
    errno = 77;
    CHECK(posix_memalign(&q, 64, n) == ENOMEM, "posix_memalign");
    CHECK(q == (void *)8, "it leaves the pointer");
    CHECK(errno == 77 || !strict, "it leaves errno");
  }
  size_t half = opaque_size((size_t)1 << 33);
  errno = 0;
  CHECK(opaque(calloc(half, half)) == NULL && errno == ENOMEM, "the product wraps to 2^66");
  errno = 0;
  CHECK(opaque(calloc(half, ((size_t)1 << 31) + 1)) == NULL && errno == ENOMEM, "the product wraps to a small number");
  errno = 0;
  CHECK(opaque(reallocarray(NULL, half, ((size_t)1 << 31) + 1)) == NULL && errno == ENOMEM, "likewise");
}

static void alignments(void) {
  for (size_t a = 1; a <= 1 << 22; a *= 2) {
    size_t sizes[] = {0, 1, a - 1, a, a + 1, 3 * a + 5};
    for (unsigned i = 0; i < 6; i++) {
      void *p = opaque(aligned_alloc(a, sizes[i])), *q = opaque(memalign(a, sizes[i])), *r = NULL;
      aligned(p, a, sizes[i]);
      aligned(q, a, sizes[i]);
      if (a >= sizeof(void *)) {
        CHECK(posix_memalign(&r, a, sizes[i]) == 0, "of %zu to %zu", sizes[i], a);
        aligned(r, a, sizes[i]);
        stamp(r, sizes[i], 5);
        void *grown = opaque(realloc(r, sizes[i] * 2 + 1));
        CHECK(grown && stamped(grown, sizes[i], 5), "a block with an alignment can grow");
        free(grown);
      }
      free(p), free(q);
    }
  }
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *v = opaque(valloc(3)), *w = opaque(pvalloc(3)), *x = opaque(pvalloc(page + 1));
  aligned(v, page, 3);
  aligned(w, page, page);
  aligned(x, page, 2 * page);
  free(v), free(w), free(x);
}

static void wrong_alignments(void) {
  size_t bad[] = {0, 3, 4, 12, 24, 4097, SIZE_MAX, SIZE_MAX / 2};
  for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
    void *p = (void *)8;
    errno = 77;
    CHECK(posix_memalign(&p, opaque_size(bad[i]), 10) == EINVAL, "to %zu", bad[i]);
    CHECK(p == (void *)8, "it leaves the pointer");
    CHECK(errno == 77 || !strict, "it leaves errno");
  }
  /* memalign rounds them up, to what malloc aligns to at least. */
  size_t top = SIZE_MAX / 2 + 1;
  struct { size_t asked, got; int error; } odd[] = {
    {0, 16, 0}, {1, 16, 0}, {3, 16, 0}, {24, 32, 0}, {4097, 8192, 0}, {100000, 131072, 0},
    {top / 2 + 1, 0, ENOMEM}, {top, 0, ENOMEM}, {top + 1, 0, EINVAL}, {SIZE_MAX, 0, EINVAL},
  };
  for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
    size_t sizes[] = {0, 10, 100, 70000};
    for (unsigned j = 0; j < 4; j++) {
      errno = 0;
      void *p = opaque(memalign(opaque_size(odd[i].asked), sizes[j]));
      if (odd[i].error) CHECK(p == NULL && errno == odd[i].error, "memalign(%zu, %zu): %d", odd[i].asked, sizes[j], errno);
      else aligned(p, odd[i].got, sizes[j]);
      free(p);
    }
    /* glibc before 2.38 rounds here, too; C refuses. */
    if (!strict) continue;
    errno = 0;
    void *q = opaque(aligned_alloc(opaque_size(odd[i].asked), 10));
    int power = odd[i].asked == 1 || odd[i].asked == top;
    if (odd[i].asked == 1) CHECK(q, " ");
    else CHECK(q == NULL && errno == (power ? ENOMEM : EINVAL), "aligned_alloc(%zu): %d", odd[i].asked, errno);
    free(q);
  }
  errno = 0;
  CHECK(opaque(valloc(opaque_size(SIZE_MAX))) == NULL && errno == ENOMEM, " ");
  errno = 0;
  CHECK(opaque(pvalloc(opaque_size(SIZE_MAX))) == NULL && errno == ENOMEM, " ");
}

/* C23; a weak symbol is NULL with an older malloc. */
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static void sized_frees(void) {
  if (free_sized == NULL || free_aligned_sized == NULL) return;
  for (size_t n = 0; n < 70000; n += 1 + n / 3) {
    free_sized(opaque(malloc(n)), n);
    free_sized(opaque(calloc(n, 1)), n);
    for (size_t a = 8; a <= 8192; a *= 4) free_aligned_sized(opaque(aligned_alloc(a, n)), a, n);
  }
  free_sized(NULL, 7);
  free_aligned_sized(NULL, 8, 7);
}

static void errno_is_kept(void) {
  for (size_t n = 1; n <= (size_t)64 << 20; n *= 2) {
    void *p = opaque(malloc(n));
    CHECK(p, "%zu", n);
    memset(p, 1, n);
    errno = 4711;
    free(p);
    CHECK(errno == 4711, "free of %zu sets errno to %d", n, errno);
  }
}

int main(void) {
  strict = getenv("LARDER_TEST_STRICT") != NULL;
  sizes_of_zero();
  too_much();
  alignments();
  wrong_alignments();
  sized_frees();
  errno_is_kept();
  return done();
}
