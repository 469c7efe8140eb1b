/* One object is deleted as an array.
 * options: on */
#include "misuse.h"

int main() {
  void *p = ::operator new(100);
  ::operator delete[](p);
}

/* prints:
larder: mismatched functions: operator delete[](@1) of a block of operator new
  here:
    main
  block of 100 bytes at @1, by operator new, thread T:
    main
*/
