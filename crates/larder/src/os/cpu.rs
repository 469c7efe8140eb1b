//! What the machine's processors are, as far as the library's sizes depend on it.

use std::fs;

use rustix::fs::{Mode, OFlags};

use super::decided::Decided;
use super::{Linux, System};

/// Largest number of CPUs that Linux can be built for: the bound where the machine reports none.
pub(crate) const MAX_CPUS: usize = 8192;

/// One more than the highest CPU number that can ever come online; 8192, the most that Linux can be built for, when it
/// cannot be read.
pub(crate) fn possible_cpus() -> usize {
    touched_at_start! {
        static POSSIBLE: Decided<usize> = Decided::new();
    }
    // Reading it takes as long as making everything else of a stock.
    POSSIBLE.get_or_decide(|| {
        let mut text = [0; 256];
        read_start(c"/sys/devices/system/cpu/possible", &mut text)
            .and_then(last_cpu)
            .map_or(MAX_CPUS, |n| n + 1)
    })
}

/// CPUs that this process may run on, as it was at the first call. Without quotas of time: a thread beyond these cannot
/// run at the same moment, whatever the others may use.
pub(crate) fn usable_cpus() -> usize {
    touched_at_start! {
        static USABLE: Decided<usize> = Decided::new();
    }
    USABLE.get_or_decide(|| {
        if cfg!(miri) {
            return 1;
        }
        rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count().max(1) as usize)
    })
}

/// The text of a short file, without an allocation.
fn read_start<'a>(path: &core::ffi::CStr, text: &'a mut [u8]) -> Option<&'a str> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let n = rustix::io::read(&file, &mut *text).ok()?;
    core::str::from_utf8(text.get(..n)?).ok()
}

/// Highest number in a list such as `0-3,8-11`.
fn last_cpu(list: &str) -> Option<usize> {
    let last = list.trim().rsplit([',', '-']).next()?.parse().ok()?;
    (last < MAX_CPUS).then_some(last)
}

/// Bytes of physical memory, as it was at the first call; 0 where the machine does not report it.
pub(crate) fn physical_memory() -> usize {
    touched_at_start! {
        static BYTES: Decided<usize> = Decided::new();
    }
    BYTES.get_or_decide(|| {
        if cfg!(miri) {
            return 0;
        }
        let info = rustix::system::sysinfo();
        usize::try_from(info.totalram)
            .unwrap_or(0)
            .saturating_mul(usize::try_from(info.mem_unit).unwrap_or(1))
    })
}

/// Whether the machine grants no more memory than it has, counting what is accessible though it be untouched
/// (`vm.overcommit_memory` is 2).
pub(crate) fn counts_all_memory() -> bool {
    // More than there can be is granted only where it does not count. That is known sooner than what the file says.
    let more = physical_memory().saturating_mul(16);
    if !cfg!(miri)
        && let Ok(span) = Linux.reserve_committed(more.max(1 << 30), 1)
    {
        // SAFETY: just reserved, and known to no other code. A refusal leaks addresses.
        let _ = unsafe { Linux.release(span) };
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut word = [0];
    rustix::fs::open(c"/proc/sys/vm/overcommit_memory", flags, Mode::empty())
        .is_ok_and(|file| rustix::io::read(file, &mut word) == Ok(1) && word == *b"2")
}

/// Pages that fill half of the first CPU's second cache; 512 KiB are taken for it where the machine reports none.
pub(crate) fn half_l2_pages() -> usize {
    let l2 = (0..8).find_map(|index| {
        let read = |name: &str| {
            fs::read_to_string(format!(
                "/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"
            ))
        };
        match read("level").ok()?.trim() {
            "2" => parse_size(&read("size").ok()?),
            _ => None,
        }
    });
    l2.unwrap_or(512 << 10) / 2 / super::page_size()
}

/// Bytes of a size such as `1024K`.
fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits
        .parse::<usize>()
        .ok()?
        .checked_mul(unit)
        .filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(last_cpu("0-3,8-11\n"), Some(11));
        assert_eq!(last_cpu("0"), Some(0));
        assert_eq!(last_cpu(""), None);
        assert_eq!(last_cpu("0-99999"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the interpreter opens no files of the machine")]
    fn it_is_known_whether_all_memory_counts() {
        let told = fs::read_to_string("/proc/sys/vm/overcommit_memory");
        let strict = told.is_ok_and(|word| word.trim() == "2");
        assert_eq!(counts_all_memory(), strict);
    }

    #[test]
    fn cache_sizes() {
        assert_eq!(parse_size("1024K\n"), Some(1 << 20));
        assert_eq!(parse_size("32M"), Some(32 << 20));
        assert_eq!(parse_size("0K"), None);
        assert_eq!(parse_size("K"), None);
    }
}
