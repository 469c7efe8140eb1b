//! The process that serves a mount, in the foreground or behind a command that has returned.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use larder_fs::FsError;

use super::{Mount, fault, words};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output;
use crate::cli::run::code;

/// In the environment of the process behind.
const BEHIND: &str = "LARDER_MOUNT_BEHIND";
/// It prints this when the mount can be used.
const READY: &str = "mounted";

/// The system's log.
const SYSTEM_LOG: &str = "/dev/log";

/// Where a mount reports conflicts and failed writes: on stderr, or in the system's log where it has a socket.
struct Log(Option<UnixDatagram>);

impl Log {
    fn to(socket: Option<UnixDatagram>) {
        // A mount does not wait for a log that is full.
        let _ = socket.as_ref().map(|socket| socket.set_nonblocking(true));
        if log::set_boxed_logger(Box::new(Self(socket))).is_ok() {
            log::set_max_level(log::LevelFilter::Warn);
        }
    }
}

impl log::Log for Log {
    fn enabled(&self, about: &log::Metadata<'_>) -> bool {
        about.target().starts_with("larder")
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args();
        match &self.0 {
            Some(socket) => {
                // A daemon's error or warning (RFC 3164).
                let severity = if record.level() == log::Level::Error {
                    3
                } else {
                    4
                };
                let line = format!(
                    "<{}>larder[{}]: {text}",
                    3 * 8 + severity,
                    std::process::id()
                );
                let _ = socket.send_to(line.as_bytes(), SYSTEM_LOG);
            }
            None => {
                let _ = writeln!(io::stderr(), "larder: {text}");
            }
        }
    }

    fn flush(&self) {}
}

pub(in crate::cli) fn run(global: &Global, args: &Mount, out: &mut dyn Write) -> Outcome {
    if args.foreground {
        Log::to(None);
        return serve(args, || {
            output::hint(global, "mounted; Ctrl-C unmounts");
            Ok(())
        });
    }
    if std::env::var_os(BEHIND).is_some() {
        Log::to(UnixDatagram::unbound().ok());
        return serve(args, || {
            writeln!(out, "{READY}")?;
            out.flush()?;
            let_go()
        });
    }
    behind()
}

/// Starts this program anew, as the process that serves, and waits until the mount can be used or the process ends.
fn behind() -> Outcome {
    let fail =
        |e: io::Error| Failure::io(format!("the process that serves cannot be started: {e}"));
    let mut child = Command::new(std::env::current_exe().map_err(fail)?)
        // By the name `mount.larder` its words would be those of mount(8).
        .arg0("larder")
        .args(words().into_iter().skip(1))
        .env(BEHIND, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(fail)?;
    }
    if line.trim_end() == READY {
        return Ok(());
    }
    // It has said why.
    std::process::exit(code(child.wait().map_err(fail)?))
}

/// Keeps neither the terminal nor a directory.
fn let_go() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    // It fails where this process leads a group already: then there is no terminal to leave.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")
}

/// Mounts, and serves until the end.
fn serve(args: &Mount, ready: impl FnOnce() -> io::Result<()>) -> Outcome {
    let (sender, events) = mpsc::channel();
    let signal = sender.clone();
    ctrlc::set_handler(move || {
        let _ = signal.send(None);
    })
    .map_err(|e| Failure::io(format!("signals cannot be caught: {e}")))?;
    let mount = Arc::new(args.options().mount().map_err(fault)?);
    ready()?;
    let waiting = Arc::clone(&mount);
    let waiter = std::thread::spawn(move || {
        let _ = sender.send(Some(waiting.wait()));
    });
    let end = loop {
        match events.recv() {
            Ok(Some(end)) => break end,
            Err(_) => break Ok(()),
            // A signal. The mount's end is the next event, unless something cannot be written: then it stays.
            Ok(None) => match mount.unmount() {
                Ok(()) => {}
                Err(error) => {
                    log::error!("{error}");
                    if matches!(error, FsError::InUse { .. }) {
                        mount.detach().map_err(fault)?;
                    }
                }
            },
        }
    };
    // The last one that has the mount takes its socket away, and that is this thread.
    let _ = waiter.join();
    end.map_err(fault)
}
