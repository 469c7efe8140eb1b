// Pages in C++: the pool and its pages owned by std::unique_ptr, errors as exceptions, threads.
//
//   c++ -std=c++17 pages.cpp $(pkg-config --cflags --libs larder) && ./a.out

#include <larder.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

struct PoolFree {
  void operator()(larder_pool *pool) const { larder_pool_free(pool); }
};
using Pool = std::unique_ptr<larder_pool, PoolFree>;

struct PagePut {
  larder_pool *pool;
  void operator()(void *page) const { larder_pool_put(pool, page); }
};
using Page = std::unique_ptr<void, PagePut>;

void must(larder_status status, const larder_error &error) {
  if (status != LARDER_OK) throw std::runtime_error(error.message);
}

Pool make_pool(size_t limit_bytes) {
  larder_error error{};
  larder_pool_options options;
  larder_pool_options_init(&options);
  options.limit_bytes = limit_bytes;
  options.flags = LARDER_POOL_IGNORE_ENVIRONMENT;
  larder_pool *pool = nullptr;
  must(larder_pool_new(&options, &pool, &error), error);
  return Pool(pool);
}

Page get(const Pool &pool) {
  larder_error error{};
  void *page = nullptr;
  must(larder_pool_get(pool.get(), &page, &error), error);
  return Page(page, PagePut{pool.get()});
}

}  // namespace

int main() {
  Pool pool = make_pool(32 << 20);
  const size_t page_size = larder_pool_page_size(pool.get());

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&pool, page_size, t] {
      std::vector<Page> pages;
      for (int i = 0; i < 200; i++) {
        pages.push_back(get(pool));
        std::memset(pages.back().get(), t, page_size);
        if (pages.size() > 20) pages.erase(pages.begin());
      }
      for (const Page &page : pages) {
        if (static_cast<unsigned char *>(page.get())[page_size - 1] != t) std::abort();
      }
    });
  }
  for (std::thread &thread : threads) thread.join();

  try {
    make_pool(1);  // less than a page
    return 1;
  } catch (const std::runtime_error &error) {
    std::printf("refused: %s\n", error.what());
  }
  size_t bytes = 0;
  larder_pool_trim(pool.get(), &bytes);
  std::puts("done");
  return 0;
}
