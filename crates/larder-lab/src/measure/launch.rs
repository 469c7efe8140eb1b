//! How one cell is run: in a fresh process, or in this one for tests and library users.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Experiment, Interrupt, work};
use crate::model::{Cell, Measures};

/// Why a cell yielded nothing. The sentence goes into the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The contestant reported the reason.
    #[error("{0}")]
    Failed(String),
    /// It was ended at its limit.
    #[error("it took longer than {0} s and was ended; raise --cell-limit if that is expected")]
    TooLong(u64),
    /// The process could not be started or read.
    #[error("its process could not be run: {0}")]
    Process(String),
}

/// Runs one cell once.
pub trait Launcher {
    /// Runs the cell of the experiment, within the limit where the launcher can end it.
    ///
    /// # Errors
    /// The contestant's message, or why it could not be run.
    fn launch(
        &mut self,
        experiment: &dyn Experiment,
        cell: &Cell,
        limit: Duration,
    ) -> Result<Measures, LaunchError>;
}

/// Runs cells in this process: no isolation and no limit, for tests and for looking at a contestant in a debugger.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Launcher for InProcess {
    fn launch(
        &mut self,
        experiment: &dyn Experiment,
        cell: &Cell,
        _limit: Duration,
    ) -> Result<Measures, LaunchError> {
        work(experiment, &cell.contestant, &cell.params)
            .map_err(|e| LaunchError::Failed(format!("{e:#}")))
    }
}

/// Runs each cell in a fresh process of the program itself, so that layout and allocator state are drawn anew.
#[derive(Debug)]
pub struct OwnProcess {
    program: PathBuf,
    interrupt: Interrupt,
}

impl OwnProcess {
    /// A launcher that re-executes the running program.
    ///
    /// # Errors
    /// When the program's own path cannot be found.
    pub fn new(interrupt: &Interrupt) -> Result<Self, LaunchError> {
        // /proc/self/exe still names the running image when a build has replaced the file meanwhile, so that
        // all rounds run the same code.
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() {
            own
        } else {
            std::env::current_exe().map_err(|e| LaunchError::Process(e.to_string()))?
        };
        Ok(Self::of(program, interrupt))
    }

    /// A launcher that executes another program with the same hidden subcommand.
    #[must_use]
    pub fn of(program: PathBuf, interrupt: &Interrupt) -> Self {
        Self {
            program,
            interrupt: interrupt.clone(),
        }
    }
}

impl Launcher for OwnProcess {
    fn launch(
        &mut self,
        experiment: &dyn Experiment,
        cell: &Cell,
        limit: Duration,
    ) -> Result<Measures, LaunchError> {
        let params =
            serde_json::to_string(&cell.params).map_err(|e| LaunchError::Process(e.to_string()))?;
        let environment = experiment
            .contestants()
            .iter()
            .find(|c| c.name() == cell.contestant)
            .map(|c| c.environment(&cell.params))
            .unwrap_or_default();
        let child = Command::new(&self.program)
            .envs(environment)
            .args(["worker", "--experiment", experiment.name()])
            .args(["--contestant", &cell.contestant])
            .args(["--params", &params])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Out of reach of the terminal's Ctrl-C: the cell is finished first.
            .process_group(0)
            .spawn()
            .map_err(|e| LaunchError::Process(e.to_string()))?;
        self.interrupt.set_worker(Some(child.id()));
        let end = finish(child, limit);
        self.interrupt.set_worker(None);
        let end = end?;
        read_measures(&end)
    }
}

/// How a worker ended, and its output.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

/// Waits without polling: a poll would take the CPU from the worker and add noise.
fn finish(mut child: Child, limit: Duration) -> Result<Ended, LaunchError> {
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let first = stdout.as_ref().map(|rx| rx.recv_timeout(limit));
    if matches!(first, Some(Err(mpsc::RecvTimeoutError::Timeout))) {
        if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
        return Err(LaunchError::TooLong(limit.as_secs()));
    }
    let status = child
        .wait()
        .map_err(|e| LaunchError::Process(e.to_string()))?;
    // A grandchild may hold the pipe open; its output is not waited for.
    let last =
        |rx: mpsc::Receiver<String>| rx.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    Ok(Ended {
        status,
        stdout: first.and_then(Result::ok).unwrap_or_default(),
        stderr: stderr.map(last).unwrap_or_default(),
    })
}

fn drain(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        // The receiver is gone when the worker was ended at its limit.
        let _ = tx.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    rx
}

fn read_measures(end: &Ended) -> Result<Measures, LaunchError> {
    if !end.status.success() {
        let said = end
            .stderr
            .lines()
            .map(str::trim)
            .rfind(|l| !l.is_empty() && !l.starts_with("note: "))
            .map(|l| l.strip_prefix("larder: ").unwrap_or(l));
        return Err(LaunchError::Failed(match said {
            Some(said) => said.to_owned(),
            None => format!("it ended with {} and said nothing", end.status),
        }));
    }
    // A library below the contestant may print; the measures are the last line.
    let line = end.stdout.lines().rfind(|l| l.starts_with('{'));
    line.and_then(|l| serde_json::from_str(l).ok())
        .ok_or_else(|| LaunchError::Process("it printed no line of measures".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn the_last_line_of_json_is_the_measures() {
        let end = finish(
            shell("echo hello; echo '{\"ns\":1.5}'"),
            Duration::from_secs(20),
        )
        .unwrap();
        assert_eq!(read_measures(&end).unwrap().get("ns"), Some(1.5));
    }

    #[test]
    fn what_a_failing_worker_said_is_the_reason() {
        let end = finish(
            shell("echo noise >&2; echo 'larder: no huge pages here' >&2; exit 5"),
            Duration::from_secs(20),
        )
        .unwrap();
        assert_eq!(
            read_measures(&end),
            Err(LaunchError::Failed("no huge pages here".to_owned()))
        );
    }

    #[test]
    fn a_signal_and_silence_are_reasons_too() {
        let end = finish(shell("kill -9 $$"), Duration::from_secs(20)).unwrap();
        assert_eq!(end.status.signal(), Some(9));
        let said = read_measures(&end).unwrap_err().to_string();
        assert!(said.contains("signal: 9"), "{said}");
        let end = finish(shell("true"), Duration::from_secs(20)).unwrap();
        assert!(matches!(read_measures(&end), Err(LaunchError::Process(_))));
    }

    #[test]
    fn a_worker_that_hangs_is_ended_with_its_children() {
        let begin = Instant::now();
        let end = finish(shell("sleep 600 & sleep 600"), Duration::from_millis(100));
        assert!(matches!(end, Err(LaunchError::TooLong(0))));
        // Not a timing: a lost kill would wait for ten minutes.
        assert!(begin.elapsed() < Duration::from_secs(300));
    }
}
