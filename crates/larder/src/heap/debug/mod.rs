//! Debugging: a heap that records every block, surrounds it, fills it, and looks at it again.
//!
//! The heap of the program takes it in place of its own when the environment says so: `LARDER_MALLOC_DEBUG=on`, or the
//! words of [`Options`]. Where nothing is said, nothing of this is on the way of an allocation: threads have heaps, and only
//! a thread without one comes to the place where the debug heap is looked for.
//!
//! | found | how |
//! |---|---|
//! | a write before or after a block | redzones, looked at when the block is freed and at the program's end; or guard pages |
//! | a write into a freed block | freed blocks are filled and kept for a while; or guard pages |
//! | a second free, a free of what is no block | records of all blocks, out of line |
//! | a free with another size, alignment or function than the block came with | the records |
//! | blocks that nothing points to | a conservative mark from the program's data, stacks and registers |
//! | callers that do not expect a failure | failures on purpose |
//!
//! ```
//! use std::alloc::Layout;
//! use larder::{heap::{Classes, debug::Options}, objects::Family};
//!
//! // `keep-going`, since the first finding would end the process.
//! let options = Options::read("keep-going", &mut |_| ()).unwrap_or_default();
//! let classes = Classes::checked(&Family::new()?, options)?;
//! let block = classes.alloc(Layout::new::<[u8; 100]>())?;
//! // SAFETY: one byte behind the block lies in its redzone, where no other code looks meanwhile.
//! unsafe { block.add(100).write(7) };
//! assert_eq!(classes.check(), 1, "and it is reported on standard error");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One lock is around everything, each block costs a record of 64 bytes, two redzones and the walk of two stacks.
//! libumem (Bonwick and Adams, 2001) has the same checks behind `UMEM_DEBUG`; the search for leaks is that of its `findleaks`.

mod heap;
mod incident;
mod inject;
mod inner;
mod leaks;
mod options;
mod records;
mod storage;
mod symbol;

pub use super::call::Origin;
pub(crate) use super::output::say;
pub(crate) use heap::DebugHeap;
pub use heap::LiveBlock;
pub(crate) use leaks::Here;
pub use leaks::LeakStats;
pub use options::{BadWord, Options};

/// Most frames of a stack.
const MOST_FRAMES: usize = 32;
type Frames = super::stacks::Frames<MOST_FRAMES>;
