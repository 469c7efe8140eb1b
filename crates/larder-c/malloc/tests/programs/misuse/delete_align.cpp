/* A block with an alignment is deleted without one.
 * options: on */
#include "misuse.h"

#include <new>

int main() {
  void *p = ::operator new(100, std::align_val_t(256));
  ::operator delete(p);
}

/* prints:
larder: mismatched alignment: operator delete(@1) with alignment 16 of a block aligned to 256
  here:
    main
  block of 100 bytes at @1, by operator new, thread T:
    main
*/
