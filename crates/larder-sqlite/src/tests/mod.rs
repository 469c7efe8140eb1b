//! The methods against a naive cache, and SQLite itself on them.

mod model;
mod sql;
