//! Replacement rules: which block of a full cache leaves when another one comes.
//!
//! The crate has rules from papers and from Linux behind one trait, [`Policy`]. A rule handles numbers and no memory, so the same
//! code runs in a simulator, in a block cache and in a database. It has no `unsafe` code.
//!
//! # A first look
//!
//! [`Replay`](replay::Replay) is a cache without contents: it runs a rule over block numbers and counts hits.
//!
//! ```
//! use larder_policy::{Lru, S3Fifo, replay::Replay};
//!
//! let (mut lru, mut s3) = (Replay::new(Lru::new(100)?)?, Replay::new(S3Fifo::new(100)?)?);
//! for at in 0..100_000 {
//!     // A few blocks again and again, and many that are used once.
//!     let block = if at % 2 == 0 { at / 2 % 90 } else { 1000 + at };
//!     lru.access(block, at);
//!     s3.access(block, at);
//! }
//! assert!(s3.hits() > lru.hits());
//! # Ok::<(), larder_policy::PolicyError>(())
//! ```
//!
//! # A rule and its owner
//!
//! The owner is the cache. It numbers its *frames*, places in memory for one block, densely from 0, and knows which block is in
//! which frame. The rule keeps arrays by frame, and allocates when it is made or resized; [`Adaptive`] does a few times more until it has
//! seen enough to learn from, and goes on without where there is no memory. What it must remember of an evicted block is a [`Shadow`], one
//! word, which the owner keeps. The owner shows it again when the block comes back; a lost shadow costs hits and nothing else. So a rule
//! needs no table of blocks. [`Shadows`] is a store for an owner that has none.
//!
//! | access | calls |
//! |---|---|
//! | hit | [`touch`](Policy::touch) |
//! | miss | [`miss`](Policy::miss) with the block's shadow; [`evict`](Policy::evict) while there is no free frame; [`insert`](Policy::insert) |
//! | a frame is pinned for long, and no longer | [`park`](Policy::park), when `evict` has looked at it; [`unpark`](Policy::unpark) |
//! | the block is gone, or only its contents are | [`remove`](Policy::remove), [`invalidate`](Policy::invalidate) |
//!
//! ```
//! use larder_policy::{Arrival, Block, Lru, Policy, Reason, Touch};
//!
//! let mut rule = Lru::fifo(2)?;
//! for (frame, block) in [(0, 10), (1, 11)] {
//!     let admission = rule.miss(Block(block), None, Reason::Demand);
//!     rule.insert(frame, Arrival::demand(Block(block), 0, admission));
//! }
//! rule.touch(0, Touch { request: 1 });
//! let mut gone = Vec::new(); // an owner that has nothing pinned: see [`Frames`]
//! rule.evict(&mut gone, 1);
//! assert_eq!(gone, [0]); // a FIFO does not care for the touch
//! # Ok::<(), larder_policy::PolicyError>(())
//! ```
//!
//! # Choosing one
//!
//! [`rules`] lists all with a line on each and the source; [`Adaptive`] is the default of larder's block cache. There are three ways
//! to a rule:
//!
//! | the rule is known | take | calls are |
//! |---|---|---|
//! | in the source | its constructor, as `Lru::new` | compiled for it |
//! | by name, and speed matters (a simulator) | [`with_rule`], which calls generic code with the rule | compiled for each rule |
//! | by name | [`rule`], which gives a `Box<dyn Policy>` | virtual |
//!
//! A rule of your own implements [`Policy`] only.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod adaptive;
mod arc;
mod bits;
mod cacheus;
mod capacity;
mod car;
mod clock;
mod clock_pro;
mod error;
mod event;
mod frames;
mod ghosts;
mod heap;
mod hyperbolic;
mod in_order;
mod kernel;
mod lecar;
mod lfu;
mod lirs;
mod lists;
mod lru2;
mod mq;
mod policy;
mod random;
mod registry;
pub mod replay;
mod ring;
mod s3fifo;
mod shadows;
mod sieve;
mod sketch;
mod tiny_lfu;
mod two_q;

pub use adaptive::Adaptive;
pub use arc::Arc;
pub use cacheus::Cacheus;
pub use capacity::MOST_FRAMES;
pub use car::Car;
pub use clock::Clock;
pub use clock_pro::ClockPro;
pub use error::PolicyError;
pub use event::{Admission, Arrival, Block, Frame, Reason, Shadow, Touch};
pub use frames::{FrameState, Frames};
pub use hyperbolic::Hyperbolic;
pub use in_order::Lru;
pub use kernel::{Linux247, Linux2416, Mglru, TwoList};
pub use lecar::LeCaR;
pub use lfu::LfuDa;
pub use lirs::Lirs;
pub use lru2::Lru2;
pub use mq::Mq;
pub use policy::Policy;
pub use registry::{Info, Visitor, rule, rules, with_rule};
pub use s3fifo::S3Fifo;
pub use shadows::Shadows;
pub use sieve::Sieve;
pub use tiny_lfu::WTinyLfu;
pub use two_q::TwoQ;
