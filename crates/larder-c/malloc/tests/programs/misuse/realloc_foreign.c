/* What is no block is to grow.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  p = (char *)realloc(p + 1, 200);
  return p == NULL;
}

/* prints:
larder: invalid free: realloc(@1), which is 1 byte into a block
  here:
    main
  block of 100 bytes at @2, by malloc, thread T:
    get
    main
*/
