/* A block of new that is lost.
 * options: on,leaks */
#include "misuse.h"

OUT_OF_LINE void lose() {
  void *p = ::operator new[](100);
  __asm__ volatile("" : : "r"(p) : "memory"); /* or there would be no call */
}

int main() {
  lose();
  forget_calls();
}

/* prints:
larder: leak: 100 bytes in 1 block, by operator new[]:
    lose
    main
larder: leaks: 100 bytes in 1 block from 1 place
*/
