// A program that replaces operator new(size_t) and operator delete(void *) and nothing else: all other forms must call them.

// It is what many programs do, and what the compiler warns of.
#pragma GCC diagnostic ignored "-Wsized-deallocation"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

static size_t news, deletes;

// A header before each block: a block that is given to another delete, or comes from another new, is noticed.
static const size_t kHeader = 16;
static const unsigned long kMark = 0x6c61726465726d6bul;

void *operator new(size_t size) {
  unsigned long *block = static_cast<unsigned long *>(std::malloc(size + kHeader));
  if (!block) throw std::bad_alloc();
  *block = kMark;
  ++news;
  return reinterpret_cast<char *>(block) + kHeader;
}

void operator delete(void *p) noexcept {
  if (!p) return;
  unsigned long *block = reinterpret_cast<unsigned long *>(static_cast<char *>(p) - kHeader);
  if (*block != kMark) {
    std::fprintf(stderr, "a block that is not of this new\n");
    std::_Exit(1);
  }
  *block = 0;
  ++deletes;
  std::free(block);
}

struct Large {
  char bytes[1000];
};

int main() {
  for (int i = 0; i < 1000; ++i) {
    delete new Large;                                  // sized
    delete[] new Large[3];                             // an array's
    void *quiet = operator new(100, std::nothrow);
    operator delete(quiet, std::nothrow);
    void *quiet_array = operator new[](100, std::nothrow);
    operator delete[](quiet_array, std::nothrow);
    std::vector<std::string> strings(5, std::string(100, 'x'));
  }
  if (news != deletes || news < 5000) {
    std::fprintf(stderr, "%zu news, %zu deletes\n", news, deletes);
    return 1;
  }
  std::puts("ok");
  return 0;
}
