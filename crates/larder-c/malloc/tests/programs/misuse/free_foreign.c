/* An address that was never allocated is freed.
 * options: on */
#include "misuse.h"

int main(void) {
  give((void *)0x123450);
  return 0;
}

/* prints:
larder: invalid free: free(@1), where no block is
  here:
    give
    main
*/
