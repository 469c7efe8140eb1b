//! Which huge page sizes this kernel would give to anonymous memory, from sysfs.
//!
//! Source of the rules: the kernel's `Documentation/admin-guide/mm/transhuge.rst`. The top-level switch and
//! one switch per size say `always`, `madvise`, `never`, or (per size) `inherit`.

use std::fs;
use std::path::Path;

const ROOT: &str = "/sys/kernel/mm/transparent_hugepage";

/// The choice in a sysfs line such as `always [madvise] never`.
fn chosen(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// Whether a program that asks for a size with `MADV_HUGEPAGE` gets it, by the size's own switch and the top one.
fn usable(word: &str, top: bool) -> bool {
    matches!(word, "always" | "madvise") || (word == "inherit" && top)
}

/// The huge page sizes of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HugePages {
    /// Size that one entry of the upper table maps, in bytes; 2 MiB on x86-64. `None` without huge pages.
    pub(super) pmd_bytes: Option<usize>,
    /// Whether that size is usable.
    pmd: bool,
    /// Smaller sizes in bytes, smallest first, and whether each is usable.
    smaller: Vec<(usize, bool)>,
}

impl HugePages {
    /// Reads this machine's.
    pub(super) fn here() -> Self {
        Self::read(Path::new(ROOT))
    }

    fn read(root: &Path) -> Self {
        let text = |p: &Path| fs::read_to_string(p).ok();
        let in_folder = |folder: &Path, top| {
            let line = text(&folder.join("enabled")).unwrap_or_default();
            chosen(&line).is_some_and(|word| usable(word, top))
        };
        let top = in_folder(root, false);
        let pmd_bytes = text(&root.join("hpage_pmd_size")).and_then(|t| t.trim().parse().ok());
        let mut smaller = Vec::new();
        let mut pmd = top;
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(kib) = name
                .to_str()
                .and_then(|n| n.strip_prefix("hugepages-")?.strip_suffix("kB"))
                .and_then(|n| n.parse::<usize>().ok())
            else {
                continue;
            };
            let here = in_folder(&entry.path(), top);
            if Some(kib * 1024) == pmd_bytes {
                pmd = here;
            } else {
                smaller.push((kib * 1024, here));
            }
        }
        smaller.sort_unstable_by_key(|&(bytes, _)| bytes);
        Self {
            pmd_bytes,
            pmd,
            smaller,
        }
    }

    /// Bytes of a usable huge page of the largest size, or the sentence that says what to switch on.
    pub(super) fn large(&self) -> Result<usize, String> {
        match self.pmd_bytes {
            Some(bytes) if self.pmd => Ok(bytes),
            Some(_) => Err(format!(
                "transparent huge pages are switched off; as root: echo madvise > {ROOT}/enabled"
            )),
            None => Err("this kernel has no transparent huge pages".to_owned()),
        }
    }

    /// Bytes of every usable size below the largest, smallest first.
    pub(super) fn small_sizes(&self) -> impl Iterator<Item = usize> {
        let usable = self.smaller.iter().filter(|(_, usable)| *usable);
        usable.map(|&(bytes, _)| bytes)
    }

    /// The sentence that names the sizes below the largest that are switched off, if there are some.
    pub(super) fn switched_off(&self) -> Option<String> {
        let off = self.smaller.iter().filter(|(_, usable)| !usable);
        let off: Vec<_> = off.map(|(bytes, _)| (bytes >> 10).to_string()).collect();
        (!off.is_empty()).then(|| {
            format!(
                "huge pages of {} KiB are switched off; as root: echo madvise > {ROOT}/hugepages-SIZEkB/enabled",
                off.join(", ")
            )
        })
    }

    /// Bytes of the largest mapping in which pages of `bytes` bytes fit and no larger ones that are usable.
    pub(super) fn piece(&self, bytes: usize) -> usize {
        let next = self.small_sizes().find(|&larger| larger > bytes);
        next.or(self.pmd_bytes)
            .map_or(bytes, |larger| (larger / 2).max(bytes))
    }

    /// Bytes of the usable smaller size nearest to 64 KiB, or the sentence that says what to switch on.
    pub(super) fn small(&self) -> Result<usize, String> {
        if self.smaller.is_empty() {
            return Err(
                "this kernel has no huge pages of several sizes (they came with Linux 6.8)"
                    .to_owned(),
            );
        }
        let distance = |bytes: usize| bytes.ilog2().abs_diff(16);
        self.small_sizes()
            .min_by_key(|&bytes| distance(bytes))
            .ok_or_else(|| {
                format!(
                    "every huge page size below the largest is switched off; as root: echo madvise > \
                     {ROOT}/hugepages-64kB/enabled"
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(top: &str, sizes: &[(usize, &str)]) -> (tempfile::TempDir, HugePages) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("enabled"), top).unwrap();
        fs::write(dir.path().join("hpage_pmd_size"), "2097152\n").unwrap();
        for (kib, line) in sizes {
            let sub = dir.path().join(format!("hugepages-{kib}kB"));
            fs::create_dir(&sub).unwrap();
            fs::write(sub.join("enabled"), line).unwrap();
        }
        let read = HugePages::read(dir.path());
        (dir, read)
    }

    #[test]
    fn inherit_follows_the_top_switch() {
        let (_dir, here) = fake(
            "always [madvise] never",
            &[
                (64, "always inherit madvise [never]"),
                (2048, "always [inherit] madvise never"),
            ],
        );
        assert!(here.pmd);
        assert_eq!(here.large(), Ok(2 << 20));
        let why = here.small().unwrap_err();
        assert!(why.contains("hugepages-64kB"), "{why}");
    }

    #[test]
    fn the_size_nearest_to_64_kib_is_taken() {
        let (_dir, here) = fake(
            "always madvise [never]",
            &[
                (16, "always inherit [madvise] never"),
                (32, "[always] inherit madvise never"),
                (64, "always [inherit] madvise never"),
                (2048, "always [inherit] madvise never"),
            ],
        );
        // 64 KiB inherits `never`; 32 is nearer to it than 16.
        assert_eq!(here.small(), Ok(32 << 10));
        assert!(here.large().unwrap_err().contains("switched off"));
        assert!(here.small_sizes().eq([16 << 10, 32 << 10]));
        let off = here.switched_off().unwrap();
        assert!(off.contains(" 64 KiB") && !off.contains("16"), "{off}");
    }

    #[test]
    fn no_larger_page_fits_into_a_piece() {
        let on = "always inherit [madvise] never";
        let (_dir, here) = fake(
            "[never]",
            &[(16, on), (32, on), (128, on), (2048, "[never]")],
        );
        let pieces = [16, 32, 128].map(|kib| here.piece(kib << 10) >> 10);
        assert_eq!(pieces, [16, 64, 1024]);
    }

    #[test]
    fn a_kernel_without_huge_pages_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let here = HugePages::read(&dir.path().join("absent"));
        assert!(here.large().unwrap_err().contains("no transparent"));
        assert!(here.small().unwrap_err().contains("6.8"));
    }
}
