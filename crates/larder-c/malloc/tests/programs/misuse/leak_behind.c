/* Blocks that only lost blocks point to: a tree, and a ring.
 * options: on,leaks */
#include "misuse.h"

OUT_OF_LINE void tree(void) {
  char **root = (char **)get(64);
  root[7] = get(32);
}

OUT_OF_LINE void ring(void) {
  char **a = (char **)get(16), **b = (char **)get(16);
  a[0] = (char *)b;
  b[1] = (char *)a;
}

int main(void) {
  tree();
  ring();
  forget_calls();
  return 0;
}

/* prints:
larder: leak: 64 bytes in 1 block, by malloc:
    get
    tree
    main
larder: leak: 32 bytes in 1 block, by malloc, behind other leaks:
    get
    tree
    main
larder: leak: 16 bytes in 1 block, by malloc, behind other leaks:
    get
    ring
    main
larder: leak: 16 bytes in 1 block, by malloc, behind other leaks:
    get
    ring
    main
larder: leaks: 128 bytes in 4 blocks from 4 places
*/
