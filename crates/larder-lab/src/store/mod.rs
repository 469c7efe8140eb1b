//! The results of all runs: one SQLite file, and JSON lines as interchange.

mod id;

pub use id::{SCHEMA, id_of};
