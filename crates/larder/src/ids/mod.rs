//! Identifiers: numbers of a range, each of which is allocated to one owner at a time.
//!
//! ```
//! use larder::ids::{Ids, rule::{Cyclic, Lowest}};
//!
//! let mut fds = Ids::new(0u32..1024, Lowest)?;         // as POSIX wants it of descriptors
//! let mut pids = Ids::new(0u32..32768, Cyclic)?;       // and as users expect it of processes
//! for _ in 0..2 {
//!     let fd = fds.alloc()?;
//!     fds.free(fd)?;
//!     let pid = pids.alloc()?;
//!     pids.free(pid)?;
//! }
//! assert_eq!((fds.alloc()?, pids.alloc()?), (0, 2));
//! # Ok::<(), larder::ids::IdError>(())
//! ```
//!
//! | for | type |
//! |---|---|
//! | one owner | [`Ids`] |
//! | many threads | `IdSpace` |
//! | handles that tell a reused number from its former use | [`Tagged`] |

mod allocate;
mod error;
mod guard;
mod map;
mod owned;
mod range;
pub mod rule;
#[cfg(feature = "serde")]
mod serde;
mod snapshot;
#[cfg(feature = "std")]
mod space;
#[cfg(target_has_atomic = "64")]
mod tagged;

pub use allocate::Allocate;
pub use error::IdError;
pub use guard::Guard;
pub use owned::Ids;
pub use range::{Id, IdRange};
pub use rule::{Rule, Shape};
pub use snapshot::Snapshot;
#[cfg(feature = "std")]
pub use space::{Crossing, IdSpace, IdSpaceBuilder, SpaceStats};
#[cfg(target_has_atomic = "64")]
pub use tagged::{Handle, OnWrap, Tagged, Widths};
