/* A fault that has nothing to do with any block. */
#include "check.h"

int main(void) {
  free(opaque(malloc(100)));
  *(volatile char *)opaque((void *)16) = 1;
  return 0;
}
