/* An address after the end of a block is freed.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p + 104);
  return 0;
}

/* prints:
larder: invalid free: free(@1), which is 4 bytes after the end of a block
  here:
    give
    main
  block of 100 bytes at @2, by malloc, thread T:
    get
    main
*/
