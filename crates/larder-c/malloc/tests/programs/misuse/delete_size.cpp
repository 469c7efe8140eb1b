/* A block is deleted with another size than it has.
 * options: on */
#include "misuse.h"

int main() {
  void *p = ::operator new(100);
  ::operator delete(p, (size_t)96);
}

/* prints:
larder: mismatched size: operator delete(@1) with 96 bytes of a block of 100
  here:
    main
  block of 100 bytes at @1, by operator new, thread T:
    main
*/
