/* A static variable is freed.
 * options: on */
#include "misuse.h"

static long variable[4];

int main(void) {
  give(&variable[2]);
  return 0;
}

/* prints:
larder: invalid free: free(@1), which is in a module's code or data
  here:
    give
    main
*/
