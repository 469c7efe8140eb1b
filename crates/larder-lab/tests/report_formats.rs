//! The same document in every format.

mod report_fixture;

use std::io::{self, Write};

use larder_lab::report::{Document, Style, html, json, markdown, terminal};
use report_fixture::{HOSTILE, document};

fn on_terminal(doc: &Document, style: Style) -> String {
    let mut out = Vec::new();
    terminal(doc, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn html_is_written_for_a_look() {
    let page = html(&document()).unwrap();
    let path = format!("{}/report.html", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(path, page).unwrap();
}

#[test]
fn terminal_text() {
    println!(
        "{}",
        on_terminal(
            &document(),
            Style {
                color: true,
                width: 110
            }
        )
    );
    println!(
        "{}",
        on_terminal(
            &document(),
            Style {
                color: false,
                width: 60
            }
        )
    );
    println!("{}", markdown(&document()));
}
