//! Linux 2.4.8 and 2.4.9: use-once as it was merged.

use super::super::Frame;
use super::age;
use super::page_lists::{On, PageLists};
use super::vm_2_4_7::{Version, Vm};

/// Linux 2.4.8. As [`Linux247UseOnce`](super::Linux247UseOnce), but `check_used_once` looks at inactive blocks only, and one
/// that has an age, so was used before, goes to the active ring at this second use, not when it reaches the tail. Its
/// Referenced bit stays set, which makes it older at the next scan: the double boost that its author later regretted.
///
/// Source: `mm/filemap.c` of 2.4.8 and 2.4.9. 10 bytes a frame; a hit is one or two
/// stores, the second use moves a node.
///
/// ```
/// use larder_policy::{Arrival, Block, Linux248, Policy, Touch};
/// let mut rule = Linux248::new(4)?;
/// for frame in 0..4 {
///     rule.insert(frame, Arrival::demand(Block(frame.into()), 0, Default::default()));
/// }
/// rule.touch(0, Touch { request: 1 });
/// assert_eq!(rule.explain()[0], ("active", 1.0)); // at once
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type Linux248 = Vm<Merged>;

/// What 2.4.8 changes in it.
#[derive(Debug)]
pub enum Merged {}

impl Version for Merged {
    /// `check_used_once` of 2.4.8.
    fn used(pages: &mut PageLists, page: Frame) {
        if pages.is_on(page, On::Active) {
            return;
        }
        if pages.age(page) > 0 {
            pages.move_to(page, On::Active); // activate_page: it has START at least
            pages.set_age(page, pages.age(page).max(age::START));
        } else {
            pages.set_age(page, age::START);
            pages.refer(page, false);
        }
    }
}
