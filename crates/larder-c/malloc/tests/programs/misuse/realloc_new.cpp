/* A block of operator new is to grow.
 * options: on */
#include "misuse.h"

int main() {
  void *p = ::operator new(100);
  p = realloc(p, 200);
  return p == NULL;
}

/* prints:
larder: mismatched functions: realloc(@1) of a block of operator new
  here:
    main
  block of 100 bytes at @1, by operator new, thread T:
    main
*/
