// A library of C++ whose `new` finds no memory. The program that loads it is C and shares no names with it, so only this library
// sees the C++ library.

#include <cstdint>
#include <cstdlib>
#include <new>

// Out of the compiler's sight, which would leave out a call without use.
static void *volatile sink;
static volatile size_t huge = static_cast<size_t>(PTRDIFF_MAX) + 1;
static int handled;

static void gives_up() {
  ++handled;
  std::set_new_handler(nullptr);
}

static void throws() {
  ++handled;
  throw std::bad_alloc();
}

static void check(bool holds) {
  if (!holds) std::abort();
}

static bool is_refused() {
  try {
    sink = ::operator new(huge);
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

__attribute__((constructor)) static void begin() {
  check(is_refused());
  check(::operator new(huge, std::nothrow) == nullptr);
  std::set_new_handler(gives_up);
  check(is_refused() && handled == 1);
  std::set_new_handler(throws);
  check(is_refused() && handled == 2);
  check(::operator new(huge, std::nothrow) == nullptr && handled == 3);
}
