//! snmalloc as a library that is preloaded: the installed one, or one built here.
//!
//! Its source is that of the crate `snmalloc-sys`, which `cargo fetch` brings. The library lies in larder's cache folder under
//! the source's version and the compiler's, so that it is built once for each pair.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cargo_home, compile, splits, usual_folders};

/// Its contestant.
pub const NAME: &str = "snmalloc";

/// Its file, as its own build names it.
pub const FILE: &str = "libsnmallocshim.so";

/// Flags of its own build for a library to preload.
const FLAGS: [&str; 14] = [
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    "-w",
    "-fPIC",
    "-shared",
    "-fomit-frame-pointer",
    "-fno-rtti",
    "-ftls-model=initial-exec",
    "-pthread",
    "-DSNMALLOC_HAS_LINUX_FUTEX_H",
    "-DSNMALLOC_HAS_LINUX_RANDOM_H",
    "-DSNMALLOC_PLATFORM_HAS_GETENTROPY",
    "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
];

/// The library: the installed one, or the one that [`build`] left.
///
/// # Errors
/// One line that says what is missing and what brings it.
pub fn find() -> Result<PathBuf, String> {
    let installed = usual_folders().into_iter().map(|folder| folder.join(FILE));
    match installed
        .chain([Shop::here()?.library])
        .find(|path| path.is_file())
    {
        Some(path) => Ok(path),
        None => {
            Err("it is not built yet; `larder measure` builds it with the C++ compiler".to_owned())
        }
    }
}

/// Builds the library if it is missing and both source and compiler are there. `tell` gets the line that says so.
///
/// # Errors
/// The line of a build that failed; what is missing is no error, as nothing needs it.
pub fn build(tell: &mut dyn FnMut(&str)) -> Result<(), String> {
    match (find(), Shop::here()) {
        (Err(_), Ok(shop)) => shop.build(tell),
        _ => Ok(()),
    }
}

/// Source, compiler and place of a build.
#[derive(Debug)]
struct Shop {
    source: PathBuf,
    compiler: String,
    library: PathBuf,
}

impl Shop {
    fn here() -> Result<Self, String> {
        let cache = directories::ProjectDirs::from("", "", "larder")
            .map(|folders| folders.cache_dir().to_owned())
            .ok_or("there is no home directory to build it in; set XDG_CACHE_HOME")?;
        Self::of(&cargo_home().join("registry/src"), &cache)
    }

    fn of(registries: &Path, cache: &Path) -> Result<Self, String> {
        let (crate_name, source) = source(registries).ok_or_else(|| {
            format!("its source is not here; run `cargo fetch` in larder's source, or install {FILE} in /usr/local/lib")
        })?;
        let (compiler, version) = compiler().ok_or_else(|| {
            format!("there is no C++ compiler to build it; install one (Debian: apt install g++), or {FILE} in /usr/local/lib")
        })?;
        let library = cache.join(key(&crate_name, &version)).join(FILE);
        splits(&library)?;
        Ok(Self {
            source,
            compiler,
            library,
        })
    }

    fn build(&self, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
        tell(&format!(
            "builds {NAME} with {}, once, to compare with it: {}",
            self.compiler,
            self.library.display()
        ));
        let failed = |why: String| {
            format!(
                "{NAME} could not be built: {why}; it needs a C++20 compiler such as g++ 10 or clang 12, which CXX may name"
            )
        };
        let folder = self.library.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)
            .map_err(|e| failed(format!("{}: {e}", folder.display())))?;
        // Whole or not at all, also where two runs build it at once.
        let part = folder.join(format!("{FILE}.{}.part", std::process::id()));
        let mut command = Command::new(&self.compiler);
        command.args(FLAGS);
        if cfg!(target_arch = "x86_64") {
            command.arg("-mcx16");
        }
        command
            .arg("-I")
            .arg(&self.source)
            .arg(self.source.join("snmalloc/override/new.cc"))
            .arg("-o")
            .arg(&part);
        let made = compile(&mut command).and_then(|()| {
            std::fs::rename(&part, &self.library)
                .map_err(|e| format!("{}: {e}", self.library.display()))
        });
        made.map_err(|why| {
            let _ = std::fs::remove_file(&part);
            failed(why)
        })
    }
}

/// The newest source that cargo has unpacked: name and version of its crate, and the folder of its headers.
fn source(registries: &Path) -> Option<(String, PathBuf)> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    };
    let mut found: Vec<(String, PathBuf)> = folders(registries)
        .flat_map(|registry| folders(&registry).collect::<Vec<_>>())
        .filter_map(|folder| {
            let name = folder.file_name()?.to_str()?.to_owned();
            let source = folder.join("upstream/src");
            let here = name.starts_with("snmalloc-sys-")
                && source.join("snmalloc/override/new.cc").is_file();
            here.then_some((name, source))
        })
        .collect();
    found.sort();
    found.pop()
}

/// The C++ compiler, and the line in which it says its version.
fn compiler() -> Option<(String, String)> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let names = named
        .into_iter()
        .chain(["c++", "g++", "clang++"].map(str::to_owned));
    names.into_iter().find_map(|name| {
        let output = Command::new(&name)
            .arg("--version")
            .env_remove("LD_PRELOAD")
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some((name, text.lines().next()?.to_owned()))
    })
}

/// A folder's name: what decides the code, without blanks or anything else that a path or the loader minds.
fn key(crate_name: &str, compiler: &str) -> String {
    let word = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '+' | '-' | '_' => c,
        _ => '-',
    };
    let words = compiler.split_whitespace().collect::<Vec<_>>().join("-");
    format!(
        "{crate_name}-{}",
        words.chars().take(80).map(word).collect::<String>()
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A registry with a crate whose one source file is this.
    fn registry(folder: &Path, crate_name: &str, text: &str) {
        let at = folder
            .join("index/")
            .join(crate_name)
            .join("upstream/src/snmalloc/override");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("new.cc"), text).unwrap();
    }

    #[test]
    fn without_its_source_it_says_what_brings_it() {
        let folder = tempfile::tempdir().unwrap();
        let why = Shop::of(folder.path(), folder.path()).unwrap_err();
        assert!(why.contains("cargo fetch") && why.contains(FILE), "{why}");
    }

    #[test]
    fn the_newest_source_is_built_once_for_a_compiler() {
        if compiler().is_none() {
            eprintln!("skipped: there is no C++ compiler");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (sources, cache) = (folder.path().join("src"), folder.path().join("cache"));
        registry(&sources, "snmalloc-sys-0.7.5", "#error old");
        registry(&sources, "snmalloc-sys-0.7.6", "int larder_test;\n");
        let mut said = Vec::new();
        let shop = Shop::of(&sources, &cache).unwrap();
        shop.build(&mut |line| said.push(line.to_owned())).unwrap();
        assert_eq!(said.len(), 1);
        assert!(shop.library.is_file());
        assert!(
            shop.library
                .to_string_lossy()
                .contains("snmalloc-sys-0.7.6-")
        );
        let left = std::fs::read_dir(shop.library.parent().unwrap()).unwrap();
        assert_eq!(left.count(), 1, "no part stays");

        registry(&sources, "snmalloc-sys-0.7.7", "#error no such thing\n");
        let shop = Shop::of(&sources, &cache).unwrap();
        let why = shop.build(&mut |_| {}).unwrap_err();
        assert!(
            why.contains("no such thing") && why.contains("C++20"),
            "{why}"
        );
        assert_eq!(why.lines().count(), 1, "{why}");
        assert!(!shop.library.exists());
    }

    #[test]
    fn a_compiler_is_a_name_of_a_folder() {
        let key = key(
            "snmalloc-sys-0.7.6",
            "g++ (Debian 12.2.0-14+deb12u1) 12.2.0",
        );
        assert_eq!(
            key,
            "snmalloc-sys-0.7.6-g++--Debian-12.2.0-14+deb12u1--12.2.0"
        );
        splits(Path::new(&key)).unwrap();
    }
}
