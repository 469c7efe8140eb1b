//! Replacement rules: which resident block leaves when another one comes.
//!
//! A rule sees frames, numbered densely from 0, and never the blocks' contents. It keeps its state in arrays by frame, and
//! allocates when it is made or resized, never on an access. What it wants to remember of a block that left, it hands out as
//! a [`Shadow`], which the owner keeps (or loses) and shows again when the block comes back: so a rule needs no table of
//! blocks, neither for residents nor for ghosts.
//!
//! An access is one of two sequences:
//!
//! | access | calls |
//! |---|---|
//! | hit | [`touch`](Policy::touch) |
//! | miss | [`miss`](Policy::miss) with the block's shadow; [`evict`](Policy::evict) while there is no free frame; [`insert`](Policy::insert) |
//!
//! ```
//! use larder::cache::policy::{Arrival, Block, Fifo, Policy, Reason, Touch};
//!
//! let mut rule = Fifo::new(2)?;
//! for (frame, block) in [(0, 10), (1, 11)] {
//!     let admission = rule.miss(Block(block), None, Reason::Demand);
//!     rule.insert(frame, Arrival::demand(Block(block), 0, admission));
//! }
//! rule.touch(0, Touch { request: 1 });
//! let mut gone = Vec::new();
//! rule.evict(&mut gone, 1);
//! assert_eq!(gone, [0]); // a FIFO does not care for the touch
//! # Ok::<(), larder::cache::policy::PolicyError>(())
//! ```
//!
//! Rules are found by name in one of two ways: [`with_rule`] calls generic code with the rule's type, so that the compiler makes
//! a loop for each rule (a simulator); [`rule`] gives a `Box<dyn Rule>` (a cache, whose rule its user chooses while it runs).

mod adaptive;
mod all;
mod arc;
mod boxed;
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
mod lru2;
mod mq;
mod random;
mod ring;
mod rule;
mod s3fifo;
mod sieve;
mod sketch;
mod tiny_lfu;
mod two_q;

pub use adaptive::Adaptive;
pub use all::{Info, Visitor, rules, with_rule};
pub use arc::Arc;
pub use boxed::{Rule, rule};
pub use cacheus::Cacheus;
pub use capacity::MOST_FRAMES;
pub use car::Car;
pub use clock::{Clock, Gclock, Sweep};
pub use clock_pro::ClockPro;
pub use error::PolicyError;
pub use event::{Admission, Arrival, Block, Frame, Reason, Shadow, Touch};
pub use frames::{FrameState, Frames};
pub use hyperbolic::Hyperbolic;
pub use in_order::{Fifo, InOrder, Lru};
pub use kernel::{Linux247, Linux247UseOnce, Linux248, Linux2416, Mglru, TwoList};
pub use lecar::LeCaR;
pub use lfu::LfuDa;
pub use lirs::Lirs;
pub use lru2::Lru2;
pub use mq::Mq;
pub use rule::Policy;
pub use s3fifo::{Clock2QPlus, S3Fifo, S3FifoOneBit, ThreeQueues};
pub use sieve::Sieve;
pub use tiny_lfu::{WTinyLfu, WTinyLfuClimbing, WindowTinyLfu};
pub use two_q::TwoQ;
