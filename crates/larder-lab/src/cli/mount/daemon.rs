//! The process that serves a mount, in the foreground or behind a command that has returned.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
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

pub(in crate::cli) fn run(global: &Global, args: &Mount, out: &mut dyn Write) -> Outcome {
    if args.foreground {
        return serve(args, || {
            output::hint(global, "mounted; Ctrl-C unmounts");
            Ok(())
        });
    }
    if std::env::var_os(BEHIND).is_some() {
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
                Err(error @ FsError::InUse { .. }) => {
                    fault(error).report();
                    mount.detach().map_err(fault)?;
                }
                Err(error) => {
                    fault(error).report();
                }
            },
        }
    };
    // The last one that has the mount takes its socket away, and that is this thread.
    let _ = waiter.join();
    end.map_err(fault)
}
