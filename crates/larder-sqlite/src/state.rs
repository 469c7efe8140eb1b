//! Whether the cache is installed, and how it becomes so.

use core::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use crate::ffi::{CONFIG_PCACHE2, ConfigFn, MISUSE, OK};
use crate::{Config, InstallError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// SQLite has its own cache, or was shut down.
    Out,
    /// Configured, and SQLite may not have begun.
    In,
}

static STATE: Mutex<State> = Mutex::new(State::Out);

/// SQLite begins, or ends: then another cache may be installed.
pub(crate) fn running(runs: bool) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    *state = if runs { State::In } else { State::Out };
}

/// # Safety
/// As [`install`](crate::install), for the SQLite whose `sqlite3_config` this is.
pub(crate) unsafe fn install(
    config: &Config,
    sqlite3_config: ConfigFn,
) -> Result<(), InstallError> {
    let methods = crate::methods::methods(&config.rule)?;
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if *state == State::In {
        return Err(InstallError::Twice);
    }
    crate::methods::PROCESS.family()?;
    // SAFETY: the operation takes a pointer to methods, which it copies; the caller says that no thread is in SQLite.
    let code: c_int = unsafe { sqlite3_config(CONFIG_PCACHE2, &raw const methods) };
    match code {
        OK => {
            crate::methods::set_rule(&config.rule);
            crate::methods::PROCESS.set_budget(config.budget_bytes);
            *state = State::In;
            Ok(())
        }
        MISUSE => Err(InstallError::TooLate),
        code => Err(InstallError::Refused { code }),
    }
}
