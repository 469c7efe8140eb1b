//! Linux's source as Debian has it, with the smallest configuration: unpacked and prepared once, and kept in larder's cache folder.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::{Scratch, done, make, tool, which};

/// A cell has time for this and for its measurement, if `--cell-limit` is not changed.
const MOST_SECONDS: u64 = 60;

/// What a build of `mm/` needs of the source. `make tinyconfig` also needs every Kconfig file.
const MEMBERS: [&str; 17] = [
    "*/Kbuild",
    "*/Makefile",
    "*/arch/x86",
    "*/include",
    "*/init",
    "*/kernel",
    "*/lib",
    "*/mm",
    "*/scripts",
    "*/security",
    "*/tools/arch/x86",
    "*/tools/build",
    "*/tools/include",
    "*/tools/lib",
    "*/tools/objtool",
    "*/tools/scripts",
    "*/usr",
];

/// Programs, and the packages of Debian that have them.
const PROGRAMS: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("grep", "grep"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
];

const ENDING: &str = ".tar.xz";

/// The name of the newest source in a folder, without its ending.
fn newest(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let sources = names.filter_map(|name| name.strip_suffix(ENDING).map(str::to_owned));
    let version = |name: &String| -> Vec<u32> {
        let parts = name.trim_start_matches("linux-source-").split('.');
        parts.map(|part| part.parse().unwrap_or(0)).collect()
    };
    sources
        .filter(|name| name.starts_with("linux-source-"))
        .max_by_key(version)
}

fn archives() -> &'static Path {
    Path::new("/usr/src")
}

/// Why it cannot be built here.
pub(super) fn missing() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("only the parts of the source for x86 are unpacked; run on x86-64".to_owned());
    }
    let lacking = PROGRAMS.iter().filter(|(name, _)| which(name).is_none());
    let mut packages: Vec<&str> = lacking.map(|(_, package)| *package).collect();
    if newest(archives()).is_none() {
        packages.push("linux-source-6.1");
    }
    let list = packages.join(", ");
    (!list.is_empty()).then(|| format!("install {list} (Debian's names)"))
}

/// Copies the prepared tree, with its times.
pub(super) fn make_tree(tree: &Path) -> anyhow::Result<()> {
    let kept = prepared()?;
    done(Command::new(tool("cp")?).arg("-a").arg(kept).arg(tree)).map(drop)
}

/// The kept tree. An archive of another size or time has one of its own.
fn prepared() -> anyhow::Result<PathBuf> {
    let name = newest(archives()).context("there is no source of Linux in /usr/src")?;
    let archive = archives().join(format!("{name}{ENDING}"));
    let of = archive.metadata()?;
    let folders = directories::ProjectDirs::from("", "", "larder")
        .context("there is no home directory to keep it in; set XDG_CACHE_HOME")?;
    let cache = folders.cache_dir();
    let kept = cache.join(format!("{name}-{}-{}", of.len(), of.mtime()));
    if kept.exists() {
        return Ok(kept);
    }
    let begun = Instant::now();
    fs::create_dir_all(cache).with_context(|| {
        let cache = cache.display();
        format!("{cache} cannot be made; XDG_CACHE_HOME names another place")
    })?;
    // Renamed last, so that a kept tree is whole.
    let part = Scratch::open_in(cache, "linux.part")?;
    prepare(&archive, part.folder())?;
    if let Err(error) = fs::rename(part.folder(), &kept) {
        // Another run may have been faster.
        ensure!(kept.exists(), "{}: {error}", kept.display());
    }
    let seconds = begun.elapsed().as_secs();
    ensure!(
        seconds < MOST_SECONDS,
        "Linux's source took {seconds} s to unpack and prepare, too long for one cell; it is kept now, so measure again"
    );
    Ok(kept)
}

fn prepare(archive: &Path, tree: &Path) -> anyhow::Result<()> {
    done(
        Command::new(tool("tar")?)
            .args(["--strip-components=1", "--wildcards", "-C"])
            .arg(tree)
            .arg("-xJf")
            .arg(archive)
            .arg("--no-wildcards-match-slash")
            .args(MEMBERS)
            .args(["--wildcards-match-slash", "*/Kconfig*"]),
    )?;
    make(tree, &["tinyconfig"])?;
    make(tree, &["-j2", "prepare"])?;
    // Each `make` would look at every Kconfig file that this names: more files and folders than the mount has inodes.
    fs::write(tree.join("include/config/auto.conf.cmd"), "")?;
    done(
        Command::new(tool("find")?)
            .arg(tree)
            .args(["(", "-name", "Kconfig*", "-o", "-type", "d", "-empty", ")"])
            .arg("-delete"),
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_source_is_found_by_its_version() {
        let scratch = Scratch::open("test").expect("room");
        assert_eq!(newest(scratch.folder()), None);
        for name in ["linux-source-6.1", "linux-source-6.12", "linux-config-7.0"] {
            let name = format!("{name}{ENDING}");
            scratch.write(&name, "").expect("written");
        }
        scratch.write("linux-source-7.0.tar", "").expect("written");
        let found = newest(scratch.folder());
        assert_eq!(found.as_deref(), Some("linux-source-6.12"));
    }
}
