//! Draws what was found: terminal, HTML, Markdown and JSON from one [`Document`].

mod document;
mod style;

pub use document::{Document, ReportError, Submission};
pub use style::Style;
