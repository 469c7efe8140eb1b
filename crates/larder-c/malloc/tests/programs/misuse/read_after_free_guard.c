/* A freed block is read, whose pages are protected.
 * options: on,guard */
#include "misuse.h"

OUT_OF_LINE char peek(volatile char *p) { return *p; }

int main(void) {
  char *p = get(100);
  give(p);
  return peek(p + 12);
}

/* prints:
larder: use after free: byte 12 of a free block was touched, at @1
  here:
    peek
    main
  block of 100 bytes at @2, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
