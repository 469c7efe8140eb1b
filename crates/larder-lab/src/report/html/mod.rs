//! The report as one self-contained HTML file.
//!
//! The file fetches nothing: its policy allows its own style and its own two scripts, each by hash,
//! and nothing else, so that a hostile name could do nothing even if it passed the escaping.

mod data;
mod finding;
mod glossary;
mod goals;
mod policy;
mod record;
mod summary;
mod table;
mod view;

use askama::Template;

use super::document::{Document, ReportError};
use super::text;

/// The report as one HTML file that fetches nothing.
///
/// # Errors
/// A page that cannot be composed.
///
/// ```
/// use larder_lab::report::{Document, html};
///
/// let page = html(&Document::default()).expect("an empty document has nothing to fail");
/// assert!(page.contains("Content-Security-Policy"));
/// ```
pub fn html(doc: &Document) -> Result<String, ReportError> {
    Ok(inert(&view::page(doc)?.render()?))
}

/// Takes out of the whole page what escaping leaves in: characters that turn the direction of the text
/// around them, and control characters. Style and scripts have none, so their hashes stay.
fn inert(page: &str) -> String {
    page.chars()
        .map(|c| {
            if text::steers(c) && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
