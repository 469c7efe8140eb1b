//! What happens when the library is loaded.

use larder::internal::heap;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    make_heap();
    #[cfg(lazy_unwinder)]
    heap::ready_stacks(crate::unwind::load);
    #[cfg(not(lazy_unwinder))]
    heap::ready_stacks(|| true);
}

/// Makes the heap before the program can register handlers for fork. The handlers that were registered first run last before a
/// fork, so a handler of the program that allocates does not find the heap's locks taken.
fn make_heap() {
    heap::serve_streams();
    heap::make();
}
