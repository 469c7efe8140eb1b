//! What happens when the library is loaded.

use larder::internal::heap;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    make_heap();
    heap::ready_stacks();
}

/// Makes the heap before the program can register handlers for fork. The handlers that were registered first run last before a
/// fork, so a handler of the program that allocates does not find the heap's locks taken.
fn make_heap() {
    heap::make();
}
