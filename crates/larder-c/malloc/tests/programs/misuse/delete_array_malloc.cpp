/* A block of malloc is deleted as an array.
 * options: on */
#include "misuse.h"

int main() {
  char *p = get(100);
  ::operator delete[](p);
}

/* prints:
larder: mismatched functions: operator delete[](@1) of a block of malloc
  here:
    main
  block of 100 bytes at @1, by malloc, thread T:
    get
    main
*/
