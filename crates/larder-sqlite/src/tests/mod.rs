//! The methods against a naive cache, and SQLite itself on them.

pub(crate) mod model;
mod sql;
