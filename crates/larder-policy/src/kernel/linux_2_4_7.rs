//! Linux 2.4.7 as released on 20 July 2001: "vanilla" in Lord's table.

use super::super::Frame;
use super::age;
use super::page_lists::{On, PageLists};
use super::vm_2_4_7::{Version, Vm};

/// Linux 2.4.7. A block comes in active at age 2. A use only sets its Referenced bit; the scan of the active ring turns that
/// into an age higher by 3, and the lack of a use into half the age; at 0 the block becomes inactive. Sequential readers and writers push what
/// they passed out of the active ring ([`drop_behind`](super::super::Policy::drop_behind)), popular or not: the first of
/// Phillips' complaints. An inactive block is rescued if it was used since, or has an age.
///
/// Source: `mm/{vmscan,swap,filemap,page_alloc}.c` of 2.4.0 and the patches up to 2.4.7, see the
/// module `kernel`. 10 bytes a frame; a hit is one store.
///
/// Without ticks the inactive lists go to a quarter of memory; dirty pages are written in bulk, as in the kernel.
///
/// ```
/// use larder_policy::{Linux247, replay::Replay};
/// let mut cache = Replay::new(Linux247::new(100)?)?;
/// for block in 0..1_000 {
///     cache.access(block % 10, block);
///     cache.access(100 + block, block);
/// }
/// assert_eq!(cache.hits(), 990); // the ten used often stay
/// # Ok::<(), larder_policy::PolicyError>(())
/// ```
pub type Linux247 = Vm<Vanilla>;

/// What is vanilla in it.
#[derive(Debug)]
pub enum Vanilla {}

impl Version for Vanilla {
    const DROPS_BEHIND: bool = true;

    fn add(pages: &mut PageLists, page: Frame) {
        pages.add(page, On::Active, age::START);
    }

    fn used(_: &mut PageLists, _: Frame) {}

    fn in_use(pages: &PageLists, page: Frame) -> bool {
        pages.referenced(page) || pages.age(page) > 0
    }

    fn rescued(_: &mut PageLists, _: Frame) {}
}
