//! Instructions of one hit, counted by valgrind's callgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::model::{Measures, Params};

use super::shapes::WARM_SHARE;

/// Gets of the shorter run; the longer one makes twice as many.
const GETS: u64 = 100_000;
/// Blocks of the cache.
const BLOCKS: i64 = 4096;

/// Whether callgrind is there.
///
/// # Errors
/// The sentence that says what to install.
pub(super) fn available() -> Result<(), String> {
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

/// Counts the instructions of one get of the contestant that the factor `cache` names: the difference of two runs
/// of the same program, one with twice as many gets, so that everything else (start, warm-up's constant part, exit)
/// cancels.
///
/// The program runs itself under valgrind through its worker subcommand.
///
/// # Errors
/// Valgrind is missing, cannot run this program, or its output has no count.
pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    available().map_err(anyhow::Error::msg)?;
    let program = std::env::current_exe().context("the program's own path cannot be found")?;
    run_with(&program, params.text("cache")?)
}

/// As [`run`], with the program to run.
fn run_with(program: &Path, cache: &str) -> anyhow::Result<Measures> {
    let short = count(program, cache, GETS)?;
    let long = count(program, cache, 2 * GETS)?;
    Ok(Measures::new().with("instructions", per_get(short, long)))
}

/// Instructions of a get from the counts of the two runs.
fn per_get(short: u64, long: u64) -> f64 {
    // The shape runs a quarter more before its clock starts.
    let gets = GETS + GETS / WARM_SHARE;
    long.saturating_sub(short) as f64 / gets as f64
}

fn count(program: &Path, cache: &str, gets: u64) -> anyhow::Result<u64> {
    let params = Params::new()
        .with_text("shape", "hit")
        .with("blocks", BLOCKS)
        .with("turns", i64::try_from(gets)?);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["worker", "--experiment", "block-cache"])
        .args(["--contestant", cache])
        .args(["--params", &serde_json::to_string(&params)?])
        .stdin(Stdio::null())
        .output()
        .context("valgrind could not be started")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = text.lines().last().unwrap_or("it said nothing");
        bail!("valgrind could not run contestant '{cache}': {last}");
    }
    collected(&text).with_context(|| format!("valgrind printed no count for contestant '{cache}'"))
}

/// The count in callgrind's closing lines: `==123== Collected : 4567`.
fn collected(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.split_whitespace().next())
        .and_then(|count| count.parse().ok())
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
        // Otherwise the share of a get is off by the remainder.
        assert_eq!(GETS % WARM_SHARE, 0);
        // Ten instructions a get over a start of a million.
        let count = |gets: u64| 1_000_000 + 10 * (gets + gets / WARM_SHARE);
        assert_eq!(per_get(count(GETS), count(2 * GETS)), 10.0);
    }

    #[test]
    fn a_program_that_cannot_run_is_an_error() {
        if available().is_ok() {
            assert!(run_with(Path::new("/nonexistent/larder"), "larder").is_err());
        }
    }
}
