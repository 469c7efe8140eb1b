/* The size of what is no block is asked for.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  return malloc_usable_size(p + 8) != 0;
}

/* prints:
larder: invalid pointer: malloc_usable_size(@1), which is 8 bytes into a block
  here:
    main
  block of 100 bytes at @2, by malloc, thread T:
    get
    main
*/
