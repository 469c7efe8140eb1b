/* A byte after the end of a block is written, and seen when it is to grow.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  poke(p + 100);
  p = (char *)realloc(p, 200);
  return p == NULL;
}

/* prints:
larder: overflow: byte 0 after the end of a block was written, seen by realloc(@1)
  here:
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
