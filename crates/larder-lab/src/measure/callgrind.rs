//! Instructions of a contestant's work, counted by valgrind's callgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::model::Params;

/// Whether callgrind is there.
///
/// # Errors
/// The sentence that says what to install.
pub(crate) fn available() -> Result<(), String> {
    match on_path("valgrind") {
        Some(_) => Ok(()),
        None => Err(
            "valgrind is not installed; install it (Debian: apt install valgrind) to count instructions"
                .to_owned(),
        ),
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Instructions of one worker process from start to end: `program` runs the contestant with these factors under valgrind.
///
/// # Errors
/// Valgrind is missing, cannot run the program, or its output has no count.
pub(crate) fn count(
    program: &Path,
    experiment: &str,
    contestant: &str,
    params: &Params,
) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["worker", "--experiment", experiment])
        .args(["--contestant", contestant])
        .args(["--params", &serde_json::to_string(params)?])
        .stdin(Stdio::null())
        .output()
        .context("valgrind could not be started")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = text.lines().last().unwrap_or("it said nothing");
        bail!("valgrind could not run contestant '{contestant}': {last}");
    }
    collected(&text)
        .with_context(|| format!("valgrind printed no count for contestant '{contestant}'"))
}

/// The count in callgrind's closing lines: `==123== Collected : 4567`.
fn collected(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.split_whitespace().next())
        .and_then(|count| count.parse().ok())
}

/// Instructions of one piece of work from the counts of two runs, the second with twice as many pieces as the first: start and
/// exit cancel. Both also run one in `warm_share` more before their clock starts.
pub(crate) fn per_piece(short: u64, long: u64, pieces: u64, warm_share: u64) -> f64 {
    let difference = pieces + pieces / warm_share;
    long.saturating_sub(short) as f64 / difference as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_count_that_callgrind_prints() {
        let text = "==7== \n==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(text), Some(123_456));
        assert_eq!(collected("==7== Collected : many"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn the_warm_up_is_counted() {
        // Ten instructions a piece over a start of a million.
        let count = |pieces: u64| 1_000_000 + 10 * (pieces + pieces / 8);
        assert_eq!(per_piece(count(800), count(1600), 800, 8), 10.0);
    }

    #[test]
    fn a_program_that_cannot_run_is_an_error() {
        if available().is_ok() {
            let program = Path::new("/nonexistent/larder");
            assert!(count(program, "page-pool", "pool", &Params::new()).is_err());
        }
    }
}
