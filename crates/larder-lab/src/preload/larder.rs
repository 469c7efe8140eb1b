//! This project's libraries that are preloaded: where they lie, and how each is built where it is missing.
//!
//! `cargo run` and `cargo build` build the program alone. So a program in cargo's target folder lets cargo build the
//! library beside it, each by a command of its own: cargo merges the features of what one command builds. An installed program
//! has its libraries in `../lib`, where `larder install` puts them.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cargo_home, compile, splits};

/// A library of this project that is preloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Its file's name.
    pub name: &'static str,
    package: &'static str,
    /// How the user can name another one, after `build it with …`.
    or_name_it: &'static str,
}

/// The malloc.
pub const MALLOC: Library = Library {
    name: "liblarder_malloc.so",
    package: "larder-malloc",
    or_name_it: ", or name it with --library or LARDER_MALLOC",
};

/// The malloc that checks what programs do with their blocks.
pub const MALLOC_DEBUG: Library = Library {
    name: "liblarder_malloc_debug.so",
    package: "larder-malloc-debug",
    ..MALLOC
};

/// SQLite's page cache.
pub const SQLITE: Library = Library {
    name: "liblarder_sqlite_preload.so",
    package: "larder-sqlite-preload",
    or_name_it: "",
};

impl Library {
    /// The library: the one that was named, or the one beside this program.
    ///
    /// # Errors
    /// One line that says where it was looked for and how to build it, or why the loader would pass over it: the loader tells
    /// that at best in a line among the program's own.
    pub fn find(self, named: Option<&Path>) -> Result<PathBuf, String> {
        let (name, build) = (self.name, self.build_command());
        let found = match named {
            Some(path) => path.to_owned(),
            None => self.beside().ok_or_else(|| {
                format!("{name} is neither beside this program nor in ../lib from there; build it with `{build}`{}", self.or_name_it)
            })?,
        };
        // The loader takes a name without a slash for one of its own, and a path from where the program is then.
        let whole = found.canonicalize().map_err(|e| {
            format!(
                "{} cannot be preloaded: {e}; build it with `{build}`",
                found.display()
            )
        })?;
        match loadable(&whole, &build) {
            Ok(()) => Ok(whole),
            Err(why) => Err(format!("{} cannot be preloaded: {why}", whole.display())),
        }
    }

    /// The library beside this program, or where an installation puts it.
    #[must_use]
    pub fn beside(self) -> Option<PathBuf> {
        let program = std::env::current_exe().ok()?;
        let folder = program.parent()?;
        ["", "../lib", "../lib/larder"]
            .map(|place| folder.join(place).join(self.name))
            .into_iter()
            .find(|path| path.is_file())
    }

    /// The library as [`find`](Self::find) finds it, built before if it is missing and this program lies where cargo put it.
    /// `tell` gets the line that says so.
    ///
    /// # Errors
    /// As [`find`](Self::find), and the line of a build that failed.
    pub fn find_or_build(
        self,
        named: Option<&Path>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, String> {
        if named.is_none() && self.beside().is_none() {
            self.build(tell)?;
        }
        self.find(named)
    }

    /// Builds the library beside this program, if that lies where cargo put it. `tell` gets the line that says so.
    ///
    /// # Errors
    /// The line of a build that failed.
    pub fn build(self, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
        let program = std::env::current_exe().ok();
        let Some(recipe) = program
            .as_deref()
            .and_then(|program| Recipe::of(self, program))
        else {
            return Ok(());
        };
        let name = self.name;
        tell(&format!(
            "builds {name}, once: {}",
            recipe.words().join(" ")
        ));
        recipe.build()
    }

    fn build_command(self) -> String {
        format!("cargo build --release -p {}", self.package)
    }
}

/// What the loader does not say itself.
fn loadable(path: &Path, build: &str) -> Result<(), String> {
    splits(path)?;
    let mut begin = [0; 18];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut begin))
        .map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => format!("it is no library; build it with `{build}`"),
            _ => format!("{e}; build it with `{build}`"),
        })?;
    // The type, in the byte order of the file: 3 is a shared object.
    let shared = match begin[5] {
        2 => u16::from_be_bytes([begin[16], begin[17]]),
        _ => u16::from_le_bytes([begin[16], begin[17]]),
    } == 3;
    if begin.starts_with(b"\x7fELF") && shared {
        Ok(())
    } else {
        Err(format!("it is no library; build it with `{build}`"))
    }
}

/// How cargo builds the library into the folder of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Recipe {
    library: Library,
    target: PathBuf,
    triple: Option<&'static str>,
    profile: String,
}

impl Recipe {
    /// The recipe for a program that lies where cargo put it, `target/PROFILE` or `target/TRIPLE/PROFILE`.
    fn of(library: Library, program: &Path) -> Option<Self> {
        let folder = program.parent()?;
        // Cargo's lock of the folder, which an installation does not have.
        if !folder.join(".cargo-lock").exists() {
            return None;
        }
        let profile = match folder.file_name()?.to_str()? {
            "debug" => "dev",
            other => other,
        };
        let above = folder.parent()?;
        let triple = env!("LARDER_TARGET");
        let cross = above.file_name().is_some_and(|name| name == triple);
        Some(Self {
            library,
            target: if cross { above.parent()? } else { above }.to_owned(),
            triple: cross.then_some(triple),
            profile: profile.to_owned(),
        })
    }

    /// The command as it is shown.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["cargo".to_owned(), "build".to_owned()];
        match self.profile.as_str() {
            "dev" => {}
            "release" => words.push("--release".to_owned()),
            other => words.extend(["--profile".to_owned(), other.to_owned()]),
        }
        if let Some(triple) = self.triple {
            words.extend(["--target".to_owned(), triple.to_owned()]);
        }
        words.extend(["-p".to_owned(), self.library.package.to_owned()]);
        words
    }

    /// Builds it. Everything that it needs is there since this program was built, so nothing is downloaded.
    fn build(&self) -> Result<(), String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let words = self.words();
        let failed = |why: String| {
            format!(
                "{} is missing and could not be built: {why}; run `{}` in larder's source",
                self.library.name,
                words.join(" ")
            )
        };
        let manifest = source
            .join("Cargo.toml")
            .canonicalize()
            .map_err(|e| failed(format!("{}: {e}", source.display())))?;
        // Under `cargo run` the cargo that runs; else the one that built this program, if it is still there.
        let running = std::env::var_os("CARGO").filter(|cargo| !cargo.is_empty());
        let built = Path::new(env!("LARDER_CARGO"));
        let cargo = match running {
            Some(cargo) => PathBuf::from(cargo),
            None if built.is_file() => built.to_owned(),
            None => "cargo".into(),
        };
        let mut command = Command::new(cargo);
        command
            .args(&words[1..])
            .args(["--quiet", "--offline", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(&self.target)
            .env("CARGO_HOME", cargo_home());
        compile(&mut command).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used)]
    fn what_the_loader_would_pass_over_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        // A shared object of this machine's byte order, as far as it is looked at.
        let mut good = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0";
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            MALLOC.find(Some(&path))
        };
        assert!(put("good.so", &good).is_ok());
        for name in ["a b.so", "a:b.so", "a\tb.so"] {
            let why = put(name, &good).unwrap_err();
            assert!(why.contains("colons and blanks"), "{why}");
        }
        // An executable, a text and nothing.
        good[16] = 2;
        for bytes in [
            good.as_slice(),
            b"#!/bin/sh\necho this is no library\n",
            b"",
        ] {
            let why = put("bad.so", bytes).unwrap_err();
            assert!(why.contains("it is no library"), "{why}");
        }
        let why = MALLOC.find(Some(folder.path())).unwrap_err();
        assert!(why.contains("cannot be preloaded"), "{why}");
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn only_a_program_that_cargo_put_there_has_a_recipe() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = |place: &str, lock: bool| {
            let at = folder.path().join(place);
            std::fs::create_dir_all(&at).unwrap();
            if lock {
                std::fs::write(at.join(".cargo-lock"), "").unwrap();
            }
            Recipe::of(MALLOC, &at.join("larder"))
        };
        assert_eq!(recipe("bin", false), None);
        let words = |place: &str| recipe(place, true).unwrap().words().join(" ");
        assert_eq!(words("t/debug"), "cargo build -p larder-malloc");
        assert_eq!(words("t/release"), "cargo build --release -p larder-malloc");
        assert_eq!(
            words("t/fast"),
            "cargo build --profile fast -p larder-malloc"
        );
        assert_eq!(
            recipe("t/fast", true).unwrap().target,
            folder.path().join("t")
        );
        let triple = env!("LARDER_TARGET");
        let cross = recipe(&format!("t/{triple}/release"), true).unwrap();
        assert_eq!(cross.target, folder.path().join("t"));
        assert!(cross.words().contains(&triple.to_owned()));
    }
}
