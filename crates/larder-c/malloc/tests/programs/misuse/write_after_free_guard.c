/* A freed block is written, whose pages are protected.
 * options: on,guard */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  poke(p + 12);
  return 0;
}

/* prints:
larder: use after free: byte 12 of a free block was touched, at @1
  here:
    poke
    main
  block of 100 bytes at @2, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
