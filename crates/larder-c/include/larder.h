/*
 * The C interface of larder. Made by cbindgen from crates/larder-c: do not edit; a test compares them.
 *
 *   LARDER_BLESS=1 cargo test -p larder-c --test header     writes it anew
 *
 * Every function that can fail returns a larder_status. Those with a last argument of type larder_error also say what was
 * asked, what went wrong and what to do, in a buffer of the caller's: nothing is kept for a thread. It may be NULL.
 *
 * Handles are opaque. What a function makes, the function of the same name that ends in _free ends. NULL, a handle of another
 * kind and one that was freed are errors where they can be told; no function lets a Rust panic out.
 *
 * See docs/c-api.md.
 */

#ifndef LARDER_H
#define LARDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Bytes of the message of a `larder_error`, its end included. Longer messages are cut.
 */
#define LARDER_ERROR_BYTES 256

/**
 * The best mode that works here.
 */
#define LARDER_MODE_AUTO 0

/**
 * A lock per stock, tried and never waited for.
 */
#define LARDER_MODE_LOCKED 1

/**
 * Pages are backed at first touch, with a fault each, and not by the cluster.
 */
#define LARDER_POOL_NO_POPULATE 1

/**
 * Asks for transparent huge pages.
 */
#define LARDER_POOL_HUGE_PAGES 2

/**
 * Gives memory back by MADV_FREE: the kernel takes it when it needs it.
 */
#define LARDER_POOL_FREE_LAZILY 4

/**
 * Does not look at LARDER_CLUSTER_PAGES and LARDER_SETTINGS.
 */
#define LARDER_POOL_IGNORE_ENVIRONMENT 8

/**
 * How a call ended. Zero is success.
 */
enum larder_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  LARDER_OK = 0,
  /**
   * A pointer that must not be NULL is NULL.
   */
  LARDER_NULL = 1,
  /**
   * A number or a flag that makes no sense; the message names it.
   */
  LARDER_ARGUMENT = 2,
  /**
   * Not a handle of this kind, or one that was freed.
   */
  LARDER_HANDLE = 3,
  /**
   * A page that is not of this pool, or not the beginning of one.
   */
  LARDER_FOREIGN = 4,
  /**
   * The pool's own limit is in use.
   */
  LARDER_LIMIT = 5,
  /**
   * The addresses that the pool reserved are in use.
   */
  LARDER_EXHAUSTED = 6,
  /**
   * The system has no memory.
   */
  LARDER_MEMORY = 7,
  /**
   * A system call failed for another reason; `os_errno` has its number.
   */
  LARDER_SYSTEM = 8,
  /**
   * A setting in the environment or in a file that it names makes no sense.
   */
  LARDER_SETTING = 9,
  /**
   * The buffer is too small.
   */
  LARDER_BUFFER = 10,
  /**
   * A defect in larder: please report it with the message on stderr.
   */
  LARDER_PANIC = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum larder_status larder_status;
#else
typedef uint32_t larder_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Two magazines of pages that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one
 * may use it at a time. It keeps its pool open.
 */
typedef struct larder_page_handle larder_page_handle;

/**
 * A pool of pages. Every function may be called by many threads at once, but for larder_pool_free.
 */
typedef struct larder_pool larder_pool;

/**
 * Neighbouring pages of a pool, for buffers that live long. It may outlive the pool.
 */
typedef struct larder_run larder_run;

/**
 * What a failed call says, in memory of the caller's. A call that succeeds leaves it as it is.
 */
typedef struct larder_error {
  /**
   * The status that the call returned.
   */
  larder_status status;
  /**
   * The error number of the system call that failed, or 0.
   */
  int32_t os_errno;
  /**
   * What was asked, what went wrong, what to do; ends with a zero byte.
   */
  char message[LARDER_ERROR_BYTES];
} larder_error;

/**
 * Settings of a pool. `larder_pool_options_init` fills in the defaults.
 */
typedef struct larder_pool_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_pool_options)`.
   */
  size_t size;
  /**
   * Pages that are populated and given back together, 1 to 2^20; 0 chooses by the caches.
   */
  size_t cluster_pages;
  /**
   * Most bytes that the pool may hold; 0 is no limit.
   */
  size_t limit_bytes;
  /**
   * Addresses to reserve; 0 chooses.
   */
  size_t reserve_bytes;
  /**
   * Milliseconds that memory must be unused before it goes back; UINT64_MAX keeps it.
   */
  uint64_t decay_ms;
  /**
   * Pages of a magazine at first, 1 to 255; 0 chooses.
   */
  size_t magazine_pages;
  /**
   * Pages of a magazine at most, up to 255; 0 chooses.
   */
  size_t magazine_most_pages;
  /**
   * LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
   */
  uint32_t mode;
  /**
   * LARDER_POOL_* flags, or 0.
   */
  uint32_t flags;
} larder_pool_options;

/**
 * What the helper does. `larder_helper_options_init` fills in the defaults: upkeep only.
 */
typedef struct larder_helper_options {
  /**
   * Bytes of this struct, as the program knows it.
   */
  size_t size;
  /**
   * High-water mark of the pre-zeroed stock in pages; 0 is off.
   */
  size_t prezero_pages;
  /**
   * Pages that are kept populated ahead of need; 0 is off.
   */
  size_t ahead_pages;
  /**
   * Share of one CPU that the helper may use, above 0 and at most 1.
   */
  double cpu_budget;
  /**
   * Milliseconds between two looks when nobody wakes it; at least 1.
   */
  uint64_t interval_ms;
} larder_helper_options;

/**
 * Numbers of a pool, read without stopping anybody: they belong to slightly different moments.
 */
typedef struct larder_pool_stats {
  /**
   * Bytes of this struct; set it before the call to what the program knows.
   */
  size_t size;
  /**
   * Pages taken from a CPU's magazines.
   */
  uint64_t hits;
  /**
   * Gets that found their CPU's magazines empty, in magazines.
   */
  uint64_t misses;
  /**
   * Pages put onto a CPU's magazines.
   */
  uint64_t puts;
  /**
   * Bytes backed by memory: in use, in stock and free.
   */
  uint64_t held_bytes;
  /**
   * Bytes in use or in stock.
   */
  uint64_t out_bytes;
  /**
   * Most that may be held; UINT64_MAX without a limit.
   */
  uint64_t limit_bytes;
  /**
   * Calls that made addresses accessible.
   */
  uint64_t commit_calls;
  /**
   * Calls that populated a cluster.
   */
  uint64_t populate_calls;
  /**
   * Calls that gave memory back.
   */
  uint64_t decommit_calls;
  /**
   * Page faults that no consumer took.
   */
  uint64_t faults_avoided;
  /**
   * Bytes given back to the kernel.
   */
  uint64_t released_bytes;
  /**
   * Bytes that a get zeroed on the caller's thread.
   */
  uint64_t zeroed_by_caller_bytes;
  /**
   * Bytes that were zero when they were taken.
   */
  uint64_t zeroing_avoided_bytes;
  /**
   * Bytes that the helper zeroed.
   */
  uint64_t zeroed_by_helper_bytes;
  /**
   * Bytes that the helper populated ahead of need.
   */
  uint64_t fault_ahead_bytes;
  /**
   * CPU time of the helper in nanoseconds.
   */
  uint64_t helper_cpu_ns;
  /**
   * Bytes in the pre-zeroed stock's depot, at least.
   */
  uint64_t prezeroed_bytes;
  /**
   * Pages that a magazine may hold now.
   */
  uint64_t magazine_pages;
  /**
   * Magazines that exist.
   */
  uint64_t magazines;
} larder_pool_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The sentence of a status, in static memory; never NULL, also for a number that is no status. A larder_error says more.
 */
const char *larder_strerror(uint32_t status);

/**
 * The version of the library, for instance `0.1.0`, in static memory.
 */
const char *larder_version(void);

/**
 * Writes how magazines are kept in this process: per CPU by restartable sequences, or locked, and then why. `needed`, which
 * may be NULL, gets the bytes that the whole text takes, its end included.
 *
 * `buffer` has `bytes` bytes; it may be NULL when `bytes` is 0.
 */
larder_status larder_mode(char *buffer,
                          size_t bytes,
                          size_t *needed,
                          struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_pool_options`; NULL is an error.
 */
larder_status larder_pool_options_init(struct larder_pool_options *options);

/**
 * Makes a pool. `options` may be NULL for the defaults. `out` gets the pool, or NULL after a failure.
 */
larder_status larder_pool_new(const struct larder_pool_options *options,
                              struct larder_pool **out,
                              struct larder_error *error);

/**
 * Ends a pool; NULL does nothing. Pages and runs that are out stay usable, but pages can no longer be put: put them before.
 * Page handles keep their pool open. No other thread may use it meanwhile.
 */
larder_status larder_pool_free(struct larder_pool *pool);

/**
 * A page with a former owner's contents: the cheapest, for who overwrites it. `page` gets it, or NULL after a failure.
 */
larder_status larder_pool_get(const struct larder_pool *pool,
                              void **page,
                              struct larder_error *error);

/**
 * A page of zeroes, zeroed now if it is not known to be zero: warm for who writes most of it.
 */
larder_status larder_pool_get_zeroed(const struct larder_pool *pool,
                                     void **page,
                                     struct larder_error *error);

/**
 * A page of zeroes, from the pre-zeroed stock if there is one: for who writes little of it or only reads.
 */
larder_status larder_pool_get_zeroed_sparse(const struct larder_pool *pool,
                                            void **page,
                                            struct larder_error *error);

/**
 * Puts a page back. It must be in the caller's hands and is not used afterwards. What is not the beginning of a page of this
 * pool is LARDER_FOREIGN; a page that is put twice cannot be told.
 */
larder_status larder_pool_put(const struct larder_pool *pool,
                              void *page);

/**
 * Fills `pages[0]` to `pages[n - 1]` with pages as larder_pool_get gives them: all of them, or none and an error.
 */
larder_status larder_pool_get_many(const struct larder_pool *pool,
                                   void **pages,
                                   size_t n,
                                   struct larder_error *error);

/**
 * Puts `pages[0]` to `pages[n - 1]` back: all of them; or, when one of them is NULL or not of this pool, none and an error.
 */
larder_status larder_pool_put_many(const struct larder_pool *pool,
                                   void *const *pages,
                                   size_t n,
                                   struct larder_error *error);

/**
 * Gives back what an interval did not need: call it now and then where no helper runs and gets are rare. `bytes`, which may be
 * NULL, gets the bytes given back.
 */
larder_status larder_pool_maintain(const struct larder_pool *pool,
                                   size_t *bytes);

/**
 * Gives back everything that is not in use, now. `bytes`, which may be NULL, gets the bytes given back.
 */
larder_status larder_pool_trim(const struct larder_pool *pool,
                               size_t *bytes);

/**
 * Changes the limit on held bytes, 0 is none. What is held already stays until it goes back; nothing new is taken meanwhile.
 */
larder_status larder_pool_set_limit(const struct larder_pool *pool,
                                    size_t bytes,
                                    struct larder_error *error);

/**
 * Changes the pages of future clusters: 1 to 2^20, or 0 to choose by the caches.
 */
larder_status larder_pool_set_cluster(const struct larder_pool *pool,
                                      size_t pages,
                                      struct larder_error *error);

/**
 * Pages of a cluster from now on; 0 for what is no pool.
 */
size_t larder_pool_cluster_pages(const struct larder_pool *pool);

/**
 * Bytes of a page; 0 for what is no pool.
 */
size_t larder_pool_page_size(const struct larder_pool *pool);

/**
 * Makes a handle over a pool. `out` gets it, or NULL after a failure.
 */
larder_status larder_page_handle_new(const struct larder_pool *pool,
                                     struct larder_page_handle **out,
                                     struct larder_error *error);

/**
 * Ends a handle; NULL does nothing. Its stock goes back to the pool.
 */
larder_status larder_page_handle_free(struct larder_page_handle *handle);

/**
 * A page with a former owner's contents. `page` gets it, or NULL after a failure.
 */
larder_status larder_page_handle_get(struct larder_page_handle *handle,
                                     void **page,
                                     struct larder_error *error);

/**
 * A page of zeroes. `page` gets it, or NULL after a failure.
 */
larder_status larder_page_handle_get_zeroed(struct larder_page_handle *handle,
                                            void **page,
                                            struct larder_error *error);

/**
 * Puts a page of the handle's pool into the handle. As larder_pool_put otherwise.
 */
larder_status larder_page_handle_put(struct larder_page_handle *handle, void *page);

/**
 * Pages in the handle's stock; 0 for what is no handle.
 */
size_t larder_page_handle_len(const struct larder_page_handle *handle);

/**
 * Takes `pages` contiguous pages, zeroed or with a former owner's contents. `out` gets the run, or NULL after a failure.
 */
larder_status larder_pool_get_run(const struct larder_pool *pool,
                                  size_t pages,
                                  bool zeroed,
                                  struct larder_run **out,
                                  struct larder_error *error);

/**
 * The run's first byte; NULL for what is no run.
 */
void *larder_run_data(struct larder_run *run);

/**
 * The run's length in bytes; 0 for what is no run.
 */
size_t larder_run_bytes(const struct larder_run *run);

/**
 * Puts the run's pages back; NULL does nothing.
 */
larder_status larder_run_free(struct larder_run *run);

/**
 * Fills in the defaults. `options` points to a `larder_helper_options`; NULL is an error.
 */
larder_status larder_helper_options_init(struct larder_helper_options *options);

/**
 * Starts the helper thread, or replaces it. `options` may be NULL: upkeep only, every 100 ms, within 1 % of a CPU.
 */
larder_status larder_pool_start_helper(const struct larder_pool *pool,
                                       const struct larder_helper_options *options,
                                       struct larder_error *error);

/**
 * Stops the helper thread if there is one, and waits for it.
 */
larder_status larder_pool_stop_helper(const struct larder_pool *pool);

/**
 * Reads the numbers. `stats->size` says how much room the program has; it is set to what was written.
 */
larder_status larder_pool_stats_read(const struct larder_pool *pool,
                                     struct larder_pool_stats *stats,
                                     struct larder_error *error);

/**
 * Writes the numbers as one JSON object. `needed`, which may be NULL, gets the bytes that the whole takes, its end included;
 * a buffer that is too small is LARDER_BUFFER and holds the beginning. `buffer` may be NULL when `bytes` is 0.
 */
larder_status larder_pool_stats_json(const struct larder_pool *pool,
                                     char *buffer,
                                     size_t bytes,
                                     size_t *needed,
                                     struct larder_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LARDER_H */
