//! Arenas: ranges of numbers.

pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod own;
pub(crate) mod request;
pub(crate) mod shared;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod walk;
