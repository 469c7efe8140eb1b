/* A byte in the guard page before a block is read.
 * options: on,guard */
#include "misuse.h"

int main(void) {
  char *p = get(4096);
  poke(p - 1);
  return 0;
}

/* prints:
larder: underflow: byte 1 before a block was touched, at @1
  here:
    poke
    main
  block of 4096 bytes at @2, by malloc, thread T:
    get
    main
*/
