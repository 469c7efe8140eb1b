/* A byte after the end of a large block is written that has grown where it was.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = (char *)realloc(get(100000), 100001);
  char *q = (char *)realloc(p, 100002);
  if (q != p) return 1;
  poke(q + 100001);
  poke(q + 100002);
  give(q);
  return 0;
}

/* prints:
larder: overflow: byte 0 after the end of a block was written, seen by free(@1)
  here:
    give
    main
  block of 100002 bytes at @1, by malloc, thread T:
    main
*/
