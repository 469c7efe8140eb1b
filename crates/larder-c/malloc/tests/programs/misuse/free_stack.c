/* A variable on the stack is freed.
 * options: on */
#include "misuse.h"

int main(void) {
  int variable;
  give(&variable);
  return 0;
}

/* prints:
larder: invalid free: free(@1), which is on the stack
  here:
    give
    main
*/
