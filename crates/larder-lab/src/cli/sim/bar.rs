//! Progress bars on stderr, shown on a terminal only.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::global::Global;
use larder_sim::{Meter, Watch};

/// How far something is.
pub(in crate::cli) struct Progress(ProgressBar);

fn bar(global: &Global, len: u64, template: &str, prefix: String) -> Progress {
    if global.quiet {
        return Progress(ProgressBar::hidden());
    }
    // Five redraws a second are as many as an eye can follow.
    let bar =
        ProgressBar::with_draw_target(Some(len.max(1)), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(prefix);
    Progress(bar)
}

fn short(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    crate::cli::output::plain(name)
}

impl Progress {
    /// A file is read.
    pub(in crate::cli) fn reading(global: &Global, path: &Path) -> Self {
        let template = "reading {prefix} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec}";
        bar(global, 0, template, short(&path.display().to_string()))
    }

    /// Cells are simulated.
    pub(super) fn simulating(global: &Global, name: &str, total: u64) -> Self {
        let template = "simulating {prefix} [{bar:24}] {percent} % {elapsed}, {eta} left";
        bar(global, total, template, short(name))
    }

    pub(in crate::cli) fn at(&mut self, meter: &Meter) {
        self.0.set_length(meter.total().max(meter.done()));
        self.0.set_position(meter.done());
    }

    pub(in crate::cli) fn end(&self) {
        self.0.finish_and_clear();
    }

    /// Does the work while another thread looks at the clock.
    pub(super) fn watch<T>(&self, watch: &Watch, work: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(self.0.is_hidden());
        let result = std::thread::scope(|scope| {
            // Without a thread there is no bar, that is all.
            let looker = std::thread::Builder::new().spawn_scoped(scope, || {
                while !over.load(Ordering::Acquire) {
                    self.0.set_position(watch.done.load(Ordering::Relaxed));
                    std::thread::park_timeout(Duration::from_millis(100));
                }
            });
            let result = work();
            over.store(true, Ordering::Release);
            if let Ok(looker) = looker {
                looker.thread().unpark();
            }
            result
        });
        self.end();
        result
    }
}
