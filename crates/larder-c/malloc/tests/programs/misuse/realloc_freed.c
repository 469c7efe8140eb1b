/* A freed block is to grow.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = get(100);
  give(p);
  p = (char *)realloc(p, 200);
  return p == NULL;
}

/* prints:
larder: double free: realloc(@1) of a block that is free
  here:
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
  freed by thread T:
    give
    main
*/
