/* A freed block is written; seen when its memory is to be used again.
 * options: on,quarantine=10000 */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  poke(p + 8);
  give(get(20000));
  return 0;
}

/* prints:
larder: use after free: byte 8 of a free block was written, seen before its memory is used again
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
