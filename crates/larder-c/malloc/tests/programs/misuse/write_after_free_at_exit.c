/* A freed block is written; seen at the end.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  poke(p);
  return 0;
}

/* prints:
larder: use after free: byte 0 of a free block was written, seen when all blocks were looked at
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
