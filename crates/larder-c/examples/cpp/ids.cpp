// Identifiers in C++: a guard that gives its number back, and a table whose handles go stale, for many threads.
//
//   c++ -std=c++17 ids.cpp $(pkg-config --cflags --libs larder) && ./a.out

#include <larder.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace larder {

inline void must(larder_status status, const larder_error &error) {
  if (status != LARDER_OK) throw std::runtime_error(error.message);
}

/// A range of identifiers.
class Ids {
 public:
  explicit Ids(const larder_ids_options &options) {
    larder_error error{};
    larder_ids *ids = nullptr;
    must(larder_ids_new(&options, &ids, &error), error);
    ids_.reset(ids);
  }

  /// An identifier that goes back when its owner ends.
  class Guard {
   public:
    explicit Guard(const Ids &ids) : ids_(ids.ids_.get()) {
      larder_error error{};
      must(larder_ids_alloc(ids_, &id_, &error), error);
    }
    Guard(Guard &&other) noexcept : ids_(std::exchange(other.ids_, nullptr)), id_(other.id_) {}
    Guard &operator=(Guard &&) = delete;
    ~Guard() {
      if (ids_ != nullptr) larder_ids_dealloc(ids_, id_, nullptr);
    }
    uint64_t id() const { return id_; }

   private:
    larder_ids *ids_;
    uint64_t id_ = 0;
  };

  Guard guard() const { return Guard(*this); }

  uint64_t allocated() const {
    larder_error error{};
    larder_ids_stats stats{};
    stats.size = sizeof stats;
    must(larder_ids_stats_read(ids_.get(), &stats, &error), error);
    return stats.allocated_ids;
  }

  larder_ids *get() const { return ids_.get(); }

 private:
  struct Free {
    void operator()(larder_ids *ids) const { larder_ids_free(ids); }
  };
  std::unique_ptr<larder_ids, Free> ids_;
};

/// Values by handle: a handle of a value that was erased finds nothing, even when its slot is used again.
template <class T>
class Table {
 public:
  explicit Table(uint32_t slots) : ids_(options(slots)), values_(slots) {}

  uint64_t insert(T value) {
    larder_error error{};
    uint64_t handle = 0;
    must(larder_ids_alloc(ids_.get(), &handle, &error), error);
    std::lock_guard<std::mutex> lock(mutex_);
    values_[*slot(handle)] = std::move(value);
    return handle;
  }

  std::optional<T> find(uint64_t handle) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::optional<uint64_t> at = slot(handle);
    return at ? std::optional<T>(values_[*at]) : std::nullopt;
  }

  bool erase(uint64_t handle) { return larder_ids_dealloc(ids_.get(), handle, nullptr) == LARDER_OK; }

 private:
  static larder_ids_options options(uint32_t slots) {
    larder_ids_options options;
    larder_ids_options_init(&options);
    options.last = slots - 1;
    options.rule = LARDER_RULE_LOWEST;
    options.handle_bits = 64;
    options.slot_bits = 32;
    return options;
  }

  std::optional<uint64_t> slot(uint64_t handle) const {
    uint64_t slot = 0;
    if (larder_ids_check(ids_.get(), handle, &slot, nullptr) != LARDER_OK) return std::nullopt;
    return slot;
  }

  Ids ids_;
  mutable std::mutex mutex_;
  std::vector<T> values_;
};

}  // namespace larder

namespace {

int run() {
  larder_ids_options options;
  larder_ids_options_init(&options);
  options.last = 255;
  larder::Ids tags(options);

  // Each tag has one owner at a time.
  std::vector<std::atomic<int>> owners(256);
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; i++) {
        const auto tag = tags.guard();
        const auto other = tags.guard();
        for (const uint64_t id : {tag.id(), other.id()}) {
          if (owners[id]++ != 0) shared = true;
        }
        for (const uint64_t id : {tag.id(), other.id()}) owners[id]--;
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  std::printf("one owner each: %s, %llu left allocated\n", shared ? "no" : "yes",
              static_cast<unsigned long long>(tags.allocated()));

  larder::Table<std::string> sessions(2);
  const uint64_t old = sessions.insert("the first session");
  std::printf("%s\n", sessions.find(old)->c_str());
  if (!sessions.erase(old) || sessions.erase(old)) return 1;
  const uint64_t now = sessions.insert("another in its slot");
  std::printf("the old handle: %s\n", sessions.find(old) ? "found" : "stale");
  std::printf("%s\n", sessions.find(now)->c_str());

  sessions.insert("the last slot");
  try {
    sessions.insert("one too many");
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
