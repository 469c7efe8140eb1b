// A library whose constructor starts a thread and waits for it. The thread that loads the library holds the loader's lock, so
// what the started thread calls must not ask the loader: neither the operators of C++ nor malloc.

#include <pthread.h>

#include <cstdlib>
#include <new>

// Out of the compiler's sight, which would leave out a pair.
static void *volatile sink;

template <typename T>
static T *kept(T *p) {
  sink = p;
  return static_cast<T *>(sink);
}

static void *work(void *) {
  delete[] kept(new int[10]);
  delete kept(new long);
  delete kept(new (std::nothrow) long);
  delete[] kept(new (std::nothrow) long[2000]);
  std::free(kept(std::malloc(100)));
  return nullptr;
}

__attribute__((constructor)) static void begin() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, work, nullptr) || pthread_join(thread, nullptr)) std::abort();
}
