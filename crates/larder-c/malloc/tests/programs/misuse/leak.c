/* Blocks that nothing points to at the end, and others that something does.
 * options: on,leaks */
#include "misuse.h"

char *kept;
struct { char *inside; } table;
__thread char *of_thread;
char *last; /* a pointer behind the end keeps nothing */
char **deep;

OUT_OF_LINE void lose(int n) {
  for (int i = 0; i < n; i++) get(100);
}

OUT_OF_LINE void keep(void) {
  kept = get(1);
  table.inside = get(200) + 50;
  of_thread = get(2);
  deep = (char **)get(64);
  deep[3] = get(5);
  last = get(1000);
  last += 1000;
}

int main(void) {
  lose(3);
  get(0);
  keep();
  forget_calls();
  return 0;
}

/* prints:
larder: leak: 1000 bytes in 1 block, by malloc:
    get
    keep
    main
larder: leak: 300 bytes in 3 blocks, by malloc:
    get
    lose
    main
larder: leak: 0 bytes in 1 block, by malloc:
    get
    main
larder: leaks: 1300 bytes in 5 blocks from 3 places
*/
