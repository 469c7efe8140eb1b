/* A block of operator new is freed.
 * options: on */
#include "misuse.h"

int main() {
  void *p = ::operator new(100);
  give(p);
}

/* prints:
larder: mismatched functions: free(@1) of a block of operator new
  here:
    give
    main
  block of 100 bytes at @1, by operator new, thread T:
    main
*/
