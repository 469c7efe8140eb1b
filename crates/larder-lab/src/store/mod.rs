//! The results of all runs: one SQLite file, and JSON lines as interchange.
//!
//! The file is a plain database that any SQLite tool opens; the view `samples` joins everything that a query
//! usually wants: `SELECT experiment, contestant, params, avg(value) FROM samples WHERE metric = '…' GROUP BY 1, 2, 3`.

mod database;
mod error;
mod exchange;
mod foreign;
mod id;
mod location;
mod records;
mod rows;
mod schema;
mod select;
mod unfinished;

pub use database::Store;
pub use error::StoreError;
pub use exchange::{Imported, export};
pub use id::{SCHEMA, id_of};
pub use location::default_path;
pub use records::RunSummary;
pub use select::Selector;
pub use unfinished::{Broken, Unfinished};
