/* A block is freed with another size than it has.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  free_sized(p, 99);
  return 0;
}

/* prints:
larder: mismatched size: free_sized(@1) with 99 bytes of a block of 100
  here:
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
