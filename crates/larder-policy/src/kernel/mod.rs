//! The replacement rules of Linux, from July 2001 to today, each as its sources state it.
//!
//! | rule | kernel | a new block | promoted |
//! |---|---|---|---|
//! | [`Linux247::new`] | 2.4.7 | active, age 2 | never: ages rise and fall |
//! | [`Linux247::use_once`] | 2.4.7 and D. Phillips' patch | inactive, age 0 | at the tail, if touched since its first use |
//! | [`Linux247::merged`] | 2.4.8 and 2.4.9 | inactive, age 0 | at the second use |
//! | [`Linux2416`] | 2.4.10 to 2.4.16 | inactive | at the second use |
//! | [`TwoList`] | 6.x, two lists and shadows | inactive, or active if it was evicted a short while ago | at the second use |
//! | [`Mglru`] | 6.14 to 6.18, generations | oldest generation | at the exit, if its tier refaults more than others |
//!
//! # What a simulation must assume
//!
//! - One zone, all of it page cache: the capacity is the zone's size. The kernels keep some pages free besides (up to 765 in
//!   2.4); here a frame is free only until it is used for the first time and after a removal. So 2.4's target for free pages
//!   becomes a target for clean inactive ones.
//! - No mapped pages, no anonymous ones, no swap. Rules about page tables are left out.
//! - A touch is one pass of the read or write path over one page: one read call, one page. 2.4 counts every call. 6.x counts
//!   calls on one page through one open file, one after the other, once; here these have one request number.
//! - kswapd runs at once when it is woken, and a rule's [`tick`](super::Policy::tick) is its second. An owner that never
//!   ticks has a 2.4.7 whose pressure does not decay: its inactive target goes to a quarter of memory and stays there.
//! - [`Pinned`](super::FrameState::Pinned) is a page with another user (`page_count` above 1);
//!   [`Dirty`](super::FrameState::Dirty) is one with dirty buffers or under write-back: an owner says `Dirty` until the write
//!   is done. `write_back` of a frame whose write is under way is asked again, and changes nothing.
//! - Where a kernel would wait for a write, a rule has no time to wait: it evicts the oldest dirty frame, and its owner writes.
//!   Every rule does so as a last resort, after what the kernel does first.
//!
//! The 2.4 rules cost 10 bytes a frame, the others 13; they keep no table. A hit is one or two stores, without a list move
//! except at a promotion.

mod age;
mod laundry;
mod linux_2_4_16;
mod linux_2_4_7;
mod mglru;
mod page_lists;
mod targets;
mod two_list;

#[cfg(test)]
mod tests;

pub use linux_2_4_7::Linux247;
pub use linux_2_4_16::Linux2416;
pub use mglru::Mglru;
pub use two_list::TwoList;

/// Pages that one pass of reclaim wants (`include/linux/swap.h`).
const SWAP_CLUSTER_MAX: usize = 32;
