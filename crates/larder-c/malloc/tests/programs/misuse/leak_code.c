/* A leak that becomes the exit code.
 * options: on,leaks=23 */
#include "misuse.h"

int main(void) {
  get(100);
  forget_calls();
  return 0;
}

/* prints:
larder: leak: 100 bytes in 1 block, by malloc:
    get
    main
larder: leaks: 100 bytes in 1 block from 1 place
*/
