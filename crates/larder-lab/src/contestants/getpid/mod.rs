//! How Linux and its critics found a free process id, from 2.4's walk over all tasks to the radix tree of today.
//!
//! Each algorithm is one file and implements [`GetPid`] over a [`Tasks`] list. They were written anew from the
//! published descriptions; each file says which.
//!
//! ```
//! use larder_lab::contestants::getpid::{Algo0, GetPid, Near, Tasks};
//!
//! let mut tasks = Tasks::<Near>::new(100);
//! let mut pids = Algo0::new(300, 32768);
//! for _ in 0..50 {
//!     let pid = pids.get(&tasks).expect("nearly all are free");
//!     tasks.add(pid);
//! }
//! assert_eq!(tasks.len(), 50);
//! ```

mod adaptive;
mod algo0;
mod algo2_256;
mod andrea;
mod bill;
mod bits;
#[cfg(feature = "peers")]
mod crates;
pub mod harness;
mod idr;
mod random31;
mod space;
mod sweep;
mod tasks;

pub use adaptive::{Adaptive, crossover_for, passes_at};
pub use algo0::Algo0;
pub use algo2_256::{Window256, algo_2_256_post};
pub use andrea::Andrea;
pub use bill::{Bill, as_posted as bill_as_posted};
pub use bits::{Bits, Locked, Plain};
#[cfg(feature = "peers")]
pub use crates::Crate;
pub use idr::Idr;
pub use random31::Random31;
pub use space::{Space, fill, larder_ids, pidmap};
pub use sweep::{
    Bound, Mask, Start, Sweep, algo_1, algo_1_post, algo_2, algo_2_post, compare_pass, mark_pass,
};
pub use tasks::{Layout, Near, Packed, Task, Tasks};

/// Ids of 2002: 1 to 32767. 0 is the idle task and never handed out.
pub const PID_MAX: u32 = 0x8000;

/// What an algorithm counted since it was made. None of it depends on the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times that a new interval of free ids was looked for: Franke's S.
    pub searches: u64,
    /// Tasks that the searches looked at.
    pub visited: u64,
}

/// A way to find a free process id.
pub trait GetPid {
    /// A free id; `None` when all are in use. The caller adds the task.
    fn get<L: Layout>(&mut self, tasks: &Tasks<L>) -> Option<u32>;

    /// A task has ended and was taken off the list. Only algorithms that keep a map listen.
    fn freed(&mut self, _pid: u32) {}

    /// A task is on the list that the algorithm did not choose the id of, as when a start state is made.
    fn taken(&mut self, _pid: u32) {}

    /// The same after `last` was handed out: ids after it are free up to `next_safe`. What keeps a map goes on from there.
    #[must_use]
    fn after(self, _last: u32, _next_safe: u32) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// The list before the first [`get`](Self::get): the ids of its tasks are taken.
    ///
    /// # Errors
    /// An algorithm that does not come to this state.
    fn start<L: Layout>(&mut self, tasks: &Tasks<L>) -> anyhow::Result<()> {
        tasks.walk(|task| {
            self.taken(task.pid);
            true
        });
        Ok(())
    }

    /// What was counted.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}
