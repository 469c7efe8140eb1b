//! The cost calculator: what four timings say about allocation, fault, zero-fill and free.
//!
//! Two models stand side by side. The first is Nat!'s of August 2003 ("Zerofilling, Part III"):
//! [`Timings`] in, [`Derived`] out, by the formulas of 2003. The second is [`FittedModel`]: a cost per call,
//! per page and per page table, fitted to many sizes with intervals. Everything here is pure
//! arithmetic in microseconds; the page's script repeats it, and one file of vectors
//! (`tests/vectors/calc.json`) holds both to the same numbers.
//!
//! ```
//! use larder_lab::calc::{Timings, derive};
//!
//! let ghz = Timings::new(11.2, 24.0, Some(11.5), 33.6).expect("four times");
//! let costs = derive(&ghz);
//! assert!((costs.object.expect("2p alloc is given") - 3.5).abs() < 1e-9);
//! assert!((costs.deallocation(1).expect("2p alloc is given") - 7.5).abs() < 1e-9);
//! ```

mod derived;
mod fitted;
mod preset;
mod timings;

pub use derived::{Derived, Quantity, derive};
pub use fitted::{FittedModel, Parameter};
pub use preset::{MachineLookup, Preset, Source, Submission, find_preset, published_presets};
pub use timings::{
    Field, FieldError, MAX_PAGES, MAX_US, Refusal, Timings, parse_pages, parse_timings,
};
