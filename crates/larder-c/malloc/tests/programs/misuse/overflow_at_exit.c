/* A byte after the end of a block is written that is never freed.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  poke(p + 100);
  return 0;
}

/* prints:
larder: overflow: byte 0 after the end of a block was written, seen when all blocks were looked at
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
