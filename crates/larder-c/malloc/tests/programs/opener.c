/* Loads a library and does nothing else: it is C, so nothing has called an operator of C++ before. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2 || !dlopen(argv[1], RTLD_NOW)) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "one library is needed");
    return 1;
  }
  puts("ok");
  return 0;
}
