//! Linux 2.4.7 with Daniel Phillips' use-once patch: "patched" in Lord's table.

use super::super::Frame;
use super::age;
use super::page_lists::PageLists;
use super::vm_2_4_7::{Version, Vm};

/// Linux 2.4.7 with "Optimization for use-once pages" (26 July 2001). A block comes in inactive, at age 0. Its first use, by
/// the call that brought it or later, makes that 2 (`check_used_once`); any further use sets its Referenced bit, and when
/// the block reaches the tail of an inactive list, that bit rescues it to the active ring. Nothing is dropped behind: what is
/// used once leaves anyway. Blocks read ahead and never used leave unused.
///
/// A block whose age has sunk to 0 on the active ring looks new again at its next use (its author says so).
///
/// Source: D. Phillips, <01072622195600.00285@starship>. 10 bytes a frame; a hit is two stores.
///
/// ```
/// use larder_policy::{Linux247UseOnce, replay::Replay};
/// let mut cache = Replay::new(Linux247UseOnce::new(1_000)?)?;
/// for block in 0..300 {
///     cache.access(block, 0);
///     cache.access(block, 1);
/// }
/// for block in 1_000..6_000 {
///     cache.access(block, 2); // once: these leave
/// }
/// (0..300).for_each(|block| assert!(cache.access(block, 3)));
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type Linux247UseOnce = Vm<UseOnce>;

/// What the patch changes.
#[derive(Debug)]
pub enum UseOnce {}

impl Version for UseOnce {
    /// `check_used_once` of the patch.
    fn used(pages: &mut PageLists, page: Frame) {
        if pages.age(page) == 0 {
            pages.set_age(page, age::START);
            pages.refer(page, false);
        }
    }
}
