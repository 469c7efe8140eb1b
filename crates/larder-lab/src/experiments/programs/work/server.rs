//! Servers that a client asks over a local socket.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::super::process::{Spent, wait};

/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with this value.
pub(super) struct Server(Option<Child>);

impl Server {
    /// Starts one, and waits until it listens at `socket`.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not listen.
    pub(super) fn start(mut command: Command, socket: &Path) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        die_with_us(&mut command);
        let child = command.spawn();
        let mut server = Self(Some(
            child.with_context(|| format!("{name} cannot be run"))?,
        ));
        let begin = Instant::now();
        while UnixStream::connect(socket).is_err() {
            let child = server.0.as_mut();
            if let Some(status) = child.and_then(|child| child.try_wait().ok().flatten()) {
                server.0 = None;
                bail!("{name} ended with {status} before it listened");
            }
            ensure!(begin.elapsed() < PATIENCE, "{name} does not listen");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(server)
    }

    /// Asks it to end by a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let id = self
            .0
            .as_ref()
            .and_then(|child| i32::try_from(child.id()).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            let _ = kill_process(id, signal);
        }
    }

    /// Waits for its end, and what it and its processes cost.
    ///
    /// # Errors
    /// It ended with an error.
    pub(super) fn end(mut self) -> anyhow::Result<Spent> {
        let child = self.0.take().context("the server is gone")?;
        let (status, spent) = wait(child)?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(spent)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A worker that is ended at its limit must not leave a server behind.
fn die_with_us(command: &mut Command) {
    let die = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: between fork and exec only prctl is called, which is a bare system call.
    unsafe { command.pre_exec(die) };
}
