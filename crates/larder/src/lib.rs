//! Page buffers from one magazine layer.
#![cfg_attr(not(test), warn(clippy::expect_used))]
pub mod magazine;
pub mod os;
