/* A block is freed with another alignment than it has.
 * options: on */
#include "misuse.h"

int main(void) {
  char *p = (char *)aligned_alloc(64, 128);
  free_aligned_sized(p, 32, 128);
  return 0;
}

/* prints:
larder: mismatched alignment: free_aligned_sized(@1) with alignment 32 of a block aligned to 64
  here:
    main
  block of 128 bytes at @1, by malloc, thread T:
    main
*/
