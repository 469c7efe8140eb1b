/* Nothing is lost.
 * options: on,leaks=23 */
#include "misuse.h"

char *kept;

int main(void) {
  kept = get(10);
  give(get(100));
  return 0;
}

/* prints:
larder: leaks: none
*/
