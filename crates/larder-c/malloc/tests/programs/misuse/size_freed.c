/* The size of a freed block is asked for.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  return malloc_usable_size(p) != 0;
}

/* prints:
larder: use after free: malloc_usable_size(@1) of a block that is free
  here:
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
