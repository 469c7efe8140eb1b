//! What the machine below a virtual machine does with memory, as far as a guest can read it.
//!
//! In a virtual machine the first touch of a page that the guest has never used costs a second fault, in the
//! host. A guest that reports its free pages, or whose balloon grows, gets such pages again and again.

use std::fs;
use std::path::Path;

/// The readable facts; `None` is unknown or absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HostFacts {
    /// Pages that a balloon took from the guest since boot (`balloon_inflate` in `/proc/vmstat`).
    pub(super) balloon_inflated: Option<u64>,
    /// Pages that it gave back (`balloon_deflate`).
    pub(super) balloon_deflated: Option<u64>,
    /// Least order of the free blocks that the guest reports to its host.
    pub(super) reporting_order: Option<u64>,
    /// Whether the CPU says that it is a guest's.
    pub(super) guest: Option<bool>,
}

impl HostFacts {
    /// Reads them.
    pub(super) fn here() -> Self {
        Self::read(Path::new("/"))
    }

    fn read(root: &Path) -> Self {
        let vmstat = fs::read_to_string(root.join("proc/vmstat")).unwrap_or_default();
        let counter = |name: &str| {
            vmstat.lines().find_map(|line| {
                let (key, value) = line.split_once(' ')?;
                (key == name).then(|| value.trim().parse().ok())?
            })
        };
        let order = root.join("sys/module/page_reporting/parameters/page_reporting_order");
        let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        Self {
            balloon_inflated: counter("balloon_inflate"),
            balloon_deflated: counter("balloon_deflate"),
            reporting_order: fs::read_to_string(order)
                .ok()
                .and_then(|t| t.trim().parse().ok()),
            guest: cpuinfo
                .lines()
                .find(|line| line.starts_with("flags"))
                .map(|line| line.split_whitespace().any(|flag| flag == "hypervisor")),
        }
    }

    /// The known ones as measures, so that they are kept in the record.
    pub(super) fn measures(&self) -> Vec<(&'static str, f64)> {
        let number = |v: Option<u64>| v.map(|n| n as f64);
        [
            ("balloon_inflated_pages", number(self.balloon_inflated)),
            ("balloon_deflated_pages", number(self.balloon_deflated)),
            ("free_page_reporting_order", number(self.reporting_order)),
            ("guest", self.guest.map(|g| f64::from(u8::from(g)))),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_and_absent_ones_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(
            dir.path().join("proc/vmstat"),
            "nr_free_pages 5\nballoon_inflate 12\nballoon_deflate 3\n",
        )
        .unwrap();
        fs::write(
            dir.path().join("proc/cpuinfo"),
            "processor: 0\nflags\t\t: fpu hypervisor lahf_lm\n",
        )
        .unwrap();
        let facts = HostFacts::read(dir.path());
        assert_eq!(facts.balloon_inflated, Some(12));
        assert_eq!(facts.reporting_order, None);
        assert_eq!(facts.guest, Some(true));
        let names: Vec<_> = facts.measures().into_iter().map(|(n, _)| n).collect();
        assert_eq!(
            names,
            ["balloon_inflated_pages", "balloon_deflated_pages", "guest"]
        );
        assert!(
            HostFacts::read(&dir.path().join("no"))
                .measures()
                .is_empty()
        );
    }
}
