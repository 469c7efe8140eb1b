/* A byte before a block is written that is never freed.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  poke(p - 1);
  return 0;
}

/* prints:
larder: underflow: byte 1 before a block was written, seen when all blocks were looked at
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
