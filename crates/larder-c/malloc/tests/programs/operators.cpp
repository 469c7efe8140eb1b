// The operators of C++: plain, nothrow, sized, aligned; std::bad_alloc and the new-handler.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (0)

namespace {

template <typename T>
T *opaque(T *p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

size_t opaque(size_t n) {
  __asm__ volatile("" : "+r"(n));
  return n;
}

const size_t kHuge = opaque(static_cast<size_t>(PTRDIFF_MAX) + 1);
int handled;

void give_up_after_three() {
  if (++handled == 3) std::set_new_handler(nullptr);
}

void throws() { throw std::bad_alloc(); }

struct alignas(256) Wide {
  char bytes[300];
};

template <typename F>
bool throws_bad_alloc(F f) {
  try {
    f();
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

void pairs() {
  for (size_t n : {0, 1, 8, 100, 4096, 100000}) {
    n = opaque(n);
    ::operator delete(opaque(::operator new(n)));
    ::operator delete[](opaque(::operator new[](n)));
    ::operator delete(opaque(::operator new(n)), n);
    ::operator delete[](opaque(::operator new[](n)), n);
    ::operator delete(opaque(::operator new(n, std::nothrow)), std::nothrow);
    ::operator delete[](opaque(::operator new[](n, std::nothrow)), std::nothrow);
    for (size_t a : {8, 16, 64, 4096, 65536}) {
      auto at = std::align_val_t(a);
      void *p = opaque(::operator new(n, at));
      CHECK(reinterpret_cast<uintptr_t>(p) % a == 0);
      ::operator delete(p, at);
      p = opaque(::operator new[](n, at));
      CHECK(reinterpret_cast<uintptr_t>(p) % a == 0);
      ::operator delete[](p, n, at);
      p = opaque(::operator new(n, at, std::nothrow));
      CHECK(reinterpret_cast<uintptr_t>(p) % a == 0);
      ::operator delete(p, n, at);
      p = opaque(::operator new[](n, at, std::nothrow));
      ::operator delete[](p, at, std::nothrow);
      p = opaque(::operator new(n, at));
      ::operator delete(p, at, std::nothrow);
      p = opaque(::operator new[](n, at));
      ::operator delete[](p, at);
    }
  }
  ::operator delete(opaque(static_cast<void *>(nullptr)));
  auto wide = std::make_unique<Wide[]>(5);
  CHECK(reinterpret_cast<uintptr_t>(wide.get()) % 256 == 0);
}

void failures() {
  auto at = std::align_val_t(64);
  CHECK(throws_bad_alloc([] { opaque(::operator new(kHuge)); }));
  CHECK(throws_bad_alloc([] { opaque(::operator new[](kHuge)); }));
  CHECK(throws_bad_alloc([at] { opaque(::operator new(kHuge, at)); }));
  CHECK(throws_bad_alloc([at] { opaque(::operator new[](kHuge, at)); }));
  CHECK(opaque(::operator new(kHuge, std::nothrow)) == nullptr);
  CHECK(opaque(::operator new[](kHuge, std::nothrow)) == nullptr);
  CHECK(opaque(::operator new(kHuge, at, std::nothrow)) == nullptr);
  CHECK(opaque(::operator new[](kHuge, at, std::nothrow)) == nullptr);

  std::set_new_handler(give_up_after_three);
  CHECK(throws_bad_alloc([] { opaque(::operator new(kHuge)); }));
  CHECK(handled == 3);

  // Its exception must not leave an operator that throws nothing.
  std::set_new_handler(throws);
  CHECK(throws_bad_alloc([] { opaque(::operator new(kHuge)); }));
  CHECK(opaque(::operator new(kHuge, std::nothrow)) == nullptr);
  CHECK(opaque(::operator new[](kHuge, std::nothrow)) == nullptr);
  CHECK(opaque(::operator new(kHuge, at, std::nothrow)) == nullptr);
  std::set_new_handler(nullptr);
}

void containers() {
  std::map<std::string, std::vector<std::string>> map;
  for (int i = 0; i < 2000; i++) map["key " + std::to_string(i % 97)].push_back(std::string(i % 300, 'x'));
  size_t sum = 0;
  for (const auto &[key, values] : map)
    for (const auto &value : values) sum += value.size();
  size_t expected = 0;
  for (int i = 0; i < 2000; i++) expected += i % 300;
  CHECK(sum == expected);
}

}  // namespace

int main() {
  pairs();
  failures();
  containers();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(containers);
  for (auto &thread : threads) thread.join();
  std::puts("ok");
  return 0;
}
