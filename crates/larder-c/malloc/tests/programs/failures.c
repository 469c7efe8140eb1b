/* How many of 5000 allocations failed, 1000 by each of five functions; each failure must be as the function's manual says. */
#include "check.h"
#include <malloc.h>

int main(void) {
  int failed = 0;
  for (int i = 0; i < 1000; i++) {
    void *p[5] = {0};
    for (int j = 0; j < 5; j++) {
      errno = 0;
      int code = ENOMEM;
      switch (j) {
        case 0: p[j] = opaque(malloc(100)); break;
        case 1: p[j] = opaque(calloc(10, 10)); break;
        case 2: p[j] = opaque(realloc(NULL, 100)); break;
        case 3: p[j] = opaque(aligned_alloc(64, 128)); break;
        default: code = posix_memalign(&p[j], 64, 100);
      }
      if (p[j] == NULL) {
        failed++;
        CHECK(code == ENOMEM && (errno == ENOMEM || j == 4), "%d", errno);
      }
    }
    for (int j = 0; j < 5; j++) free(p[j]);
  }
  dprintf(1, "%d\n", failed);
  return 0;
}
