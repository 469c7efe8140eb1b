// Heaps in C++: an owner by RAII, a std::pmr::memory_resource and an allocator over it, and a cache of constructed objects.
//
//   c++ -std=c++17 heap.cpp $(pkg-config --cflags --libs larder) && ./a.out

#include <larder.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace larder {

inline void must(larder_status status, const larder_error &error) {
  if (status == LARDER_OK) return;
  if (status == LARDER_MEMORY || status == LARDER_LIMIT || status == LARDER_EXHAUSTED) throw std::bad_alloc();
  throw std::runtime_error(error.message);
}

struct Free {
  void operator()(larder_family *it) const { larder_family_free(it); }
  void operator()(larder_classes *it) const { larder_classes_free(it); }
  void operator()(larder_heap *it) const { larder_heap_free(it); }
  void operator()(larder_cache *it) const { larder_cache_free(it); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

inline Owned<larder_family> make_family(size_t limit_bytes) {
  larder_error error{};
  larder_pool_options pages;
  larder_pool_options_init(&pages);
  pages.limit_bytes = limit_bytes;
  pages.flags = LARDER_POOL_IGNORE_ENVIRONMENT;
  larder_family_options options;
  larder_family_options_init(&options);
  options.pages = &pages;
  larder_family *family = nullptr;
  must(larder_family_new(&options, &family, &error), error);
  return Owned<larder_family>(family);
}

inline Owned<larder_classes> make_classes(const Owned<larder_family> &family) {
  larder_error error{};
  larder_classes *classes = nullptr;
  must(larder_classes_new(family.get(), &classes, &error), error);
  return Owned<larder_classes>(classes);
}

/// A heap of one owner. It moves between threads, and is used by one at a time.
class Heap {
 public:
  /// Over classes that others share: objects outlive the heap.
  explicit Heap(const Owned<larder_classes> &classes) {
    larder_error error{};
    larder_heap *heap = nullptr;
    must(larder_heap_new(classes.get(), &heap, &error), error);
    heap_.reset(heap);
  }

  /// With slabs of its own: its end is the end of all its objects.
  static Heap private_of(const Owned<larder_family> &family) {
    larder_error error{};
    larder_heap *heap = nullptr;
    must(larder_heap_new_private(family.get(), &heap, &error), error);
    return Heap(heap);
  }

  void *allocate(size_t bytes, size_t align) {
    larder_error error;
    void *object = nullptr;
    must(larder_heap_alloc_aligned(heap_.get(), bytes, align, &object, &error), error);
    return object;
  }

  void deallocate(void *object, size_t bytes, size_t align) noexcept {
    // A size that does not fit its object is a defect of the program: nothing was given back.
    if (larder_heap_dealloc_aligned(heap_.get(), object, bytes, align) != LARDER_OK) std::abort();
  }

  void set_limit(size_t bytes) { larder_heap_set_limit(heap_.get(), bytes); }

  larder_heap_stats stats() const {
    larder_error error{};
    larder_heap_stats stats{};
    stats.size = sizeof stats;
    must(larder_heap_stats_read(heap_.get(), &stats, &error), error);
    return stats;
  }

 private:
  explicit Heap(larder_heap *heap) : heap_(heap) {}
  Owned<larder_heap> heap_;
};

/// For the containers of std::pmr. It does not own the heap.
class HeapResource : public std::pmr::memory_resource {
 public:
  explicit HeapResource(Heap &heap) : heap_(&heap) {}

 private:
  void *do_allocate(size_t bytes, size_t align) override { return heap_->allocate(bytes, align); }
  void do_deallocate(void *object, size_t bytes, size_t align) override { heap_->deallocate(object, bytes, align); }
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    const auto *heap = dynamic_cast<const HeapResource *>(&other);
    return heap != nullptr && heap->heap_ == heap_;
  }
  Heap *heap_;
};

/// For every other container.
template <class T>
class HeapAllocator {
 public:
  using value_type = T;
  explicit HeapAllocator(Heap &heap) : heap_(&heap) {}
  template <class U>
  HeapAllocator(const HeapAllocator<U> &other) : heap_(other.heap_) {}
  T *allocate(size_t n) {
    if (n > static_cast<size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T *>(heap_->allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T *object, size_t n) noexcept { heap_->deallocate(object, n * sizeof(T), alignof(T)); }
  template <class U>
  bool operator==(const HeapAllocator<U> &other) const {
    return heap_ == other.heap_;
  }
  template <class U>
  bool operator!=(const HeapAllocator<U> &other) const {
    return heap_ != other.heap_;
  }

 private:
  template <class U>
  friend class HeapAllocator;
  Heap *heap_;
};

/// A cache of values that stay constructed. No exception may leave the constructor for the library, so it is caught and becomes
/// a refusal.
template <class T>
class Cache {
 public:
  explicit Cache(const Owned<larder_family> &family) {
    larder_error error{};
    larder_cache_options options;
    larder_cache_options_init(&options);
    options.construct = [](void *object, void *) noexcept {
      try {
        new (object) T();
        return true;
      } catch (...) {
        return false;
      }
    };
    options.destruct = [](void *object, void *) noexcept { static_cast<T *>(object)->~T(); };
    larder_cache *cache = nullptr;
    must(larder_cache_new(family.get(), sizeof(T), alignof(T), &options, &cache, &error), error);
    cache_.reset(cache);
  }

  struct Put {
    larder_cache *cache;
    void operator()(T *object) const { larder_cache_put(cache, object); }
  };
  using Ptr = std::unique_ptr<T, Put>;

  /// A value as its last user left it. It must not outlive the cache.
  Ptr get() {
    larder_error error{};
    void *object = nullptr;
    must(larder_cache_get(cache_.get(), &object, &error), error);
    return Ptr(static_cast<T *>(object), Put{cache_.get()});
  }

 private:
  Owned<larder_cache> cache_;
};

}  // namespace larder

namespace {

struct Parser {
  std::vector<std::string> words;
  Parser() { words.reserve(100); }
};

struct Stubborn {
  Stubborn() { throw std::runtime_error("never"); }
};

int run() {
  auto family = larder::make_family(64 << 20);
  auto classes = larder::make_classes(family);

  // Each thread carries a heap along; what one allocated another gives back.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&classes] {
      larder::Heap heap(classes);
      larder::HeapResource resource(heap);
      std::pmr::map<int, std::pmr::string> map(&resource);
      for (int i = 0; i < 2000; i++) map[i % 500] = std::pmr::string(static_cast<size_t>(i % 200), 'x', &resource);
      for (const auto &[key, text] : map) {
        if (text.size() != static_cast<size_t>((1500 + key) % 200)) std::abort();
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  std::puts("four maps");

  larder::Heap heap(classes);
  {
    std::vector<double, larder::HeapAllocator<double>> numbers{larder::HeapAllocator<double>(heap)};
    for (int i = 0; i < 10000; i++) numbers.push_back(i);
    struct alignas(256) Wide {
      char bytes[256];
    };
    std::vector<Wide, larder::HeapAllocator<Wide>> wide(3, larder::HeapAllocator<Wide>(heap));
    std::printf("aligned: %s\n", reinterpret_cast<uintptr_t>(wide.data()) % 256 == 0 ? "yes" : "no");
  }
  const larder_heap_stats stats = heap.stats();
  std::printf("all given back: %s\n", stats.charged_bytes == stats.stocked_bytes ? "yes" : "no");

  // A heap that ends with everything in it, and moves.
  larder::Heap first = larder::Heap::private_of(family);
  first.set_limit(1 << 20);
  larder::Heap request = std::move(first);
  try {
    for (;;) request.allocate(1000, 8);
  } catch (const std::bad_alloc &) {
    std::puts("the limit is std::bad_alloc");
  }

  larder::Cache<Parser> parsers(family);
  const void *buffer = nullptr;
  {
    auto parser = parsers.get();
    parser->words.emplace_back("a word that is too long to lie within its string");
    buffer = parser->words.data();
    parser->words.clear();
  }
  std::printf("the parser kept its buffer: %s\n", parsers.get()->words.data() == buffer ? "yes" : "no");

  larder::Cache<Stubborn> stubborn(family);
  try {
    stubborn.get();
    return 1;
  } catch (const std::runtime_error &error) {
    std::printf("refused: %s\n", error.what());
  }
  std::puts("done");
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
