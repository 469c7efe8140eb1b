//! Data structures that larder's crates share. They make no system call and have no `unsafe` code.
//!
//! | module | what it is | what uses it |
//! |---|---|---|
//! | [`bitmap`] | a set of numbers that finds its lowest member at once | block sets of `larder::pages`, pin rows of `larder_cache` |
//! | [`list`] | doubly linked lists through one array | every replacement rule that keeps an order |
//! | [`table`] | arrays whose memory may be refused | lists, replacement rules |
//! | [`word`] | numbers as bits of words | bitmaps, the maps of `larder::ids` |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bitmap;
pub mod list;
pub mod table;
pub mod word;
