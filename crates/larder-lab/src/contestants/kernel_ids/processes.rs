//! Process ids: fork and exit in a pid namespace of our own whose `pid_max` is low.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, bail, ensure};

use crate::contestants::timing::monotonic_ns;
use crate::frame::{bench, needing};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Ids of the namespace: 1 to 511. The kernel comes back to 300 and not to 1, so 212 of them return.
const PID_MAX: i64 = 512;
/// The first id that is used again.
const RESERVED: i64 = 300;
/// Forks and exits that are timed.
const PAIRS: u32 = 100;
/// Where the limit stands: each pid namespace has its own since Linux 6.14.
const LIMIT: &str = "/proc/sys/kernel/pid_max";

/// Processes of a pid namespace of our own.
pub(super) fn contestant() -> Box<dyn Contestant> {
    let about = "this kernel: fork, exit and wait in a pid namespace of 511 ids, of which a share is in use";
    needing(available, bench("kernel-processes", about, run))
}

fn available() -> Result<(), String> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    if !own_limit(&release) {
        return Err(format!(
            "a pid_max for each namespace came with Linux 6.14 and this is {release}; lowering the only one would hit every program"
        ));
    }
    if !rustix::process::geteuid().is_root() {
        return Err("a pid namespace with a lowered pid_max needs root".to_owned());
    }
    Ok(())
}

fn run(params: &Params) -> anyhow::Result<Measures> {
    available().map_err(anyhow::Error::msg)?;
    let used = i64::try_from(params.count("used")?)?;
    ensure!(
        used <= 9900,
        "used is {used}; it is in hundredths of a percent, up to 9900"
    );
    let idle = (PID_MAX - RESERVED) * used / 10_000;
    let before = std::fs::read_to_string(LIMIT).context(LIMIT)?;
    let (mut reader, writer) = std::io::pipe().context("a pipe for the result")?;
    // Everything that the child needs exists before it is made: it may not allocate, as other threads of this
    // process could hold the allocator's lock at that moment.
    let limit = std::ffi::CString::new(LIMIT)?;
    let text = PID_MAX.to_string();
    let result = writer.as_raw_fd();
    let init = fork_into(libc::CLONE_NEWPID);
    ensure!(init >= 0, "clone: {}", std::io::Error::last_os_error());
    if init == 0 {
        namespace(&limit, text.as_bytes(), idle, result);
    }
    drop(writer);
    let mut answer = [0u8; 16];
    let read = wait_readable(&reader, 20_000).and_then(|()| Ok(reader.read_exact(&mut answer)?));
    // The end of a namespace's first process ends all others in it.
    // SAFETY: a child of ours that was not waited for, so its number is still its own.
    unsafe { libc::kill(init, libc::SIGKILL) };
    wait_for(init);
    let after = std::fs::read_to_string(LIMIT).unwrap_or_default();
    if after != before {
        // A kernel that shares the limit after all.
        std::fs::OpenOptions::new()
            .write(true)
            .open(LIMIT)
            .and_then(|mut file| file.write_all(before.as_bytes()))
            .with_context(|| format!("{LIMIT} was changed and cannot be put back to {before}"))?;
        bail!("this kernel has one pid_max for all namespaces; it is as it was before");
    }
    read.context("the namespace gave no answer")?;
    let (low, high) = answer.split_at(8);
    let word = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0u64, |all, b| all << 8 | u64::from(*b))
    };
    let (ns, pairs) = (word(low), word(high));
    ensure!(
        pairs > 0,
        "no process could be made in the namespace: error {ns}"
    );
    Ok(Measures::new()
        .with("us_per_alloc", ns as f64 / pairs as f64 / 1e3)
        .with("allocations", pairs as f64))
}

/// Whether a kernel of this release has a `pid_max` for each namespace.
fn own_limit(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || {
        parts
            .next()
            .and_then(|n| n.parse::<u32>().ok())
            .unwrap_or(0)
    };
    (number(), number()) >= (6, 14)
}

/// A plain fork with more flags; 0 in the child, less where there is none. The C library's own would run handlers of other
/// threads.
fn fork_into(flags: libc::c_int) -> libc::pid_t {
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child has a copy of all memory and goes on here; no pointer is handed over.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    libc::pid_t::try_from(pid).unwrap_or(-1)
}

fn wait_for(pid: libc::pid_t) {
    // SAFETY: no status is asked for, so no pointer is followed.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0 {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn wait_readable(reader: &std::io::PipeReader, ms: i32) -> anyhow::Result<()> {
    let mut poll = libc::pollfd {
        fd: reader.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live pollfd.
    let ready = unsafe { libc::poll(&raw mut poll, 1, ms) };
    ensure!(ready > 0, "it took more than {ms} ms");
    Ok(())
}

/// The first process of the namespace: lowers the limit, makes `idle` processes that sleep, times pairs of fork and
/// exit, and writes nanoseconds and pairs. Only system calls from here on.
fn namespace(limit: &std::ffi::CStr, text: &[u8], idle: i64, result: i32) -> ! {
    // SAFETY: integers only; the process is to end with the lab.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: a terminated path; the descriptor is ours.
    let fd = unsafe { libc::open(limit.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    let mut fault = 1;
    let mut spent = 0;
    let mut pairs = 0;
    if fd >= 0 {
        // SAFETY: just opened, and this function alone owns it.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        if rustix::io::write(&file, text).is_ok() {
            fault = crowd(idle);
        }
    }
    if fault == 0 {
        // Once around, so that every id returns only from 300 on.
        for _ in 0..PID_MAX - idle {
            pair();
        }
        let begin = monotonic_ns();
        while pairs < PAIRS && pair() {
            pairs += 1;
        }
        spent = monotonic_ns() - begin;
    }
    let mut answer = [0u8; 16];
    let first = if pairs > 0 { spent } else { fault };
    answer[..8].copy_from_slice(&first.to_le_bytes());
    answer[8..].copy_from_slice(&u64::from(pairs).to_le_bytes());
    // SAFETY: sixteen live bytes to a descriptor of this process.
    unsafe { libc::write(result, answer.as_ptr().cast(), answer.len()) };
    // SAFETY: ends this process without running anything of the lab's.
    unsafe { libc::_exit(0) }
}

/// Makes processes that sleep; 0, or 2 when one cannot be made.
fn crowd(idle: i64) -> u64 {
    for _ in 0..idle {
        match fork_into(0) {
            0 => loop {
                // SAFETY: sleeps until the signal that ends the namespace.
                unsafe { libc::pause() };
            },
            pid if pid < 0 => return 2,
            _ => {}
        }
    }
    0
}

/// One process that begins and ends; `false` when it cannot begin.
fn pair() -> bool {
    match fork_into(0) {
        // SAFETY: ends the child at once.
        0 => unsafe { libc::_exit(0) },
        pid if pid < 0 => false,
        pid => {
            wait_for(pid);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_as_numbers() {
        assert!(own_limit("6.14.0-rc1") && own_limit("6.18.44-fc") && own_limit("7.0"));
        assert!(!own_limit("6.9.1") && !own_limit("5.15.0") && !own_limit("strange"));
    }

    #[test]
    fn processes_come_and_go_where_it_is_permitted_and_else_it_says_why() {
        let before = std::fs::read_to_string(LIMIT).unwrap_or_default();
        match available() {
            Ok(()) => match run(&Params::new().with("used", 1000)) {
                Ok(measures) => assert!(measures.get("us_per_alloc").unwrap() > 0.0),
                // A container may forbid namespaces to its root.
                Err(why) => assert!(!why.to_string().is_empty()),
            },
            Err(why) => assert!(why.contains("root") || why.contains("6.14"), "{why}"),
        }
        assert_eq!(std::fs::read_to_string(LIMIT).unwrap_or_default(), before);
    }
}
