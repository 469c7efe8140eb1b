/* Pairs of malloc and free of one size, as many as the argument says. */
#include "check.h"

int main(int argc, char **argv) {
  long pairs = argc > 1 ? atol(argv[1]) : 1000;
  for (long i = 0; i < pairs; i++) free(opaque(malloc(64)));
  return 0;
}
