/* A byte before a block is written.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  poke(p - 3);
  give(p);
  return 0;
}

/* prints:
larder: underflow: byte 3 before a block was written, seen by free(@1)
  here:
    give
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
