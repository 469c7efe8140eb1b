/* A byte after the end of a block is written.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  poke(p + 103);
  give(p);
  return 0;
}

/* prints:
larder: overflow: byte 3 after the end of a block was written, seen by free(@1)
  here:
    give
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
