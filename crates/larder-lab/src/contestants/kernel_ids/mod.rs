//! The kernel's own ids as contestants: processes, descriptors and ports, as far as this machine permits.
//!
//! Each takes ids until a share of its space is in use and then gives one back and takes one, again and again. All that
//! it takes it gives back, limits are as before afterwards, and processes and ports live in namespaces of their own.

mod descriptors;
mod ports;
mod processes;

pub use descriptors::Descriptors;
pub use ports::Ports;
pub use processes::Processes;

use crate::measure::Contestant;

/// Every one.
#[must_use]
pub fn all() -> Vec<Box<dyn Contestant>> {
    vec![Box::new(Descriptors), Box::new(Ports), Box::new(Processes)]
}
