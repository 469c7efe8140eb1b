//! How a command ends when it fails, and its exit code for scripts.

use std::io;
use std::process::ExitCode;

/// What a script can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// A `--fail-on` condition is met.
    Condition = 1,
    /// The command line is wrong.
    Usage = 2,
    /// `--fail-on` was asked and the measurement says neither yes nor no.
    Inconclusive = 3,
    /// Too noisy, or something that the measurement needs is missing.
    Refused = 4,
    /// Reading or writing failed.
    Io = 5,
}

/// A command that did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The reader closed standard output: a success.
    ClosedPipe,
    /// Everything else, with the sentence for the user.
    Because(Code, String),
}

/// What every command returns.
pub(super) type Outcome = Result<(), Failure>;

impl Failure {
    pub(super) fn usage(why: impl ToString) -> Self {
        Self::Because(Code::Usage, why.to_string())
    }

    pub(super) fn refused(why: impl ToString) -> Self {
        Self::Because(Code::Refused, why.to_string())
    }

    pub(super) fn io(why: impl ToString) -> Self {
        Self::Because(Code::Io, why.to_string())
    }

    /// Tells the user and returns the exit code.
    pub(super) fn report(&self) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Because(code, why) => {
                use io::Write;
                // Stderr may be closed as well.
                let _ = writeln!(io::stderr(), "larder: {why}");
                ExitCode::from(*code as u8)
            }
        }
    }
}

/// Errors of standard output; those of named files are made into sentences where the name is known.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        if e.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::io(format!("standard output could not be written: {e}"))
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(e: serde_json::Error) -> Self {
        if e.is_io() {
            Self::from(io::Error::from(e))
        } else {
            Self::io(format!("the JSON could not be written: {e}"))
        }
    }
}
