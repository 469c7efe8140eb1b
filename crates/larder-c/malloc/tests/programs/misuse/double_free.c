/* Freed twice.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  give(p);
  return 0;
}

/* prints:
larder: double free: free(@1) of a block that is free
  here:
    give
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
