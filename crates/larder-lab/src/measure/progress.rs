//! What the user sees while the lab measures.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Receives the events of a run. Progress goes to stderr; stdout is data.
pub trait Progress {
    /// The next experiment is the `number`th of `of`; those after it take about `rest`.
    fn place(&mut self, _number: usize, _of: usize, _rest: Duration) {}
    /// An experiment begins; it will take about this long.
    fn begin(&mut self, experiment: &str, guess: Duration);
    /// What has run says what else is to run: so much time has passed, and it takes about this long.
    fn more(&mut self, _elapsed: Duration, _guess: Duration) {}
    /// A cell of a group is about to run; so much time has passed.
    fn cell(&mut self, group: &str, round: u32, cell: &str, elapsed: Duration);
    /// Something that the user should know now.
    fn note(&mut self, sentence: &str);
    /// The experiment is over.
    fn end(&mut self);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&mut self, _: &str, _: Duration) {}
    fn cell(&mut self, _: &str, _: u32, _: &str, _: Duration) {}
    fn note(&mut self, _: &str) {}
    fn end(&mut self) {}
}

/// A bar on stderr; indicatif hides it when stderr is not a terminal.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    place: (usize, usize),
    guess: Duration,
    rest: Duration,
}

impl Bar {
    /// A bar that shows itself when the first experiment begins.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            place: (1, 1),
            guess: Duration::ZERO,
            rest: Duration::ZERO,
        }
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Bar {
    fn place(&mut self, number: usize, of: usize, rest: Duration) {
        self.place = (number, of);
        self.rest = rest;
    }

    fn begin(&mut self, experiment: &str, guess: Duration) {
        self.guess = guess;
        // Five redraws a second: drawing takes CPU from the worker, and no reader needs more.
        let bar = ProgressBar::with_draw_target(
            Some(millis(guess).max(1)),
            ProgressDrawTarget::stderr_with_hz(5),
        );
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:10}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        let (number, of) = self.place;
        bar.set_prefix(format!("experiment {number} of {of}: {experiment}"));
        self.bar = bar;
    }

    fn more(&mut self, elapsed: Duration, guess: Duration) {
        self.guess = elapsed + guess;
        self.bar.set_length(millis(self.guess).max(1));
    }

    fn cell(&mut self, _group: &str, _round: u32, _cell: &str, elapsed: Duration) {
        // A guess that was too short must not show a bar that stands at its end.
        let now = millis(elapsed);
        if let Some(len) = self.bar.length().filter(|len| now >= *len) {
            self.bar.set_length(len + len / 4 + 1);
        }
        // A line shorter than a narrow terminal: a longer one would wrap at a resize, and its first part would stay.
        let left = (self.guess.saturating_sub(elapsed) + self.rest).as_secs();
        self.bar
            .set_message(format!("{}:{:02} left", left / 60, left % 60));
        self.bar.set_position(now);
    }

    fn note(&mut self, sentence: &str) {
        // `println` of a hidden bar prints nothing; the sentence must be read in a log file too.
        self.bar.suspend(|| eprintln!("larder: {sentence}"));
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}
