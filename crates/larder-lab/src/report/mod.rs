//! Draws what was found: terminal, HTML, Markdown and JSON from one [`Document`].
//!
//! Text in a document may come from outside (a processor's name, an imported file). No format trusts it: each
//! escapes it in its own way.

mod chart;
mod document;
mod html;
mod json;
mod machines;
mod markdown;
pub mod number;
mod spark;
mod style;
mod summary;
mod terminal;
mod text;
mod value;

pub use document::{Document, ReportError, Submission};
pub use html::html;
pub use json::{SCHEMA, json};
pub use markdown::markdown;
pub use style::Style;
pub use summary::{Summary, Supported};
pub use terminal::{findings, goals, summary, terminal};
