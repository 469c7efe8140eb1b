/*
 * The C interface of larder. Made by cbindgen from crates/larder-c: do not edit; a test compares them.
 *
 *   LARDER_BLESS=1 cargo test -p larder-c --test header up_to_date     writes it anew
 *
 * Every function that can fail returns a larder_status. A function with a last argument of type larder_error, which may be NULL,
 * also writes there what was asked, what is wrong and what to do. No error is kept for a thread.
 *
 * Handles are opaque. The function with the same prefix and the ending _free ends a handle; _put or _dealloc takes back what a
 * handle gave out. NULL, a handle of another kind and a freed handle are errors where they can be detected. No Rust panic leaves a
 * function.
 *
 * larder calls the program's callbacks without a lock. They must return: longjmp and C++ exceptions must not leave them. They must
 * not end the handle that calls them.
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
 * The arena's own fit.
 */
#define LARDER_FIT_DEFAULT 0

/**
 * A segment of a list whose segments are all large enough: constant time.
 */
#define LARDER_FIT_INSTANT 1

/**
 * The smallest segment in which it fits.
 */
#define LARDER_FIT_BEST 2

/**
 * The next place after the last allocation: numbers that are given back are not handed out again soon.
 */
#define LARDER_FIT_NEXT 3

/**
 * A span that was added by hand; its segments follow.
 */
#define LARDER_SEGMENT_ADDED_SPAN 1

/**
 * A span from the source; its segments follow.
 */
#define LARDER_SEGMENT_IMPORTED_SPAN 2

/**
 * Free.
 */
#define LARDER_SEGMENT_FREE 3

/**
 * With a consumer.
 */
#define LARDER_SEGMENT_ALLOCATED 4

/**
 * In a magazine of a quantum cache.
 */
#define LARDER_SEGMENT_CACHED 5

/**
 * Any free one: the fastest where many threads allocate.
 */
#define LARDER_RULE_ANY 0

/**
 * The lowest free one, as POSIX wants it of descriptors.
 */
#define LARDER_RULE_LOWEST 1

/**
 * The next free one after the last, as in process ids.
 */
#define LARDER_RULE_CYCLIC 2

/**
 * The one that was given back first: it is away for as long as possible.
 */
#define LARDER_RULE_FIFO 3

/**
 * When all free identifiers rest, hands out the one that rests longest. Without it that is LARDER_EXHAUSTED.
 */
#define LARDER_IDS_RELAX_REST 1

/**
 * A slot whose generations are used up begins again, and a handle that was kept that long may be taken for a new one. Without it
 * the slot is retired.
 */
#define LARDER_IDS_REUSE_GENERATIONS 2

/**
 * Slabs stay with the cache until it ends: memory of an object may be read after its put, and is then an object of the same kind,
 * free or used again.
 */
#define LARDER_CACHE_TYPE_STABLE 1

/**
 * The first object of every slab begins at a page, without cache colouring.
 */
#define LARDER_CACHE_NO_COLOUR 2

/**
 * Bytes of the name in larder_cache_stats, its end included.
 */
#define LARDER_NAME_BYTES 32

/**
 * Where a file ends that did not say so.
 */
#define LARDER_BLOCKS_NO_END UINT64_MAX

/**
 * The block is written from front to end: it is not read first.
 */
#define LARDER_BLOCKS_OVERWRITE 1

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
   * A page, an object, a segment or an identifier that did not come from here, that is not the beginning of one, or that was already given back.
   */
  LARDER_FOREIGN = 4,
  /**
   * A limit that the program has set is reached.
   */
  LARDER_LIMIT = 5,
  /**
   * Nothing free is large enough: addresses that a pool reserved, spans of an arena, identifiers, numbers of caches.
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
  /**
   * A part of it is still in use, the identifier asked for is taken, one of its callbacks runs, or SQLite has begun.
   */
  LARDER_BUSY = 12,
  /**
   * The size that was given back differs from the size that was allocated there.
   */
  LARDER_SIZE = 13,
  /**
   * The source of an arena's spans gave none.
   */
  LARDER_SOURCE = 14,
  /**
   * The constructor of a cache failed.
   */
  LARDER_CONSTRUCTOR = 15,
  /**
   * A function of a block cache's storage failed; `os_errno` has what it returned.
   */
  LARDER_STORAGE = 16,
  /**
   * A failed sync took blocks of the file that cannot be written again: truncate it to 0 and write it anew.
   */
  LARDER_LOST = 17,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum larder_status larder_status;
#else
typedef uint32_t larder_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Ranges of numbers: addresses, page indexes, identifiers, blocks of a disk. Every function except
 * larder_arena_free and larder_arena_destroy may be called by many threads at once.
 */
typedef struct larder_arena larder_arena;

/**
 * Magazines of one owner for the sizes that have a quantum cache: no lock, no restartable section. It may move between threads,
 * but only one may use it at a time. Others may give back what it took, and it may give back what others took. It keeps its arena.
 */
typedef struct larder_arena_handle larder_arena_handle;

/**
 * A cache of blocks of files: each is read once for all threads, kept by a replacement rule, and written back in order. A block
 * is a page of the system. Every function except larder_blocks_free may be called by many threads at once.
 */
typedef struct larder_blocks larder_blocks;

/**
 * An open file of a block cache. Each opening reports failed writes separately. Many threads may use it at once.
 */
typedef struct larder_blocks_file larder_blocks_file;

/**
 * One thread's access to a block cache. It may move between threads, but only one may use it at a time. It keeps its cache.
 */
typedef struct larder_blocks_handle larder_blocks_handle;

/**
 * A cache of objects of one size, which stay constructed while they are free. Every function except larder_cache_free
 * and larder_cache_destroy may be called by many threads at once.
 */
typedef struct larder_cache larder_cache;

/**
 * A magazine of objects that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one may
 * use it at a time, and no callback may use the handle that called it. It keeps its cache.
 */
typedef struct larder_cache_handle larder_cache_handle;

/**
 * A cache of objects for every size class, made when it is first needed. It hands out memory to all threads at once, from the
 * magazines of their CPUs, and heaps are made from it. Every function except larder_classes_free may be called by many threads.
 */
typedef struct larder_classes larder_classes;

/**
 * Caches and heaps over one pool of pages, and the table of which cache owns which page. A program usually has one. Every function
 * except larder_family_free may be called by many threads at once.
 */
typedef struct larder_family larder_family;

/**
 * Memory of any size for one owner that carries it along: an interpreter, a request, a shard. No lock, no atomic instruction, no
 * thread-local. It may move between threads, but only one may use it at a time.
 */
typedef struct larder_heap larder_heap;

/**
 * Identifiers of a range: process ids, file numbers, slots of a table. Every function except larder_ids_free and larder_ids_destroy
 * may be called by many threads at once.
 */
typedef struct larder_ids larder_ids;

/**
 * A magazine of pages that only their owner uses: no lock, no atomic instruction. It may move between threads, but only one
 * may use it at a time. It keeps its pool open.
 */
typedef struct larder_page_handle larder_page_handle;

/**
 * A pool of pages. Every function except larder_pool_free may be called by many threads at once.
 */
typedef struct larder_pool larder_pool;

/**
 * Neighbouring pages of a pool, for buffers that live long. It may outlive the pool.
 */
typedef struct larder_run larder_run;

/**
 * The message of a failed call, in memory of the caller. A call that succeeds does not change it.
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
   * What was asked, what is wrong and what to do; ends with a zero byte.
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
 * Settings of the helper. `larder_helper_options_init` fills in the defaults: upkeep only.
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
   * Milliseconds between two passes when no thread wakes it; at least 1.
   */
  uint64_t interval_ms;
} larder_helper_options;

/**
 * Numbers of a pool, read while threads go on: they belong to slightly different moments.
 */
typedef struct larder_pool_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
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
   * Page faults that consumers were spared.
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

/**
 * A span that a source gives: `units` numbers from `addr` on.
 */
typedef struct larder_span {
  /**
   * First number.
   */
  uint64_t addr;
  /**
   * Numbers.
   */
  uint64_t units;
} larder_span;

/**
 * Gives a span of at least `units` whose first number is a multiple of `align`, a power of two; false when it cannot. It is called
 * without a lock, from any thread, by several at once. It must return: no longjmp, no C++ exception.
 */
typedef bool (*larder_import_fn)(uint64_t units,
                                 uint64_t align,
                                 struct larder_span *span,
                                 void *user);

/**
 * Takes back a span exactly as it was given. The same rules apply.
 */
typedef void (*larder_release_fn)(const struct larder_span *span, void *user);

/**
 * Settings of an arena. `larder_arena_options_init` fills in the defaults.
 */
typedef struct larder_arena_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_arena_options)`.
   */
  size_t size;
  /**
   * A name for errors, which is copied; NULL is "arena".
   */
  const char *name;
  /**
   * All sizes and addresses are multiples of this power of two; 0 is 1.
   */
  uint64_t quantum;
  /**
   * Largest size with a quantum cache, at most 16 quanta; 0 is none.
   */
  uint64_t quantum_max;
  /**
   * The first span: its first number. More can be added by larder_arena_add.
   */
  uint64_t span_addr;
  /**
   * The first span: its units; 0 is no span.
   */
  uint64_t span_units;
  /**
   * Most units that all spans together may have; UINT64_MAX is no limit.
   */
  uint64_t limit_units;
  /**
   * Spans are imported in multiples of this; 0 chooses.
   */
  uint64_t import_units;
  /**
   * Segments of a magazine at first, 1 to 255; 0 chooses.
   */
  size_t magazine_segments;
  /**
   * Segments of a magazine at most, up to 255; 0 chooses.
   */
  size_t magazine_most_segments;
  /**
   * LARDER_FIT_INSTANT, LARDER_FIT_BEST or LARDER_FIT_NEXT; LARDER_FIT_DEFAULT is instant.
   */
  uint32_t fit;
  /**
   * LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
   */
  uint32_t mode;
  /**
   * Another arena that spans are imported from; NULL is none.
   */
  const struct larder_arena *source;
  /**
   * A function of the program that gives spans; NULL is none. Not together with `source`.
   */
  larder_import_fn import;
  /**
   * Takes spans back that `import` gave; NULL when the source takes none back.
   */
  larder_release_fn release;
  /**
   * Handed to both functions. It must live until the arena, all its handles and all arenas over it are gone.
   */
  void *user;
} larder_arena_options;

/**
 * What larder_arena_xalloc must find. `larder_arena_request_init` fills in the defaults; then set `units`.
 */
typedef struct larder_arena_request {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_arena_request)`.
   */
  size_t size;
  /**
   * Numbers in a row.
   */
  uint64_t units;
  /**
   * The first is a multiple of this, a power of two; 0 is 1.
   */
  uint64_t align;
  /**
   * The first lies this many units after a multiple of `align`.
   */
  uint64_t phase;
  /**
   * No multiple of this power of two lies inside, except at the beginning; 0 is no such boundary.
   */
  uint64_t nocross;
  /**
   * The first number is at least this.
   */
  uint64_t min;
  /**
   * The last number is at most this.
   */
  uint64_t max;
  /**
   * A LARDER_FIT_* for this request.
   */
  uint32_t fit;
  /**
   * 0.
   */
  uint32_t reserved;
} larder_arena_request;

/**
 * One segment, or a span as a whole.
 */
typedef struct larder_segment {
  /**
   * First number.
   */
  uint64_t addr;
  /**
   * Numbers.
   */
  uint64_t units;
  /**
   * A LARDER_SEGMENT_*.
   */
  uint32_t kind;
  /**
   * 0.
   */
  uint32_t reserved;
} larder_segment;

/**
 * Sees one segment; false ends the walk. It may use the arena. It must return: no longjmp, no C++ exception.
 */
typedef bool (*larder_visit_fn)(const struct larder_segment *segment, void *user);

/**
 * Numbers of an arena, all of one moment. Units are the arena's: bytes, pages or identifiers.
 */
typedef struct larder_arena_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Units in all spans.
   */
  uint64_t total_units;
  /**
   * Units in free segments.
   */
  uint64_t free_units;
  /**
   * Units that were cut from free segments: with consumers, and in the magazines of quantum caches.
   */
  uint64_t allocated_units;
  /**
   * Units in spans that came from the source.
   */
  uint64_t imported_units;
  /**
   * Units in spans from the source that are free as a whole.
   */
  uint64_t idle_units;
  /**
   * Most units that all spans may have; UINT64_MAX without a limit.
   */
  uint64_t limit_units;
  /**
   * Spans.
   */
  uint64_t spans;
  /**
   * Segments, free and allocated.
   */
  uint64_t segments;
  /**
   * Segments cut from free ones. What a quantum cache recycles is not counted.
   */
  uint64_t allocs;
  /**
   * Segments given back to free ones, without those that a quantum cache recycles.
   */
  uint64_t frees;
  /**
   * Calls that failed.
   */
  uint64_t fails;
  /**
   * Spans imported.
   */
  uint64_t imports;
  /**
   * Spans given back to the source.
   */
  uint64_t releases;
  /**
   * Bytes of memory that the arena's metadata may use, without magazines.
   */
  uint64_t bookkeeping_bytes;
} larder_arena_stats;

/**
 * Numbers of one quantum cache, read while threads go on.
 */
typedef struct larder_quantum_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Units of each of its segments.
   */
  uint64_t units;
  /**
   * Segments taken from a CPU's magazines.
   */
  uint64_t hits;
  /**
   * Takes that found their CPU's magazines empty.
   */
  uint64_t misses;
  /**
   * Segments given to a CPU's magazines.
   */
  uint64_t puts;
  /**
   * Full magazines in the depot.
   */
  uint64_t full_magazines;
  /**
   * Segments that a magazine may hold now.
   */
  uint64_t magazine_segments;
} larder_quantum_stats;

/**
 * Settings of identifiers. `larder_ids_options_init` fills in the defaults: 0 to 65535, any free one.
 */
typedef struct larder_ids_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_ids_options)`.
   */
  size_t size;
  /**
   * The smallest identifier.
   */
  uint64_t first;
  /**
   * The largest one. Up to 2^24 of them lie ready for each CPU as far as the rule allows it; more are always behind a lock.
   */
  uint64_t last;
  /**
   * Other identifiers that must be handed out before one that was given back is handed out again; 0 is no rest. Those that have
   * rested are handed out lowest first, always behind a lock.
   */
  uint64_t rest_allocations;
  /**
   * Milliseconds that an identifier rests after it was given back; 0 is no rest. Not together with `rest_allocations`.
   */
  uint64_t rest_ms;
  /**
   * The generation that every slot begins with: another one than before a restart refuses the handles of the former life.
   */
  uint64_t first_generation;
  /**
   * A LARDER_RULE_*.
   */
  uint32_t rule;
  /**
   * LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
   */
  uint32_t mode;
  /**
   * Bits of a handle, 8 to 64: the number of its slot, and above it a generation, which counts how often the slot was given back.
   * 0 is no generation: identifiers are the numbers themselves.
   */
  uint32_t handle_bits;
  /**
   * Bits of the slot in a handle; 0 is as many as `last` has. The rest are the generation's, at least 1.
   */
  uint32_t slot_bits;
  /**
   * LARDER_IDS_* flags, or 0.
   */
  uint32_t flags;
  /**
   * 0.
   */
  uint32_t reserved;
} larder_ids_options;

/**
 * Numbers of identifiers, read while threads go on: they belong to slightly different moments.
 */
typedef struct larder_ids_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Identifiers that owners have.
   */
  uint64_t allocated_ids;
  /**
   * Identifiers that may be allocated now or after a rest; UINT64_MAX for more.
   */
  uint64_t free_ids;
  /**
   * Slots whose generations are used up.
   */
  uint64_t retired_ids;
  /**
   * Identifiers taken from a CPU's magazines.
   */
  uint64_t hits;
  /**
   * Bytes of memory for all of it.
   */
  uint64_t bookkeeping_bytes;
} larder_ids_stats;

/**
 * Settings of a family. `larder_family_options_init` fills in the defaults.
 */
typedef struct larder_family_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_family_options)`.
   */
  size_t size;
  /**
   * Settings of the pool that slabs come from, its limit and reservation among them; NULL for the defaults.
   */
  const struct larder_pool_options *pages;
  /**
   * The working-set interval in milliseconds: memory that a whole interval did not need goes back. 0 keeps no free memory
   * beyond magazines.
   */
  uint64_t interval_ms;
  /**
   * LARDER_MODE_AUTO or LARDER_MODE_LOCKED, for the magazines of caches; the pool has its own.
   */
  uint32_t mode;
  /**
   * 0.
   */
  uint32_t flags;
  /**
   * Most bytes of free memory that the family keeps beside as much as is in use; SIZE_MAX for no bound. 0 is 64 MiB, and up to a
   * sixteenth of the machine's memory when memory that went back is needed again within an interval.
   */
  size_t cached_bytes;
} larder_family_options;

/**
 * Numbers of a family. See also those of its caches, and those of its pool (larder_family_pool).
 */
typedef struct larder_family_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Bytes backed by memory: slabs, large objects, and free pages.
   */
  uint64_t held_bytes;
  /**
   * Most of these; UINT64_MAX without a limit.
   */
  uint64_t limit_bytes;
  /**
   * Bytes in large objects.
   */
  uint64_t large_bytes;
  /**
   * Bytes of metadata of caches and slabs, in addition.
   */
  uint64_t metadata_bytes;
} larder_family_stats;

/**
 * Constructs an object in place; false when it fails, and then the object is not constructed. It is called without a lock, from any
 * thread, by several at once, and may use other caches. It must return: no longjmp, no C++ exception.
 */
typedef bool (*larder_construct_fn)(void *object, void *user);

/**
 * Destroys a constructed object before its slab goes back, and must accept it however its users left it. The same rules apply.
 */
typedef void (*larder_destruct_fn)(void *object, void *user);

/**
 * Called when memory is short: puts back objects that the program can do without. It must not end the cache. The same rules apply.
 */
typedef void (*larder_reclaim_fn)(void *user);

/**
 * Ends what `user` points to: called once, from any thread, after the last call of the others has returned. That may be later than
 * larder_cache_free, when it was called while the cache's callbacks ran or another thread asked all caches for memory. Not called
 * for a cache that could not be made. The same rules apply.
 */
typedef void (*larder_cache_end_fn)(void *user);

/**
 * Settings of a cache. `larder_cache_options_init` fills in the defaults.
 */
typedef struct larder_cache_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_cache_options)`.
   */
  size_t size;
  /**
   * A name for statistics, of which 31 bytes are copied; NULL is none.
   */
  const char *name;
  /**
   * Most bytes of slabs; 0 is no limit.
   */
  size_t limit_bytes;
  /**
   * Fewest pages of a slab, up to 64; 0 is 1. With large slabs, a cache with many objects ends faster.
   */
  size_t slab_pages;
  /**
   * Objects of a magazine at first, 1 to 255; 0 chooses.
   */
  size_t magazine_objects;
  /**
   * Objects of a magazine at most, up to 255; 0 chooses.
   */
  size_t magazine_most_objects;
  /**
   * LARDER_CACHE_* flags, or 0.
   */
  uint32_t flags;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * NULL: objects have the contents that a former user left.
   */
  larder_construct_fn construct;
  /**
   * NULL: objects need no destructor.
   */
  larder_destruct_fn destruct;
  /**
   * NULL: no function is called.
   */
  larder_reclaim_fn reclaim;
  /**
   * Handed to the functions. It must live until `end` is called, or without one until the family and all that is of it are gone.
   */
  void *user;
  /**
   * NULL: no function is called when `user` is no longer needed.
   */
  larder_cache_end_fn end;
} larder_cache_options;

/**
 * Numbers of a cache, read while threads go on: they belong to slightly different moments.
 */
typedef struct larder_cache_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Its name; ends with a zero byte.
   */
  char name[LARDER_NAME_BYTES];
  /**
   * Bytes of an object, as requested.
   */
  uint64_t object_bytes;
  /**
   * Bytes from one object to the next.
   */
  uint64_t stride_bytes;
  /**
   * Objects of a slab.
   */
  uint64_t objects_per_slab;
  /**
   * Slabs.
   */
  uint64_t slabs;
  /**
   * Bytes of these slabs.
   */
  uint64_t held_bytes;
  /**
   * Most bytes of slabs; UINT64_MAX without a limit.
   */
  uint64_t limit_bytes;
  /**
   * Free objects in slabs.
   */
  uint64_t in_slabs;
  /**
   * Objects in use, in handles and in stock.
   */
  uint64_t out;
  /**
   * Gets served from a CPU's magazines. Gets of handles are not counted here.
   */
  uint64_t hits;
  /**
   * Gets that found their CPU's magazines empty.
   */
  uint64_t misses;
  /**
   * Objects that the constructor made.
   */
  uint64_t constructed;
  /**
   * Objects that the destructor destroyed.
   */
  uint64_t destroyed;
  /**
   * Pointers that were put but did not belong here; they were not taken.
   */
  uint64_t refused;
  /**
   * Objects that a magazine may hold now.
   */
  uint64_t magazine_objects;
  /**
   * Magazines that exist in the family.
   */
  uint64_t magazines;
} larder_cache_stats;

/**
 * Numbers of a heap.
 */
typedef struct larder_heap_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Bytes taken and not given back: objects in use, and free ones in the heap's magazines. What another heap gives back stays on
   * this one's account.
   */
  uint64_t charged_bytes;
  /**
   * Bytes of these in large objects.
   */
  uint64_t large_bytes;
  /**
   * Bytes of free objects in the heap's magazines.
   */
  uint64_t stocked_bytes;
  /**
   * Most that may be taken; UINT64_MAX without a limit.
   */
  uint64_t limit_bytes;
  /**
   * Allocations that found the loaded magazine empty, and large ones.
   */
  uint64_t refills;
} larder_heap_stats;

/**
 * Called when a heap takes more than the bytes set, on the thread that allocates. It may use the heap, but not end it. It must return:
 * no longjmp, no C++ exception.
 */
typedef void (*larder_warning_fn)(const struct larder_heap_stats *stats, void *user);

/**
 * Reads from `offset` of a file, up to `bytes`, and says in `done` how many there were; 0 is the end of the file. Returns 0, or an
 * error number of the system (`errno.h`); EINTR is tried again. It is called without a lock, from any thread, by several at once.
 * It must return: no longjmp, no C++ exception.
 */
typedef int (*larder_blocks_read_fn)(void *user,
                                     uint64_t file,
                                     uint64_t offset,
                                     void *into,
                                     size_t bytes,
                                     size_t *done);

/**
 * Writes at `offset` of a file, as much as it can, and says in `done` how many bytes. The same rules apply.
 */
typedef int (*larder_blocks_write_fn)(void *user,
                                      uint64_t file,
                                      uint64_t offset,
                                      const void *from,
                                      size_t bytes,
                                      size_t *done);

/**
 * Returns when all that was written to the file is safe. The same rules apply.
 */
typedef int (*larder_blocks_sync_fn)(void *user, uint64_t file);

/**
 * Ends what `user` points to: called once, after the last call of the others has returned. Not called for a cache that could not be
 * made. The same rules apply.
 */
typedef void (*larder_blocks_end_fn)(void *user);

/**
 * Settings of a block cache. `larder_blocks_options_init` fills in the defaults.
 */
typedef struct larder_blocks_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_blocks_options)`.
   */
  size_t size;
  /**
   * Bytes of blocks in memory; 64 MiB by default.
   */
  size_t bytes;
  /**
   * Most that larder_blocks_set_bytes may ask for; 0 is `bytes`.
   */
  size_t most_bytes;
  /**
   * Most blocks read ahead of a sequential reader; 32 by default, 0 is off.
   */
  size_t read_ahead;
  /**
   * Milliseconds that a block may be dirty until larder_blocks_maintain writes it; 30,000 by default.
   */
  uint64_t dirty_age_ms;
  /**
   * Percent of the cache that may be dirty; 50 by default.
   */
  uint32_t dirty_percent;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The replacement rule; NULL is `adaptive`.
   */
  const char *policy;
  /**
   * Where pages come from; NULL is a pool of its own. The cache keeps it open.
   */
  const struct larder_pool *pool;
  /**
   * NULL, with `write` NULL too: files are kept in memory.
   */
  larder_blocks_read_fn read;
  /**
   * NULL with `read`: nothing can be written.
   */
  larder_blocks_write_fn write;
  /**
   * NULL: what was written is safe.
   */
  larder_blocks_sync_fn sync;
  /**
   * Handed to the functions. It must live until `end` is called, or without one until the cache and all that is of it are gone.
   */
  void *user;
  /**
   * NULL: no function is called when `user` is no longer needed. Not called where `read` and `write` are NULL.
   */
  larder_blocks_end_fn end;
  /**
   * NULL, or the path of a settings file (`larder sim --settings`): the policy and the bytes that it has for a block cache count in
   * place of `policy` and `bytes`.
   */
  const char *settings;
} larder_blocks_options;

/**
 * Numbers of a block cache. Uses that handles have not reported yet, up to 192 each, are not in them.
 */
typedef struct larder_blocks_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * The rule; ends with a zero byte.
   */
  char policy[LARDER_NAME_BYTES];
  /**
   * Uses that found their block.
   */
  uint64_t hits;
  /**
   * Uses that did not.
   */
  uint64_t misses;
  /**
   * Misses of blocks that the rule still remembered.
   */
  uint64_t refaults;
  /**
   * Blocks read ahead.
   */
  uint64_t read_ahead;
  /**
   * Blocks read ahead that left without a use.
   */
  uint64_t wasted;
  /**
   * Blocks that left to make room.
   */
  uint64_t evictions;
  /**
   * Blocks written to the storage.
   */
  uint64_t written;
  /**
   * Changed blocks that were forgotten and never written.
   */
  uint64_t discarded;
  /**
   * Writes that failed.
   */
  uint64_t write_errors;
  /**
   * Reads that failed.
   */
  uint64_t read_errors;
  /**
   * Blocks in memory.
   */
  uint64_t resident;
  /**
   * Blocks in memory that the storage does not have yet.
   */
  uint64_t dirty;
  /**
   * Files that are open, or have blocks in memory yet.
   */
  uint64_t files;
  /**
   * Most blocks there may be now.
   */
  uint64_t capacity;
  /**
   * Bytes of the cache's tables and lists.
   */
  uint64_t table_bytes;
} larder_blocks_stats;

/**
 * Numbers of a file since it was opened, by all its openings, or of all files of a tenant.
 */
typedef struct larder_blocks_file_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Uses that found their block.
   */
  uint64_t hits;
  /**
   * Uses that did not.
   */
  uint64_t misses;
  /**
   * Misses of blocks that the rule still remembered.
   */
  uint64_t refaults;
  /**
   * Blocks read ahead.
   */
  uint64_t read_ahead;
  /**
   * Blocks read ahead that left without a use.
   */
  uint64_t wasted;
  /**
   * Blocks that left to make room.
   */
  uint64_t evictions;
  /**
   * Blocks written to the storage.
   */
  uint64_t written;
  /**
   * Changed blocks that were forgotten and never written.
   */
  uint64_t discarded;
  /**
   * Blocks in memory.
   */
  uint64_t resident;
  /**
   * Blocks in memory that the storage does not have yet.
   */
  uint64_t dirty;
} larder_blocks_file_stats;

/**
 * A pinned block: it stays in memory, where `data` points, until it is unpinned. The caller gives the memory for this struct and may
 * move it, but not copy it and unpin both.
 */
typedef struct larder_block {
  /**
   * The block; NULL when nothing is pinned.
   */
  void *data;
  /**
   * Its bytes; of one pinned for writing, as many as the file has of it.
   */
  size_t bytes;
  /**
   * The library's.
   */
  size_t inside[5];
} larder_block;

/**
 * Settings of SQLite's page cache. `larder_sqlite_options_init` fills in the defaults.
 */
typedef struct larder_sqlite_options {
  /**
   * Bytes of this struct, as the program knows it: `sizeof(larder_sqlite_options)`.
   */
  size_t size;
  /**
   * The replacement rule; NULL is `adaptive`. Each cache has its own.
   */
  const char *policy;
  /**
   * Most bytes that the pages of all caches may have together; UINT64_MAX is no limit, and the default. `PRAGMA cache_size` bounds
   * each cache as before.
   */
  uint64_t limit_bytes;
  /**
   * NULL, or the path of a settings file (`larder sim --settings`): the policy and the bytes that it has for a block cache count in
   * place of `policy` and `limit_bytes`.
   */
  const char *settings;
} larder_sqlite_options;

/**
 * The type of `sqlite3_config`.
 */
typedef int (*larder_sqlite3_config_fn)(int, ...);

/**
 * Numbers of all page caches of the process, read while threads go on: they belong to slightly different moments.
 */
typedef struct larder_sqlite_stats {
  /**
   * Bytes of this struct as the program knows it; set it before the call.
   */
  size_t size;
  /**
   * Caches that there are: a connection has one for each of its databases.
   */
  uint64_t caches;
  /**
   * Bytes of the pages that are in them.
   */
  uint64_t bytes;
  /**
   * Bytes of memory for them: with what each page has besides, and free memory that was not given back.
   */
  uint64_t held_bytes;
  /**
   * Most bytes that the pages may have; UINT64_MAX without a limit.
   */
  uint64_t limit_bytes;
  /**
   * Pages that are in use or dirty.
   */
  uint64_t pinned;
  /**
   * Pages that SQLite found in a cache.
   */
  uint64_t hits;
  /**
   * Pages that it did not find, and that came in.
   */
  uint64_t misses;
  /**
   * Pages that left to make room.
   */
  uint64_t evictions;
} larder_sqlite_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The text of a status, in static memory; never NULL, even for a number that is no status. A larder_error says more.
 */
const char *larder_strerror(uint32_t status);

/**
 * The version of the library, for instance `0.1.0`, in static memory.
 */
const char *larder_version(void);

/**
 * Writes how magazines are kept in this process: per CPU by restartable sequences, or locked with the reason. `needed`, which
 * may be NULL, gets the bytes of the whole text, its end included.
 *
 * `buffer` has `bytes` bytes; it may be NULL when `bytes` is 0.
 *
 * # Safety
 * `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_mode(char *buffer,
                          size_t bytes,
                          size_t *needed,
                          struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_pool_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_pool_options_init(struct larder_pool_options *options);

/**
 * Makes a pool. `options` may be NULL for the defaults. `out` gets the pool, or NULL after a failure.
 *
 * # Safety
 * `options` is NULL or has as many bytes as its first field says; `out` and `error` are NULL or can be written.
 */
larder_status larder_pool_new(const struct larder_pool_options *options,
                              struct larder_pool **out,
                              struct larder_error *error);

/**
 * Ends a pool; NULL does nothing. Pages and runs in use stay usable, but pages can no longer be put: put them before.
 * Page handles keep their pool open. No other thread may use it meanwhile.
 *
 * # Safety
 * `pool` is NULL or a live pool, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_pool_free(struct larder_pool *pool);

/**
 * A page with an earlier owner's contents: the cheapest, for callers that overwrite it. `page` gets it, or NULL after a failure.
 *
 * # Safety
 * `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
 */
larder_status larder_pool_get(const struct larder_pool *pool,
                              void **page,
                              struct larder_error *error);

/**
 * A page of zeroes, zeroed now if it is not known to be zero: warm, for callers that write most of it.
 *
 * # Safety
 * `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
 */
larder_status larder_pool_get_zeroed(const struct larder_pool *pool,
                                     void **page,
                                     struct larder_error *error);

/**
 * A page of zeroes, from the pre-zeroed stock if there is one: for callers that write little of it or only read.
 *
 * # Safety
 * `pool` is NULL or a live pool; `page` and `error` are NULL or can be written.
 */
larder_status larder_pool_get_zeroed_sparse(const struct larder_pool *pool,
                                            void **page,
                                            struct larder_error *error);

/**
 * Puts a page back. The caller must own it and not use it afterwards. An address that is not the beginning of a page of this
 * pool is LARDER_FOREIGN; a page that is put twice is not detected.
 *
 * # Safety
 * `pool` is NULL or a live pool; what `page` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_pool_put(const struct larder_pool *pool,
                              void *page);

/**
 * Fills `pages[0]` to `pages[n - 1]` with pages as from larder_pool_get: all of them, or none and an error.
 *
 * # Safety
 * `pool` is NULL or a live pool; `pages` has room for `n` pointers; `error` is NULL or can be written.
 */
larder_status larder_pool_get_many(const struct larder_pool *pool,
                                   void **pages,
                                   size_t n,
                                   struct larder_error *error);

/**
 * Puts `pages[0]` to `pages[n - 1]` back: all of them; or, when one of them is NULL or not of this pool, none and an error.
 *
 * # Safety
 * `pool` is NULL or a live pool; `pages` has `n` pointers, of what is in the caller's hands and not used afterwards; `error`
 * is NULL or can be written.
 */
larder_status larder_pool_put_many(const struct larder_pool *pool,
                                   void *const *pages,
                                   size_t n,
                                   struct larder_error *error);

/**
 * Gives back memory that an interval did not need: call it now and then where no helper runs and gets are rare. `bytes`, which may
 * be NULL, gets the bytes given back.
 *
 * # Safety
 * `pool` is NULL or a live pool; `bytes` is NULL or can be written.
 */
larder_status larder_pool_maintain(const struct larder_pool *pool,
                                   size_t *bytes);

/**
 * Gives back everything that is not in use, now. `bytes`, which may be NULL, gets the bytes given back.
 *
 * # Safety
 * `pool` is NULL or a live pool; `bytes` is NULL or can be written.
 */
larder_status larder_pool_trim(const struct larder_pool *pool,
                               size_t *bytes);

/**
 * Changes the limit on held bytes; 0 is none. A pool above its limit keeps what it holds until that goes back, and takes nothing new.
 *
 * # Safety
 * `pool` is NULL or a live pool; `error` is NULL or can be written.
 */
larder_status larder_pool_set_limit(const struct larder_pool *pool,
                                    size_t bytes,
                                    struct larder_error *error);

/**
 * Changes the pages of future clusters: 1 to 2^20, or 0 to choose by the caches.
 *
 * # Safety
 * `pool` is NULL or a live pool; `error` is NULL or can be written.
 */
larder_status larder_pool_set_cluster(const struct larder_pool *pool,
                                      size_t pages,
                                      struct larder_error *error);

/**
 * Pages of a cluster from now on; 0 for a pointer that is no pool.
 *
 * # Safety
 * `pool` is NULL or a live pool.
 */
size_t larder_pool_cluster_pages(const struct larder_pool *pool);

/**
 * Bytes of a page; 0 for a pointer that is no pool.
 *
 * # Safety
 * `pool` is NULL or a live pool.
 */
size_t larder_pool_page_size(const struct larder_pool *pool);

/**
 * Makes a handle over a pool. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `pool` is NULL or a live pool; `out` and `error` are NULL or can be written.
 */
larder_status larder_page_handle_new(const struct larder_pool *pool,
                                     struct larder_page_handle **out,
                                     struct larder_error *error);

/**
 * Ends a handle; NULL does nothing. Its stock goes back to the pool.
 *
 * # Safety
 * `handle` is NULL or a live page handle, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_page_handle_free(struct larder_page_handle *handle);

/**
 * A page with a former owner's contents. `page` gets it, or NULL after a failure.
 *
 * # Safety
 * `handle` is NULL or a live page handle that no other thread uses meanwhile; `page` and `error` are NULL or can be written.
 */
larder_status larder_page_handle_get(struct larder_page_handle *handle,
                                     void **page,
                                     struct larder_error *error);

/**
 * A page of zeroes. `page` gets it, or NULL after a failure.
 *
 * # Safety
 * `handle` is NULL or a live page handle that no other thread uses meanwhile; `page` and `error` are NULL or can be written.
 */
larder_status larder_page_handle_get_zeroed(struct larder_page_handle *handle,
                                            void **page,
                                            struct larder_error *error);

/**
 * Puts a page of the handle's pool into the handle. As larder_pool_put otherwise.
 *
 * # Safety
 * `handle` is NULL or a live page handle that no other thread uses meanwhile; what `page` points to, if it came from here, is
 * in the caller's hands and not used afterwards.
 */
larder_status larder_page_handle_put(struct larder_page_handle *handle,
                                     void *page);

/**
 * Pages in the handle's stock; 0 for a pointer that is no handle.
 *
 * # Safety
 * `handle` is NULL or a live page handle that no other thread uses meanwhile.
 */
size_t larder_page_handle_len(const struct larder_page_handle *handle);

/**
 * Takes `pages` contiguous pages, zeroed or with a former owner's contents. `out` gets the run, or NULL after a failure.
 *
 * # Safety
 * `pool` is NULL or a live pool; `out` and `error` are NULL or can be written.
 */
larder_status larder_pool_get_run(const struct larder_pool *pool,
                                  size_t pages,
                                  bool zeroed,
                                  struct larder_run **out,
                                  struct larder_error *error);

/**
 * The run's first byte; NULL for a pointer that is no run.
 *
 * # Safety
 * `run` is NULL or a live run.
 */
void *larder_run_data(struct larder_run *run);

/**
 * The run's length in bytes; 0 for a pointer that is no run.
 *
 * # Safety
 * `run` is NULL or a live run.
 */
size_t larder_run_bytes(const struct larder_run *run);

/**
 * Puts the run's pages back; NULL does nothing.
 *
 * # Safety
 * `run` is NULL or a live run, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_run_free(struct larder_run *run);

/**
 * Fills in the defaults. `options` points to a `larder_helper_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_helper_options_init(struct larder_helper_options *options);

/**
 * Starts the helper thread, or replaces it. `options` may be NULL: upkeep only, every 100 ms, within 1 % of a CPU.
 *
 * # Safety
 * `pool` is NULL or a live pool; `options` is NULL or has as many bytes as its first field says; `error` is NULL or can be
 * written.
 */
larder_status larder_pool_start_helper(const struct larder_pool *pool,
                                       const struct larder_helper_options *options,
                                       struct larder_error *error);

/**
 * Stops the helper thread if there is one, and waits for it.
 *
 * # Safety
 * `pool` is NULL or a live pool.
 */
larder_status larder_pool_stop_helper(const struct larder_pool *pool);

/**
 * Reads the numbers. `stats->size` is the size that the program knows; it is set to the bytes written.
 *
 * # Safety
 * `pool` is NULL or a live pool; `stats` is NULL or points to as many writable bytes as its first field says; `error` is NULL or can
 * be written.
 */
larder_status larder_pool_stats_read(const struct larder_pool *pool,
                                     struct larder_pool_stats *stats,
                                     struct larder_error *error);

/**
 * Writes the numbers as one JSON object. `needed`, which may be NULL, gets the bytes of the whole text, its end included;
 * a buffer that is too small is LARDER_BUFFER and holds the beginning. `buffer` may be NULL when `bytes` is 0.
 *
 * # Safety
 * `pool` is NULL or a live pool; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_pool_stats_json(const struct larder_pool *pool,
                                     char *buffer,
                                     size_t bytes,
                                     size_t *needed,
                                     struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_arena_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_arena_options_init(struct larder_arena_options *options);

/**
 * Fills in the defaults: no constraints, the arena's fit, no units. `request` points to a `larder_arena_request`; NULL is an error.
 *
 * # Safety
 * `request` is NULL or can be written.
 */
larder_status larder_arena_request_init(struct larder_arena_request *request);

/**
 * Makes an arena. `options` may be NULL for the defaults. `out` gets the arena, or NULL after a failure.
 *
 * # Safety
 * `options` is NULL or has as many bytes as its first field says, and what it points to lives and does what its documentation
 * asks for; `out` and `error` are NULL or can be written.
 */
larder_status larder_arena_new(const struct larder_arena_options *options,
                               struct larder_arena **out,
                               struct larder_error *error);

/**
 * Ends an arena, even if ranges of it are allocated; NULL does nothing. Imported spans that are free as a whole go back to their
 * source. Its handles keep it, and so do arenas that import from it.
 *
 * # Safety
 * `arena` is NULL or a live arena, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_arena_free(struct larder_arena *arena);

/**
 * Ends an arena of which nothing is allocated; NULL does nothing. With allocations it does nothing, and the error LARDER_BUSY says how much is allocated.
 *
 * # Safety
 * `arena` is NULL or a live arena, which no other thread uses, and which is not used afterwards; `error` is NULL or can be written.
 */
larder_status larder_arena_destroy(struct larder_arena *arena,
                                   struct larder_error *error);

/**
 * Adds a span by hand: `units` numbers from `addr` on. It stays as long as the arena.
 *
 * # Safety
 * `arena` is NULL or a live arena; `error` is NULL or can be written.
 */
larder_status larder_arena_add(const struct larder_arena *arena,
                               uint64_t addr,
                               uint64_t units,
                               struct larder_error *error);

/**
 * Takes `units` numbers in a row, rounded up to a multiple of the quantum, anywhere. `addr` gets the first, or UINT64_MAX after a
 * failure.
 *
 * # Safety
 * `arena` is NULL or a live arena; `addr` and `error` are NULL or can be written.
 */
larder_status larder_arena_alloc(const struct larder_arena *arena,
                                 uint64_t units,
                                 uint64_t *addr,
                                 struct larder_error *error);

/**
 * Takes what a request describes: alignment, phase, boundaries, bounds, another fit. `addr` gets the first number, or UINT64_MAX
 * after a failure. A request with bounds never asks the source.
 *
 * # Safety
 * `arena` is NULL or a live arena; `request` is NULL or has as many bytes as its first field says; `addr` and `error` are NULL
 * or can be written.
 */
larder_status larder_arena_xalloc(const struct larder_arena *arena,
                                  const struct larder_arena_request *request,
                                  uint64_t *addr,
                                  struct larder_error *error);

/**
 * Gives back a range: its address, and its units as requested or rounded up to the quantum. A range that was never taken, or was
 * given back already, is LARDER_FOREIGN; another size is LARDER_SIZE; then nothing has changed.
 *
 * # Safety
 * `arena` is NULL or a live arena; `error` is NULL or can be written.
 */
larder_status larder_arena_dealloc(const struct larder_arena *arena,
                                   uint64_t addr,
                                   uint64_t units,
                                   struct larder_error *error);

/**
 * Changes the limit on all spans together; UINT64_MAX is none. A lower limit takes no span away, but lets no further span in.
 *
 * # Safety
 * `arena` is NULL or a live arena.
 */
larder_status larder_arena_set_limit(const struct larder_arena *arena,
                                     uint64_t units);

/**
 * Gives idle spans back to the source: call it regularly. `units`, which may be NULL, gets the units given back.
 *
 * # Safety
 * `arena` is NULL or a live arena; `units` is NULL or can be written.
 */
larder_status larder_arena_maintain(const struct larder_arena *arena,
                                    uint64_t *units);

/**
 * Empties the quantum caches and gives all spans without allocations back to the source. `units`, which may be NULL, gets the units
 * given back.
 *
 * # Safety
 * `arena` is NULL or a live arena; `units` is NULL or can be written.
 */
larder_status larder_arena_trim(const struct larder_arena *arena,
                                uint64_t *units);

/**
 * Whether a number lies in one of the arena's spans, allocated or not; false for a pointer that is no arena.
 *
 * # Safety
 * `arena` is NULL or a live arena.
 */
bool larder_arena_contains(const struct larder_arena *arena,
                           uint64_t addr);

/**
 * Units that consumers have; 0 for a pointer that is no arena. Looks at every segment.
 *
 * # Safety
 * `arena` is NULL or a live arena.
 */
uint64_t larder_arena_in_use(const struct larder_arena *arena);

/**
 * All sizes and addresses are multiples of this; 0 for a pointer that is no arena.
 *
 * # Safety
 * `arena` is NULL or a live arena.
 */
uint64_t larder_arena_quantum(const struct larder_arena *arena);

/**
 * Checks that all that the arena knows agrees, for programs that suspect their memory. O(segments). LARDER_PANIC names what
 * does not.
 *
 * # Safety
 * `arena` is NULL or a live arena; `error` is NULL or can be written.
 */
larder_status larder_arena_audit(const struct larder_arena *arena,
                                 struct larder_error *error);

/**
 * Makes a handle over an arena. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `arena` is NULL or a live arena; `out` and `error` are NULL or can be written.
 */
larder_status larder_arena_handle_new(const struct larder_arena *arena,
                                      struct larder_arena_handle **out,
                                      struct larder_error *error);

/**
 * Ends a handle; NULL does nothing. What is in its magazines goes back to the arena.
 *
 * # Safety
 * `handle` is NULL or a live arena handle, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_arena_handle_free(struct larder_arena_handle *handle);

/**
 * As larder_arena_alloc.
 *
 * # Safety
 * `handle` is NULL or a live arena handle that no other thread uses meanwhile; `addr` and `error` are NULL or can be written.
 */
larder_status larder_arena_handle_alloc(struct larder_arena_handle *handle,
                                        uint64_t units,
                                        uint64_t *addr,
                                        struct larder_error *error);

/**
 * As larder_arena_dealloc.
 *
 * # Safety
 * `handle` is NULL or a live arena handle that no other thread uses meanwhile; `error` is NULL or can be written.
 */
larder_status larder_arena_handle_dealloc(struct larder_arena_handle *handle,
                                          uint64_t addr,
                                          uint64_t units,
                                          struct larder_error *error);

/**
 * Shows every span and then its segments, in the order of their numbers, to `visit`. The arena may be used meanwhile: a change
 * is seen or not.
 *
 * # Safety
 * `arena` is NULL or a live arena; `visit` does what its documentation asks for; `error` is NULL or can be written.
 */
larder_status larder_arena_walk(const struct larder_arena *arena,
                                larder_visit_fn visit,
                                void *user,
                                struct larder_error *error);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `arena` is NULL or a live arena; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
 * can be written.
 */
larder_status larder_arena_stats_read(const struct larder_arena *arena,
                                      struct larder_arena_stats *stats,
                                      struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `arena` is NULL or a live arena; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_arena_stats_json(const struct larder_arena *arena,
                                      char *buffer,
                                      size_t bytes,
                                      size_t *needed,
                                      struct larder_error *error);

/**
 * Quantum caches of an arena; 0 for a pointer that is no arena.
 *
 * # Safety
 * `arena` is NULL or a live arena.
 */
size_t larder_arena_quantum_caches(const struct larder_arena *arena);

/**
 * Reads the numbers of quantum cache number `cache`, counted from 0, whose segments have `cache + 1` quanta; as
 * larder_pool_stats_read. What is taken by handles is not counted.
 *
 * # Safety
 * `arena` is NULL or a live arena; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can
 * be written.
 */
larder_status larder_arena_quantum_stats_read(const struct larder_arena *arena,
                                              size_t cache,
                                              struct larder_quantum_stats *stats,
                                              struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_ids_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_ids_options_init(struct larder_ids_options *options);

/**
 * Makes a range of identifiers. `options` may be NULL for the defaults. `out` gets it, or NULL after a failure. It takes constant
 * time, and memory follows use.
 *
 * # Safety
 * `options` is NULL or has as many bytes as its first field says; `out` and `error` are NULL or can be written.
 */
larder_status larder_ids_new(const struct larder_ids_options *options,
                             struct larder_ids **out,
                             struct larder_error *error);

/**
 * Ends the range, even if identifiers are allocated; NULL does nothing.
 *
 * # Safety
 * `ids` is NULL or live ids, which no other thread uses, and which are not used afterwards.
 */
larder_status larder_ids_free(struct larder_ids *ids);

/**
 * Ends a range of which nothing is allocated; NULL does nothing. Otherwise it does nothing, and LARDER_BUSY says how many are.
 *
 * # Safety
 * `ids` is NULL or live ids, which no other thread uses, and which are not used afterwards; `error` is NULL or can be written.
 */
larder_status larder_ids_destroy(struct larder_ids *ids,
                                 struct larder_error *error);

/**
 * Takes the identifier that the rule says is next, or a handle of the slot that it says is next. `id` gets it, or UINT64_MAX after a
 * failure.
 *
 * # Safety
 * `ids` is NULL or live ids; `id` and `error` are NULL or can be written.
 */
larder_status larder_ids_alloc(const struct larder_ids *ids,
                               uint64_t *id,
                               struct larder_error *error);

/**
 * Takes this very identifier or slot. `id` gets the identifier, or the slot's handle, or UINT64_MAX after a failure. LARDER_BUSY when
 * another owner has it, or the slot is retired.
 *
 * # Safety
 * `ids` is NULL or live ids; `id` and `error` are NULL or can be written.
 */
larder_status larder_ids_alloc_at(const struct larder_ids *ids,
                                  uint64_t slot,
                                  uint64_t *id,
                                  struct larder_error *error);

/**
 * Gives an identifier or a handle back. One that is not allocated, was given back already or is stale is LARDER_FOREIGN, one outside
 * of the range LARDER_ARGUMENT; then nothing has changed. Of two threads that give back the same one at once, one succeeds.
 *
 * # Safety
 * `ids` is NULL or live ids; `error` is NULL or can be written.
 */
larder_status larder_ids_dealloc(const struct larder_ids *ids,
                                 uint64_t id,
                                 struct larder_error *error);

/**
 * Looks whether an identifier or a handle is allocated. `slot` gets the number of its slot, an identifier's own number, or UINT64_MAX;
 * LARDER_FOREIGN when it is not allocated or stale.
 *
 * # Safety
 * `ids` is NULL or live ids; `slot` and `error` are NULL or can be written.
 */
larder_status larder_ids_check(const struct larder_ids *ids,
                               uint64_t id,
                               uint64_t *slot,
                               struct larder_error *error);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `ids` is NULL or live ids; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be
 * written.
 */
larder_status larder_ids_stats_read(const struct larder_ids *ids,
                                    struct larder_ids_stats *stats,
                                    struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `ids` is NULL or live ids; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_ids_stats_json(const struct larder_ids *ids,
                                    char *buffer,
                                    size_t bytes,
                                    size_t *needed,
                                    struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_family_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_family_options_init(struct larder_family_options *options);

/**
 * Makes a family. `options` may be NULL for the defaults. `out` gets the family, or NULL after a failure.
 *
 * # Safety
 * `options` is NULL or has as many bytes as its first field says, and so has its `pages`; `out` and `error` are NULL or can be
 * written.
 */
larder_status larder_family_new(const struct larder_family_options *options,
                                struct larder_family **out,
                                struct larder_error *error);

/**
 * Ends a family; NULL does nothing. Its caches, classes and heaps keep what they need of it; with the last of them its memory
 * goes. Large objects in use stay valid and keep their pool's memory for ever, since no family is left to take them: put
 * them before.
 *
 * # Safety
 * `family` is NULL or a live family, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_family_free(struct larder_family *family);

/**
 * The pool that slabs come from, for its limit and its numbers. `out` gets a handle that larder_pool_free ends, or NULL after a
 * failure.
 *
 * # Safety
 * `family` is NULL or a live family; `out` and `error` are NULL or can be written.
 */
larder_status larder_family_pool(const struct larder_family *family,
                                 struct larder_pool **out,
                                 struct larder_error *error);

/**
 * The owner of the page at an address: the number of a cache (see larder_cache_number), 65535 for a large object, 0 for any
 * address that is not this family's, and beyond the first page of a large object or of one above 1 MiB. Nothing is read at the address.
 *
 * # Safety
 * `family` is NULL or a live family.
 */
uint16_t larder_family_owner(const struct larder_family *family,
                             const void *address);

/**
 * Ends a working-set interval of all caches: memory that it did not need goes back. `bytes`, which may be NULL, gets the bytes of
 * slabs that went to the pool.
 *
 * # Safety
 * `family` is NULL or a live family; `bytes` is NULL or can be written.
 */
larder_status larder_family_maintain(const struct larder_family *family,
                                     size_t *bytes);

/**
 * Gives back, now, everything that is neither in use nor in a handle or heap. `bytes`, which may be NULL, gets the bytes of pages
 * that went to the system.
 *
 * # Safety
 * `family` is NULL or a live family; `bytes` is NULL or can be written.
 */
larder_status larder_family_trim(const struct larder_family *family,
                                 size_t *bytes);

/**
 * Starts a thread of lowest priority that reaps every `interval_ms` milliseconds, or replaces it: memory goes back while
 * the program makes no calls.
 *
 * # Safety
 * `family` is NULL or a live family; `error` is NULL or can be written.
 */
larder_status larder_family_start_helper(const struct larder_family *family,
                                         uint64_t interval_ms,
                                         struct larder_error *error);

/**
 * Stops that thread if there is one, and waits for it. A callback must not call it.
 *
 * # Safety
 * `family` is NULL or a live family.
 */
larder_status larder_family_stop_helper(const struct larder_family *family);

/**
 * Takes at least `bytes` bytes in whole pages, aligned to `align`, a power of two; 0 is a page. Zeroed, or with what a former owner
 * left. `object` gets it, or NULL after a failure. It takes a lock: not for a fast path.
 *
 * # Safety
 * `family` is NULL or a live family; `object` and `error` are NULL or can be written.
 */
larder_status larder_family_get_large(const struct larder_family *family,
                                      size_t bytes,
                                      size_t align,
                                      bool zeroed,
                                      void **object,
                                      struct larder_error *error);

/**
 * Puts a large object back. An address that is not the beginning of one is LARDER_FOREIGN.
 *
 * # Safety
 * `family` is NULL or a live family; what `object` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_family_put_large(const struct larder_family *family,
                                      void *object);

/**
 * Bytes of the large object that begins at an address; 0 where none does.
 *
 * # Safety
 * `family` is NULL or a live family.
 */
size_t larder_family_large_bytes(const struct larder_family *family, const void *object);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `family` is NULL or a live family; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
 * can be written.
 */
larder_status larder_family_stats_read(const struct larder_family *family,
                                       struct larder_family_stats *stats,
                                       struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `family` is NULL or a live family; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be
 * written.
 */
larder_status larder_family_stats_json(const struct larder_family *family,
                                       char *buffer,
                                       size_t bytes,
                                       size_t *needed,
                                       struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_cache_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_cache_options_init(struct larder_cache_options *options);

/**
 * Makes a cache of objects of `bytes` bytes, 1 to 4 MiB, aligned to `align`, a power of two up to a page; 0 is the alignment that a C type
 * of that size needs. `options` may be NULL for the defaults. `out` gets the cache, or NULL after a failure. Memory comes with the first get.
 *
 * # Safety
 * `family` is NULL or a live family; `options` is NULL or has as many bytes as its first field says, and what it points to
 * lives and does what its documentation asks for; `out` and `error` are NULL or can be written.
 */
larder_status larder_cache_new(const struct larder_family *family,
                               size_t bytes,
                               size_t align,
                               const struct larder_cache_options *options,
                               struct larder_cache **out,
                               struct larder_error *error);

/**
 * Ends a cache; NULL does nothing. Its handles keep it; with the last of them all its objects are gone, also those in use, and the
 * destructor has been called for each that was constructed: when this returns, or, where a callback of the cache runs in this thread or
 * a callback of another one calls this, when that has returned. `end` in its options says when. A callback of the cache that
 * serves one of its gets, puts or drains must not call it.
 *
 * # Safety
 * `cache` is NULL or a live cache, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_cache_free(struct larder_cache *cache);

/**
 * Ends a cache of which no object is in use or in a handle; NULL does nothing. Otherwise LARDER_BUSY says how many are; the cache
 * stays, with its stock given back.
 *
 * # Safety
 * `cache` is NULL or a live cache, which no other thread uses, and which is not used afterwards; `error` is NULL or can be written.
 */
larder_status larder_cache_destroy(struct larder_cache *cache,
                                   struct larder_error *error);

/**
 * Takes an object: constructed where there is a constructor, else with what a former user left. `object` gets it, or NULL after a
 * failure.
 *
 * # Safety
 * `cache` is NULL or a live cache; `object` and `error` are NULL or can be written.
 */
larder_status larder_cache_get(const struct larder_cache *cache,
                               void **object,
                               struct larder_error *error);

/**
 * Puts an object back, constructed if there is a destructor. An address in no slab of this cache is LARDER_FOREIGN. An address inside
 * an object, or one that was put twice, is found when it comes to its slab: then it is not taken, and counted as refused.
 *
 * # Safety
 * `cache` is NULL or a live cache; what `object` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_cache_put(const struct larder_cache *cache,
                               void *object);

/**
 * As larder_cache_put, after looking under a lock whether an object begins there.
 *
 * # Safety
 * `cache` is NULL or a live cache; `error` is NULL or can be written; what `object` points to, if it came from here, is in the
 * caller's hands and not used afterwards.
 */
larder_status larder_cache_put_checked(const struct larder_cache *cache,
                                       void *object,
                                       struct larder_error *error);

/**
 * The number that larder_family_owner returns for this cache's objects, 1 to 65534; 0 for a pointer that is no cache. Numbers are used again.
 *
 * # Safety
 * `cache` is NULL or a live cache.
 */
uint16_t larder_cache_number(const struct larder_cache *cache);

/**
 * Bytes from one object to the next; 0 for a pointer that is no cache.
 *
 * # Safety
 * `cache` is NULL or a live cache.
 */
size_t larder_cache_stride(const struct larder_cache *cache);

/**
 * Ends a working-set interval of this cache; as larder_family_maintain.
 *
 * # Safety
 * `cache` is NULL or a live cache; `bytes` is NULL or can be written.
 */
larder_status larder_cache_maintain(const struct larder_cache *cache, size_t *bytes);

/**
 * Gives back everything of this cache that is neither in use nor in a handle; as larder_family_trim.
 *
 * # Safety
 * `cache` is NULL or a live cache; `bytes` is NULL or can be written.
 */
larder_status larder_cache_trim(const struct larder_cache *cache,
                                size_t *bytes);

/**
 * Fills `objects[0]` to `objects[n - 1]`: all of them, or NULL and an error.
 *
 * # Safety
 * `cache` is NULL or a live cache; `objects` has room for `n` pointers; `error` is NULL or can be written.
 */
larder_status larder_cache_get_many(const struct larder_cache *cache,
                                    void **objects,
                                    size_t n,
                                    struct larder_error *error);

/**
 * Puts `objects[0]` to `objects[n - 1]` back: all of them; or, when one of them is NULL or not of this cache, none and an error.
 *
 * # Safety
 * `cache` is NULL or a live cache; `objects` has `n` pointers, of what is in the caller's hands and not used afterwards;
 * `error` is NULL or can be written.
 */
larder_status larder_cache_put_many(const struct larder_cache *cache,
                                    void *const *objects,
                                    size_t n,
                                    struct larder_error *error);

/**
 * Makes a handle over a cache. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `cache` is NULL or a live cache; `out` and `error` are NULL or can be written.
 */
larder_status larder_cache_handle_new(const struct larder_cache *cache,
                                      struct larder_cache_handle **out,
                                      struct larder_error *error);

/**
 * Ends a handle; NULL does nothing. Its stock goes back to the cache, in constant time.
 *
 * # Safety
 * `handle` is NULL or a live cache handle, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_cache_handle_free(struct larder_cache_handle *handle);

/**
 * As larder_cache_get.
 *
 * # Safety
 * `handle` is NULL or a live cache handle that no other thread uses meanwhile; `object` and `error` are NULL or can be
 * written.
 */
larder_status larder_cache_handle_get(struct larder_cache_handle *handle,
                                      void **object,
                                      struct larder_error *error);

/**
 * As larder_cache_put.
 *
 * # Safety
 * `handle` is NULL or a live cache handle that no other thread uses meanwhile; what `object` points to, if it came from here,
 * is in the caller's hands and not used afterwards.
 */
larder_status larder_cache_handle_put(struct larder_cache_handle *handle,
                                      void *object);

/**
 * Gives the stock to the cache, where other threads find it. Call it before a long idle time.
 *
 * # Safety
 * `handle` is NULL or a live cache handle that no other thread uses meanwhile.
 */
larder_status larder_cache_handle_flush(struct larder_cache_handle *handle);

/**
 * Objects in the handle's stock; 0 for a pointer that is no handle.
 *
 * # Safety
 * `handle` is NULL or a live cache handle that no other thread uses meanwhile.
 */
size_t larder_cache_handle_len(const struct larder_cache_handle *handle);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `cache` is NULL or a live cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
 * can be written.
 */
larder_status larder_cache_stats_read(const struct larder_cache *cache,
                                      struct larder_cache_stats *stats,
                                      struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `cache` is NULL or a live cache; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_cache_stats_json(const struct larder_cache *cache,
                                      char *buffer,
                                      size_t bytes,
                                      size_t *needed,
                                      struct larder_error *error);

/**
 * Makes classes over a family. `out` gets them, or NULL after a failure.
 *
 * # Safety
 * `family` is NULL or a live family; `out` and `error` are NULL or can be written.
 */
larder_status larder_classes_new(const struct larder_family *family,
                                 struct larder_classes **out,
                                 struct larder_error *error);

/**
 * Ends classes; NULL does nothing. Their heaps keep them; with the last of these all their objects are gone, but for large ones
 * (more than 4 MiB, or aligned to more than a page): these are the family's, and go back by larder_family_put_large.
 *
 * # Safety
 * `classes` is NULL or live classes, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_classes_free(struct larder_classes *classes);

/**
 * Takes `bytes` bytes, aligned to 16, with what a former owner left; 0 bytes are an object as well. `object` gets it, or NULL
 * after a failure.
 *
 * # Safety
 * `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
 */
larder_status larder_classes_alloc(const struct larder_classes *classes,
                                   size_t bytes,
                                   void **object,
                                   struct larder_error *error);

/**
 * As larder_classes_alloc, with all bytes zero.
 *
 * # Safety
 * `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
 */
larder_status larder_classes_alloc_zeroed(const struct larder_classes *classes,
                                          size_t bytes,
                                          void **object,
                                          struct larder_error *error);

/**
 * As larder_classes_alloc, aligned to `align`, a power of two; 0 is 16.
 *
 * # Safety
 * `classes` is NULL or live classes; `object` and `error` are NULL or can be written.
 */
larder_status larder_classes_alloc_aligned(const struct larder_classes *classes,
                                           size_t bytes,
                                           size_t align,
                                           void **object,
                                           struct larder_error *error);

/**
 * Makes `*object` larger or smaller. It may move, and is then aligned to 16, whatever it was before. NULL in `*object` begins a new
 * one. After a failure the object is where and what it was.
 *
 * # Safety
 * `classes` is NULL or live classes; `object` is NULL or can be read and written, and what is in it is in the caller's hands;
 * `error` is NULL or can be written.
 */
larder_status larder_classes_realloc(const struct larder_classes *classes,
                                     void **object,
                                     size_t bytes,
                                     struct larder_error *error);

/**
 * Gives an object back; NULL does nothing. It must come from these classes or from a heap that is made from them, else it is
 * LARDER_FOREIGN. An address inside an object, or an object that is given back twice, is not detected.
 *
 * # Safety
 * `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_classes_dealloc(const struct larder_classes *classes,
                                     void *object);

/**
 * As larder_classes_dealloc, for an object that was allocated with `bytes` bytes and no alignment. LARDER_SIZE when it was not; then
 * nothing has changed.
 *
 * # Safety
 * `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_classes_dealloc_sized(const struct larder_classes *classes,
                                           void *object,
                                           size_t bytes);

/**
 * As larder_classes_dealloc_sized, for an object that was allocated with an alignment.
 *
 * # Safety
 * `classes` is NULL or live classes; what `object` points to, if it came from here, is in the caller's hands and not used
 * afterwards.
 */
larder_status larder_classes_dealloc_aligned(const struct larder_classes *classes,
                                             void *object,
                                             size_t bytes,
                                             size_t align);

/**
 * Bytes of an object that may be used, at least those requested; 0 for a pointer that is no object.
 *
 * # Safety
 * `classes` is NULL or live classes.
 */
size_t larder_classes_usable_bytes(const struct larder_classes *classes, const void *object);

/**
 * Makes a heap over classes that others share. Objects may be given back through any heap of the same classes, or through these.
 * `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `classes` is NULL or live classes; `out` and `error` are NULL or can be written.
 */
larder_status larder_heap_new(const struct larder_classes *classes,
                              struct larder_heap **out,
                              struct larder_error *error);

/**
 * Makes a heap with slabs of its own: its end is the end of all its objects, large ones included, and no object is visited. A large
 * object (more than 4 MiB, or aligned to more than a page) has at least two pages. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `family` is NULL or a live family; `out` and `error` are NULL or can be written.
 */
larder_status larder_heap_new_private(const struct larder_family *family,
                                      struct larder_heap **out,
                                      struct larder_error *error);

/**
 * Ends a heap; NULL does nothing. Its objects stay valid as long as its classes; those of a private heap are gone. From the heap's
 * warning it is LARDER_BUSY.
 *
 * # Safety
 * `heap` is NULL or a live heap, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_heap_free(struct larder_heap *heap);

/**
 * Takes `bytes` bytes, aligned to 16, with what a former owner left; 0 bytes are an object as well. `object` gets it, or NULL
 * after a failure.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
 */
larder_status larder_heap_alloc(struct larder_heap *heap,
                                size_t bytes,
                                void **object,
                                struct larder_error *error);

/**
 * As larder_heap_alloc, with all bytes zero.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
 */
larder_status larder_heap_alloc_zeroed(struct larder_heap *heap,
                                       size_t bytes,
                                       void **object,
                                       struct larder_error *error);

/**
 * As larder_heap_alloc, aligned to `align`, a power of two; 0 is 16.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `object` and `error` are NULL or can be written.
 */
larder_status larder_heap_alloc_aligned(struct larder_heap *heap,
                                        size_t bytes,
                                        size_t align,
                                        void **object,
                                        struct larder_error *error);

/**
 * Makes `*object` larger or smaller. It may move, and is then aligned to 16, whatever it was before. NULL in `*object` begins a new
 * one. After a failure the object is where and what it was; to make it smaller never fails.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `object` is NULL or can be read and written, and what is
 * in it is in the caller's hands; `error` is NULL or can be written.
 */
larder_status larder_heap_realloc(struct larder_heap *heap,
                                  void **object,
                                  size_t bytes,
                                  struct larder_error *error);

/**
 * Gives an object back; NULL does nothing. It must come from this heap, from another heap of the same classes, or from these classes,
 * else it is LARDER_FOREIGN. An address inside an object, or an object that is given back twice, is not detected.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
 * caller's hands and not used afterwards.
 */
larder_status larder_heap_dealloc(struct larder_heap *heap,
                                  void *object);

/**
 * As larder_heap_dealloc, for an object that was allocated with `bytes` bytes and no alignment. LARDER_SIZE when it was not; then
 * nothing has changed.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
 * caller's hands and not used afterwards.
 */
larder_status larder_heap_dealloc_sized(struct larder_heap *heap,
                                        void *object,
                                        size_t bytes);

/**
 * As larder_heap_dealloc_sized, for an object that was allocated with an alignment.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; what `object` points to, if it came from here, is in the
 * caller's hands and not used afterwards.
 */
larder_status larder_heap_dealloc_aligned(struct larder_heap *heap,
                                          void *object,
                                          size_t bytes,
                                          size_t align);

/**
 * Bytes of an object that may be used, at least those requested; 0 for a pointer that is no object.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile.
 */
size_t larder_heap_usable_bytes(struct larder_heap *heap, const void *object);

/**
 * Fills `objects[0]` to `objects[n - 1]` with objects of `bytes` bytes: all of them, or NULL and an error.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `objects` has room for `n` pointers; `error` is NULL or
 * can be written.
 */
larder_status larder_heap_alloc_many(struct larder_heap *heap,
                                     size_t bytes,
                                     void **objects,
                                     size_t n,
                                     struct larder_error *error);

/**
 * Gives `objects[0]` to `objects[n - 1]` back, of any sizes; NULL among them does nothing. If one is no object of this heap's
 * classes, none is given back, and there is an error.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `objects` has `n` pointers, of what is in the caller's
 * hands and not used afterwards; `error` is NULL or can be written.
 */
larder_status larder_heap_dealloc_many(struct larder_heap *heap,
                                       void *const *objects,
                                       size_t n,
                                       struct larder_error *error);

/**
 * Bounds what the heap takes; 0 is no limit. Objects in use and free ones in its magazines count, by the sizes of their classes. The
 * bound is checked when a magazine is empty: objects that lie in a magazine already are still handed out.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile.
 */
larder_status larder_heap_set_limit(struct larder_heap *heap,
                                    size_t bytes);

/**
 * Calls `warning` when the heap takes more than `bytes`, and not again until it has fallen below. NULL ends the calls. `user` must
 * live until then, or until the heap ends.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `warning` does what its documentation asks for, with a
 * `user` that lives as long; `error` is NULL or can be written.
 */
larder_status larder_heap_set_warning(struct larder_heap *heap,
                                      size_t bytes,
                                      larder_warning_fn warning,
                                      void *user,
                                      struct larder_error *error);

/**
 * Gives the free objects in the heap's magazines to its classes, where other heaps find them.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile.
 */
larder_status larder_heap_trim(struct larder_heap *heap);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `stats` is NULL or has as many writable bytes as its
 * first field says; `error` is NULL or can be written.
 */
larder_status larder_heap_stats_read(const struct larder_heap *heap,
                                     struct larder_heap_stats *stats,
                                     struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `heap` is NULL or a live heap that no other thread uses meanwhile; `buffer` points to `bytes` writable bytes; `needed` and
 * `error` are NULL or can be written.
 */
larder_status larder_heap_stats_json(const struct larder_heap *heap,
                                     char *buffer,
                                     size_t bytes,
                                     size_t *needed,
                                     struct larder_error *error);

/**
 * Fills in the defaults. `options` points to a `larder_blocks_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_blocks_options_init(struct larder_blocks_options *options);

/**
 * Makes a block cache. `options` may be NULL for the defaults: files in memory. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `options` is NULL or has as many bytes as its first field says, with pointers that are NULL or live; `out` and `error` are NULL
 * or can be written.
 */
larder_status larder_blocks_new(const struct larder_blocks_options *options,
                                struct larder_blocks **out,
                                struct larder_error *error);

/**
 * Ends a cache; NULL does nothing. Its helper ends with it; files and handles keep what they stand on. With the last of them dirty
 * blocks are written, but not synced, and errors are not reported: sync the files before.
 *
 * # Safety
 * `blocks` is NULL or a live block cache, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_blocks_free(struct larder_blocks *blocks);

/**
 * Bytes of a block; 0 for a pointer that is no block cache.
 *
 * # Safety
 * `blocks` is NULL or a live block cache.
 */
size_t larder_blocks_block_bytes(const struct larder_blocks *blocks);

/**
 * Changes how many bytes of blocks there may be. Blocks that are too many leave, dirty ones after they were written; pinned ones
 * stay until they are unpinned.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `error` is NULL or can be written.
 */
larder_status larder_blocks_set_bytes(const struct larder_blocks *blocks,
                                      size_t bytes,
                                      struct larder_error *error);

/**
 * Gives back about `bytes` of memory now; the size stays. `given`, which may be NULL, gets how many it was.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `given` and `error` are NULL or can be written.
 */
larder_status larder_blocks_trim(const struct larder_blocks *blocks,
                                 size_t bytes,
                                 size_t *given,
                                 struct larder_error *error);

/**
 * Upkeep, to be called about once a second: writes blocks that are dirty for too long or too many, and gives memory back when
 * programs wait for it. `given`, which may be NULL, gets the bytes given back.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `given` and `error` are NULL or can be written.
 */
larder_status larder_blocks_maintain(const struct larder_blocks *blocks,
                                     size_t *given,
                                     struct larder_error *error);

/**
 * Starts a thread that calls larder_blocks_maintain every `interval_ms`, at least 1, or replaces it.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `error` is NULL or can be written.
 */
larder_status larder_blocks_start_helper(const struct larder_blocks *blocks,
                                         uint64_t interval_ms,
                                         struct larder_error *error);

/**
 * Stops the helper thread if there is one, and waits for it.
 *
 * # Safety
 * `blocks` is NULL or a live block cache.
 */
larder_status larder_blocks_stop_helper(const struct larder_blocks *blocks);

/**
 * Writes all dirty blocks of all files, in order, and does not sync them. Waits for blocks that are pinned for writing.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `error` is NULL or can be written.
 */
larder_status larder_blocks_write_back(const struct larder_blocks *blocks,
                                       struct larder_error *error);

/**
 * Makes all that was written safe: writes the dirty blocks of all files, those that were freed too, and syncs each file. The first
 * failure is returned, and the other files are synced all the same.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `error` is NULL or can be written.
 */
larder_status larder_blocks_sync(const struct larder_blocks *blocks,
                                 struct larder_error *error);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
 * can be written.
 */
larder_status larder_blocks_stats_read(const struct larder_blocks *blocks,
                                       struct larder_blocks_stats *stats,
                                       struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be
 * written.
 */
larder_status larder_blocks_stats_json(const struct larder_blocks *blocks,
                                       char *buffer,
                                       size_t bytes,
                                       size_t *needed,
                                       struct larder_error *error);

/**
 * Opens file number `id` of the storage, of which the storage has `size` bytes: nothing behind is read, the storage's file is never
 * longer than the file, and grows in order. With LARDER_BLOCKS_NO_END files end with their blocks. A file that is open or has
 * blocks in memory keeps the end that was said. `tenant` is 0 or a number of the program's: larder_blocks_tenant_stats_read sums the
 * files of one, and larder_blocks_tenant_limit gives it a part of the cache. `out` gets the file, or NULL after a failure.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `out` and `error` are NULL or can be written.
 */
larder_status larder_blocks_file_open(const struct larder_blocks *blocks,
                                      uint64_t id,
                                      uint64_t size,
                                      uint32_t tenant,
                                      struct larder_blocks_file **out,
                                      struct larder_error *error);

/**
 * Closes a file; NULL does nothing. Its blocks stay in the cache, dirty ones too. Unpin all blocks of this opening before.
 *
 * # Safety
 * `file` is NULL or a live file, which no other thread uses, of which no block is pinned, and which is not used afterwards.
 */
larder_status larder_blocks_file_free(struct larder_blocks_file *file);

/**
 * Writes the file's dirty blocks and syncs the storage: after LARDER_OK all that was written before is safe. Waits for blocks that
 * are pinned for writing.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_sync(const struct larder_blocks_file *file,
                                      struct larder_error *error);

/**
 * Writes the file's dirty blocks and does not sync the storage. Waits for blocks that are pinned for writing.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_write_back(const struct larder_blocks_file *file,
                                            struct larder_error *error);

/**
 * Where the file ends, in bytes; LARDER_BLOCKS_NO_END as long as that was not said, or for a pointer that is no file.
 *
 * # Safety
 * `file` is NULL or a live file.
 */
uint64_t larder_blocks_file_end(const struct larder_blocks_file *file);

/**
 * Says where the file ends: what lies behind is not written back, and reads as zeroes. Blocks stay in memory. Waits for blocks
 * there that are pinned.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_set_end(const struct larder_blocks_file *file,
                                         uint64_t end,
                                         struct larder_error *error);

/**
 * The file ends at `end`: blocks behind are forgotten, the rest of its last block is zeroed. The storage's file is the caller's to
 * truncate, afterwards. A file that is LARDER_LOST and truncated to 0 begins anew.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_truncate(const struct larder_blocks_file *file,
                                          uint64_t end,
                                          struct larder_error *error);

/**
 * Forgets `blocks` blocks from number `first` on, dirty or not, without writing them: what lies under the cache has changed.
 * LARDER_BUSY if one of them is pinned; none is forgotten then.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_invalidate(const struct larder_blocks_file *file,
                                            uint64_t first,
                                            uint64_t blocks,
                                            struct larder_error *error);

/**
 * Forgets all of a file that no longer exists: nothing of it is written. Waits for blocks that are pinned.
 *
 * # Safety
 * `file` is NULL or a live file; `error` is NULL or can be written.
 */
larder_status larder_blocks_file_discard(const struct larder_blocks_file *file,
                                         struct larder_error *error);

/**
 * Reads the numbers; as larder_pool_stats_read.
 *
 * # Safety
 * `file` is NULL or a live file; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be
 * written.
 */
larder_status larder_blocks_file_stats_read(const struct larder_blocks_file *file,
                                            struct larder_blocks_file_stats *stats,
                                            struct larder_error *error);

/**
 * Reads the sums of all files that were opened for a tenant, also of those that are closed; as larder_pool_stats_read. Looks at each
 * file. Of a tenant without files all are 0.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or
 * can be written.
 */
larder_status larder_blocks_tenant_stats_read(const struct larder_blocks *blocks,
                                              uint32_t tenant,
                                              struct larder_blocks_file_stats *stats,
                                              struct larder_error *error);

/**
 * Gives a tenant `bytes` of the cache for itself, and the others what is left; with 0 it shares the cache with the others again.
 * `policy` is a rule of its own, or NULL for the one that it has, at first the cache's. Blocks that are too many leave as after
 * larder_blocks_set_bytes.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `policy` is NULL or a text that ends with a zero byte; `error` is NULL or can be written.
 */
larder_status larder_blocks_tenant_limit(const struct larder_blocks *blocks,
                                         uint32_t tenant,
                                         size_t bytes,
                                         const char *policy,
                                         struct larder_error *error);

/**
 * Makes a handle over a block cache. `out` gets it, or NULL after a failure.
 *
 * # Safety
 * `blocks` is NULL or a live block cache; `out` and `error` are NULL or can be written.
 */
larder_status larder_blocks_handle_new(const struct larder_blocks *blocks,
                                       struct larder_blocks_handle **out,
                                       struct larder_error *error);

/**
 * Ends a handle; NULL does nothing. Blocks that it pinned stay pinned.
 *
 * # Safety
 * `handle` is NULL or a live block handle, which no other thread uses, and which is not used afterwards.
 */
larder_status larder_blocks_handle_free(struct larder_blocks_handle *handle);

/**
 * Copies `bytes` from `offset` of a file on; what lies behind its end is zeroes. Blocks that are not in memory are read together.
 *
 * # Safety
 * `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file; `into` is NULL or has
 * room for `bytes`; `error` is NULL or can be written.
 */
larder_status larder_blocks_handle_read(struct larder_blocks_handle *handle,
                                        const struct larder_blocks_file *file,
                                        uint64_t offset,
                                        void *into,
                                        size_t bytes,
                                        struct larder_error *error);

/**
 * Copies `bytes` to `offset` of a file, which is as long as that afterwards. `written`, which may be NULL, gets how many were
 * copied, also after a failure.
 *
 * # Safety
 * `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file; `from` is NULL or has
 * `bytes`; `written` and `error` are NULL or can be written.
 */
larder_status larder_blocks_handle_write(struct larder_blocks_handle *handle,
                                         const struct larder_blocks_file *file,
                                         uint64_t offset,
                                         const void *from,
                                         size_t bytes,
                                         size_t *written,
                                         struct larder_error *error);

/**
 * Pins block number `index` of a file for reading, which is read if it is not in memory. Many may pin it so. `out` gets the block, or
 * nothing after a failure. The handle may be used for other blocks meanwhile; a thread takes several in one order that all threads
 * keep, and none that it has pinned for writing.
 *
 * # Safety
 * `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file, which stays open until
 * the block is unpinned; `out` and `error` are NULL or can be written. `data` is read only.
 */
larder_status larder_blocks_handle_pin(struct larder_blocks_handle *handle,
                                       const struct larder_blocks_file *file,
                                       uint64_t index,
                                       struct larder_block *out,
                                       struct larder_error *error);

/**
 * Pins a block for writing: no other thread reads or writes it until it is unpinned, and it is written back later. The file ends at
 * `end` or later, as far as this block goes; LARDER_BLOCKS_NO_END is the end of the block. `flags` is 0 or LARDER_BLOCKS_OVERWRITE.
 *
 * # Safety
 * As for larder_blocks_handle_pin; the thread that pins it unpins it.
 */
larder_status larder_blocks_handle_pin_write(struct larder_blocks_handle *handle,
                                             const struct larder_blocks_file *file,
                                             uint64_t index,
                                             uint64_t end,
                                             uint32_t flags,
                                             struct larder_block *out,
                                             struct larder_error *error);

/**
 * Unpins a block; `data` is NULL afterwards. A block that is not pinned is LARDER_HANDLE.
 *
 * # Safety
 * `block` is NULL or one that was given to larder_blocks_handle_pin or larder_blocks_handle_pin_write, or zeroes; what `data`
 * points to is not used afterwards.
 */
larder_status larder_blocks_unpin(struct larder_block *block);

/**
 * Fills in the defaults. `options` points to a `larder_sqlite_options`; NULL is an error.
 *
 * # Safety
 * `options` is NULL or can be written.
 */
larder_status larder_sqlite_options_init(struct larder_sqlite_options *options);

/**
 * Makes larder's the page cache of a SQLite, for all connections to come. `config` is its `sqlite3_config`; `options` may be NULL for
 * the defaults. Call it before anything else of SQLite, or after `sqlite3_shutdown`: else it is LARDER_BUSY. A second call is, too,
 * unless `sqlite3_initialize` and `sqlite3_shutdown` came between. The library must stay loaded while SQLite is in use.
 *
 * # Safety
 * `config` is NULL or `sqlite3_config`, and no other thread is in a function of this SQLite; `options` is NULL or has as many bytes as
 * its first field says, with texts that are NULL or end with a zero byte; `error` is NULL or can be written.
 */
larder_status larder_sqlite_install(larder_sqlite3_config_fn config,
                                    const struct larder_sqlite_options *options,
                                    struct larder_error *error);

/**
 * Reads the numbers; as larder_pool_stats_read. Where the cache was not installed, `limit_bytes` is UINT64_MAX and all others are 0.
 *
 * # Safety
 * `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be written.
 */
larder_status larder_sqlite_stats_read(struct larder_sqlite_stats *stats,
                                       struct larder_error *error);

/**
 * Writes the numbers as one JSON object; as larder_pool_stats_json.
 *
 * # Safety
 * `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
 */
larder_status larder_sqlite_stats_json(char *buffer,
                                       size_t bytes,
                                       size_t *needed,
                                       struct larder_error *error);

/**
 * Gives memory that no page cache uses back to the system now; returns the bytes. What a connection's cache holds goes by
 * `sqlite3_db_release_memory` on that connection.
 */
size_t larder_sqlite_trim(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LARDER_H */
