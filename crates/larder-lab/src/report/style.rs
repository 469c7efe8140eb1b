//! The style of text on a terminal.

/// Colour and width of the terminal's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// True for ANSI colours. The caller has looked at `NO_COLOR`, `--color` and whether it is a terminal.
    pub color: bool,
    /// Columns that a line may fill.
    pub width: usize,
}

impl Style {
    /// No colours, 100 columns: for pipes and tests.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            color: false,
            width: 100,
        }
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::plain()
    }
}
