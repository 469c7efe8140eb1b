//! Ways of getting mapped memory, and what each step of getting it costs.
//!
//! | file | what is timed |
//! |---|---|
//! | [`cycle`] with [`ways`] | a block of pages got, touched and given back, many times |
//! | [`placed`] | the same where the number of new page tables is known |
//! | [`steps`] | one step of the kernel's work at a time, for the share of zeroing by difference |
//! | [`zeroing`] | zeroing in place, warm and cold, by routine |
//! | [`bill`] | what the consumer pays for a page and its use, helper's time apart |
//! | [`region`] | the first touch of a large region |
//! | [`pool`] | larder's PagePool in the same places |

pub mod area;
pub mod bill;
pub mod cycle;
pub mod host;
pub mod huge;
pub mod pin;
pub mod placed;
pub mod pool;
pub mod region;
pub mod steps;
pub mod tally;
pub mod user_fault;
pub mod ways;
pub mod zeroing;
