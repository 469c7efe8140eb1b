// Records in a file of blocks, which several threads count in; each handle frees itself, and errors are exceptions.
//
//   c++ -std=c++17 blocks.cpp $(pkg-config --cflags --libs larder) -lpthread && ./a.out

#include <larder.h>

#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

void check(larder_status status, const larder_error &error) {
  if (status != LARDER_OK) throw std::runtime_error(error.message);
}

// What lies below: files in memory, whose functions throw nothing that leaves them.
class Disk {
public:
  static int read(void *user, uint64_t file, uint64_t offset, void *into, size_t bytes, size_t *done) {
    auto *disk = static_cast<Disk *>(user);
    std::lock_guard<std::mutex> lock(disk->mutex);
    const auto &bytes_of = disk->files[file];
    *done = offset < bytes_of.size() ? std::min(bytes, bytes_of.size() - static_cast<size_t>(offset)) : 0;
    if (*done > 0) std::memcpy(into, bytes_of.data() + offset, *done);
    return 0;
  }

  static int write(void *user, uint64_t file, uint64_t offset, const void *from, size_t bytes, size_t *done) {
    auto *disk = static_cast<Disk *>(user);
    std::lock_guard<std::mutex> lock(disk->mutex);
    auto &bytes_of = disk->files[file];
    if (bytes_of.size() < offset + bytes) bytes_of.resize(offset + bytes);
    std::memcpy(bytes_of.data() + offset, from, bytes);
    *done = bytes;
    return 0;
  }

  std::size_t size(uint64_t file) {
    std::lock_guard<std::mutex> lock(mutex);
    return files[file].size();
  }

private:
  std::mutex mutex;
  std::map<uint64_t, std::vector<char>> files;
};

struct Free {
  void operator()(larder_blocks *blocks) const { larder_blocks_free(blocks); }
  void operator()(larder_blocks_file *file) const { larder_blocks_file_free(file); }
  void operator()(larder_blocks_handle *handle) const { larder_blocks_handle_free(handle); }
};

template <class T> using Owned = std::unique_ptr<T, Free>;

// A block for as long as this is there.
class Pinned {
public:
  Pinned(larder_blocks_handle *handle, const larder_blocks_file *file, uint64_t index, uint64_t end) {
    larder_error error;
    check(larder_blocks_handle_pin_write(handle, file, index, end, 0, &block, &error), error);
  }
  ~Pinned() { larder_blocks_unpin(&block); }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;

  uint64_t *words() const { return static_cast<uint64_t *>(block.data); }

private:
  larder_block block{};
};

Owned<larder_blocks_handle> handle_of(larder_blocks *blocks) {
  larder_error error;
  larder_blocks_handle *handle = nullptr;
  check(larder_blocks_handle_new(blocks, &handle, &error), error);
  return Owned<larder_blocks_handle>(handle);
}

} // namespace

int main() {
  try {
    Disk disk;
    larder_error error;
    larder_blocks_options options;
    larder_blocks_options_init(&options);
    options.bytes = 32 * 4096; // the file has twice as many blocks
    options.policy = "s3-fifo";
    options.read = Disk::read;
    options.write = Disk::write;
    options.user = &disk;
    larder_blocks *made = nullptr;
    check(larder_blocks_new(&options, &made, &error), error);
    Owned<larder_blocks> blocks(made);
    const size_t size = larder_blocks_block_bytes(made);
    const uint64_t many = 64, end = (many - 1) * size + 8; // the last one is short

    larder_blocks_file *opened = nullptr;
    check(larder_blocks_file_open(made, 7, 0, 0, &opened, &error), error);
    Owned<larder_blocks_file> file(opened);

    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++) {
      threads.emplace_back([&] {
        auto handle = handle_of(blocks.get());
        for (int turn = 0; turn < 50; turn++)
          for (uint64_t index = 0; index < many; index++) Pinned(handle.get(), file.get(), index, end).words()[0] += 1;
      });
    }
    for (auto &thread : threads) thread.join();
    check(larder_blocks_file_sync(file.get(), &error), error);

    auto handle = handle_of(blocks.get());
    std::vector<char> all(end);
    check(larder_blocks_handle_read(handle.get(), file.get(), 0, all.data(), all.size(), &error), error);
    bool right = true;
    for (uint64_t index = 0; index < many; index++) {
      uint64_t count;
      std::memcpy(&count, all.data() + index * size, sizeof count);
      right = right && count == 200;
    }
    std::cout << "each block was counted 200 times: " << (right ? "yes" : "no") << "\n";
    std::cout << "the file ends where it was said: " << (disk.size(7) == end ? "yes" : "no") << "\n";

    options.policy = "best";
    larder_blocks *none = nullptr;
    try {
      check(larder_blocks_new(&options, &none, &error), error);
    } catch (const std::runtime_error &refused) {
      std::cout << "refused: " << refused.what() << "\n";
    }
    std::cout << "done\n";
    return 0;
  } catch (const std::exception &failed) {
    std::cerr << failed.what() << "\n";
    return 1;
  }
}
