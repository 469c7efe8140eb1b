//! A malloc that the user names, loaded before the C library into a process of its own.

use std::path::Path;

use anyhow::{Context, ensure};

use super::{Heaps, SystemMalloc};
use crate::model::Params;

/// The variable in which the user names libraries, separated by colons.
const VARIABLE: &str = "LARDER_PRELOAD";

/// The C library's `malloc`, answered by the library of the factor `library`.
#[derive(Debug, Clone, Copy)]
pub struct Preloaded;

impl Preloaded {
    /// Makes sure that this process runs on the library.
    ///
    /// # Errors
    /// It does not: the dynamic linker ignores what it cannot load, and what would be measured is the C library.
    pub fn new(params: &Params) -> anyhow::Result<Self> {
        let library = Path::new(params.text("library")?)
            .canonicalize()
            .with_context(|| {
                format!(
                    "library {} cannot be found",
                    params.text("library").unwrap_or_default()
                )
            })?;
        let maps =
            std::fs::read_to_string("/proc/self/maps").context("/proc/self/maps cannot be read")?;
        ensure!(
            maps.lines()
                .any(|line| line.ends_with(&*library.to_string_lossy())),
            "{} was not loaded into this process; the dynamic linker said why on standard error of a program \
             started with LD_PRELOAD={}",
            library.display(),
            library.display()
        );
        Ok(Self)
    }
}

impl Heaps for Preloaded {
    type Local<'a> = SystemMalloc;

    fn local(&self) -> anyhow::Result<SystemMalloc> {
        Ok(SystemMalloc)
    }
}

/// The environment that a process needs in which [`Preloaded`] is to run.
#[must_use]
pub fn environment(params: &Params) -> Vec<(&'static str, String)> {
    params
        .text("library")
        .map(|library| vec![("LD_PRELOAD", library.to_owned())])
        .unwrap_or_default()
}

/// The libraries that the user named in `LARDER_PRELOAD`, as absolute paths; those that are no files are sentences.
#[must_use]
pub fn named_libraries() -> Vec<Result<String, String>> {
    named(&std::env::var(VARIABLE).unwrap_or_default())
}

fn named(list: &str) -> Vec<Result<String, String>> {
    list.split(':')
        .filter(|name| !name.is_empty())
        .map(|name| match Path::new(name).canonicalize() {
            Ok(path) if path.is_file() => Ok(path.to_string_lossy().into_owned()),
            _ => Err(format!(
                "{VARIABLE} names '{name}', which is no file; give the library's whole path"
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_or_sentences() {
        let own = std::env::current_exe().expect("a test is a file");
        let list = named(&format!("{}::/no/such/library.so", own.display()));
        assert_eq!(list.len(), 2);
        assert!(list[0].as_ref().is_ok_and(|path| Path::new(path).is_file()));
        assert!(
            list[1]
                .as_ref()
                .is_err_and(|why| why.contains("/no/such/library.so"))
        );
        assert!(named("").is_empty());
    }

    #[test]
    fn a_library_that_is_not_loaded_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libnothing.so");
        std::fs::write(&file, "").expect("a file");
        let params = Params::new().with_text("library", &file.to_string_lossy());
        let error = Preloaded::new(&params).expect_err("not loaded").to_string();
        assert!(error.contains("was not loaded"), "{error}");
        assert_eq!(environment(&params)[0].0, "LD_PRELOAD");
        assert!(environment(&Params::new()).is_empty());
    }
}
