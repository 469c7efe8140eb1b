/* A byte in the guard page after a block is written.
 * options: on,guard */
#include "misuse.h"

int main(void) {
  char *p = get(112);
  poke(p + 115);
  return 0;
}

/* prints:
larder: overflow: byte 3 after the end of a block was touched, at @1
  here:
    poke
    main
  block of 112 bytes at @2, by malloc, thread T:
    get
    main
*/
