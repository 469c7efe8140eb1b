//! Where the program may keep addresses: what `/proc/self/maps` lists as private and writable, without the heap's own memory.

use rustix::fs::{Mode, OFlags};

use crate::os::{MetaRegion, OsError, System};
use std::sync::Arc;

/// Room for the list: a hundred bytes for each of the 65,530 ranges that a process may have.
const ROOM: usize = 8 << 20;

/// A range of addresses of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    rights: &'a str,
    /// No file stands behind it, and it has no name.
    anonymous: bool,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // from-to rights offset device inode [name]
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let inode = words.nth(2)?;
        Some(Self {
            from: usize::from_str_radix(from, 16).ok()?,
            to: usize::from_str_radix(to, 16).ok()?,
            rights,
            anonymous: inode == "0" && words.next().is_none(),
        })
    }

    fn is_writable(&self) -> bool {
        self.rights.starts_with("rw") && self.rights.ends_with('p')
    }

    /// The stack of a thread that is gone looks like this: the C library keeps it, with an inaccessible page below.
    pub(super) fn is_like_a_stack(&self, below: Option<Mapping<'_>>) -> bool {
        self.anonymous
            && below
                .is_some_and(|b| b.anonymous && b.to == self.from && b.rights.starts_with("---"))
    }
}

/// The list, as it was when it was read.
pub(super) struct Maps {
    region: MetaRegion,
    len: usize,
}

impl Maps {
    pub(super) fn read(system: &Arc<dyn System>) -> Result<Self, OsError> {
        let region = MetaRegion::new(system.clone(), ROOM, 1)?;
        let refused = |errno| OsError::new("open(/proc/self/maps)", 0, errno);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(c"/proc/self/maps", flags, Mode::empty()).map_err(refused)?;
        // SAFETY: the region is this function's alone, and zero at first.
        let room = unsafe { core::slice::from_raw_parts_mut(region.span().at.as_ptr(), ROOM) };
        let mut len = 0;
        while len < ROOM {
            match rustix::io::read(&file, &mut room[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
        Ok(Self { region, len })
    }

    pub(super) fn own(&self) -> (usize, usize) {
        let span = self.region.span();
        (span.addr(), span.addr() + span.len)
    }

    /// Shows each private writable range, and the one before it.
    pub(super) fn each(&self, f: &mut dyn FnMut(Mapping<'_>, Option<Mapping<'_>>)) {
        // SAFETY: so many bytes were written.
        let text = unsafe { core::slice::from_raw_parts(self.region.span().at.as_ptr(), self.len) };
        let mut below = None;
        for line in text.split(|&b| b == b'\n') {
            // Names of files may be anything; all before them is ASCII.
            let ascii = line
                .iter()
                .position(|b| !b.is_ascii())
                .unwrap_or(line.len());
            let line = core::str::from_utf8(&line[..ascii]).unwrap_or("");
            if let Some(mapping) = Mapping::parse(line) {
                if mapping.is_writable() {
                    f(mapping, below);
                }
                below = Some(mapping);
            }
        }
    }
}

/// The parts of `from..to` that are in none of `holes`, which are sorted.
pub(super) fn without(
    from: usize,
    to: usize,
    holes: &[(usize, usize)],
    f: &mut impl FnMut(usize, usize),
) {
    let mut at = from;
    for &(low, high) in holes {
        if high <= at || low >= to {
            continue;
        }
        if low > at {
            f(at, low);
        }
        at = high;
    }
    if at < to {
        f(at, to);
    }
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;
    use crate::os::testing::system;

    #[test]
    fn lines_are_understood_and_others_skipped() {
        let guard = Mapping::parse("7f00-7f01 ---p 00000000 00:00 0 ").unwrap();
        let stack = Mapping::parse("7f01-7f09 rw-p 00000000 00:00 0").unwrap();
        let data = Mapping::parse("7f09-7f0a rw-p 00001000 fe:00 99 /lib/a b.so").unwrap();
        assert!(stack.is_writable() && data.is_writable() && !guard.is_writable());
        assert!(stack.is_like_a_stack(Some(guard)));
        assert!(!data.is_like_a_stack(Some(guard)) && !stack.is_like_a_stack(None));
        assert!(
            !Mapping {
                from: 0x7f02,
                ..stack
            }
            .is_like_a_stack(Some(guard))
        );
        let named = Mapping::parse("1-2 rw-p 0 00:00 0 [heap]").unwrap();
        assert!(named.is_writable() && !named.anonymous);
        let shared = Mapping::parse("1-2 rw-s 0 00:00 0").unwrap();
        assert!(!shared.is_writable());
        for bad in ["", "x-y rw-p 0 0 0", "1-2", "12 rw-p 0 0 0", "1-2 rw-p 0 0"] {
            assert_eq!(Mapping::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_stack_is_listed() {
        let here = 0_u8;
        let at = (&raw const here) as usize;
        let mut found = false;
        let maps = Maps::read(&system()).unwrap();
        maps.each(&mut |m, _| found |= (m.from..m.to).contains(&at));
        assert!(found);
    }

    #[test]
    fn holes_are_left_out() {
        let mut parts = Vec::new();
        let holes = [(0, 10), (20, 30), (30, 35), (90, 200)];
        without(5, 100, &holes, &mut |a, b| parts.push((a, b)));
        assert_eq!(parts, [(10, 20), (35, 90)]);
        parts.clear();
        without(21, 29, &holes, &mut |a, b| parts.push((a, b)));
        assert_eq!(parts, []);
    }
}
