//! The mallocs that can be preloaded here: larder's, what the user named, and what lies in the usual places.

use std::path::{Path, PathBuf};

use crate::model::Skipped;
use crate::preload::{self, snmalloc, usual_folders};

use super::PRELOADED;
use super::preloaded::named_libraries;

/// Name of the contestant that is larder's own malloc.
pub(crate) const LARDER: &str = "larder";

/// Where the library is looked for when it is not beside this program.
const VARIABLE: &str = "LARDER_MALLOC";

/// Files of today's mallocs by contestant, the best first: what distributions install.
const FILES: [(&str, &[&str]); 6] = [
    ("jemalloc", &["libjemalloc.so.2", "libjemalloc.so"]),
    (
        "mimalloc",
        &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"],
    ),
    (
        "tcmalloc",
        &[
            "libtcmalloc_minimal.so.4",
            "libtcmalloc.so.4",
            "libtcmalloc_minimal.so",
            "libtcmalloc.so",
        ],
    ),
    (snmalloc::NAME, &[snmalloc::FILE]),
    ("rpmalloc", &["librpmallocwrap.so", "librpmalloc.so"]),
    ("tbbmalloc", &["libtbbmalloc_proxy.so.2"]),
];

/// The second version of mimalloc, which is kept up beside the third.
const OLDER: (&str, &[&str]) = ("mimalloc-2", &["libmimalloc.so.2"]);

/// A malloc that can be preloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Library {
    /// Its contestant.
    pub(crate) contestant: String,
    /// Its file.
    pub(crate) path: String,
}

/// Names of the contestants that [`found`] may give.
pub(crate) fn contestants() -> impl Iterator<Item = &'static str> {
    let peers = peers().into_iter().chain([OLDER.0]);
    [LARDER].into_iter().chain(peers).chain([PRELOADED])
}

/// Names of the mallocs of others that are looked for.
pub(crate) fn peers() -> [&'static str; FILES.len()] {
    FILES.map(|(name, _)| name)
}

/// What can be preloaded here, larder's first, and a line for what cannot.
pub(crate) fn found() -> (Vec<Library>, Vec<Skipped>) {
    let mut skipped = Vec::new();
    let mut all = Vec::new();
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    match preload::larder::MALLOC.find(named.as_deref().map(Path::new)) {
        Ok(path) => all.push(library(LARDER, &path)),
        Err(why) => skipped.push(Skipped {
            what: LARDER.to_owned(),
            why,
        }),
    }
    for named in named_libraries() {
        match named {
            Ok(path) => {
                let path = Path::new(&path);
                let contestant = contestant_of(path);
                // Of two builds of one malloc that the user named, each is measured.
                let again = all.iter().any(|l| l.contestant == contestant);
                all.push(library(if again { PRELOADED } else { contestant }, path));
            }
            Err(why) => skipped.push(Skipped {
                what: PRELOADED.to_owned(),
                why,
            }),
        }
    }
    all.extend(usual(&usual_folders()));
    match snmalloc::find() {
        Ok(path) => all.push(library(snmalloc::NAME, &path)),
        Err(_) if all.iter().any(|l| l.contestant == snmalloc::NAME) => {}
        Err(why) => skipped.push(Skipped {
            what: snmalloc::NAME.to_owned(),
            why,
        }),
    }
    let all = once_each(all);
    let other = |l: &Library| ![LARDER, snmalloc::NAME].contains(&l.contestant.as_str());
    if !all.iter().any(other) {
        skipped.push(Skipped {
            what: "other mallocs".to_owned(),
            why: "no jemalloc, mimalloc or tcmalloc lies in the usual places; install one, or name libraries in LARDER_PRELOAD, separated by colons".to_owned(),
        });
    }
    (all, skipped)
}

fn library(contestant: &str, path: &Path) -> Library {
    Library {
        contestant: contestant.to_owned(),
        path: path.to_string_lossy().into_owned(),
    }
}

/// Whose library it is, by its name.
pub(crate) fn contestant_of(path: &Path) -> &'static str {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    FILES
        .iter()
        .map(|(contestant, _)| *contestant)
        .find(|contestant| name.starts_with(&format!("lib{contestant}")))
        .unwrap_or(PRELOADED)
}

/// The best file of each malloc in these folders.
fn usual(folders: &[PathBuf]) -> Vec<Library> {
    FILES
        .iter()
        .chain([&OLDER])
        .filter_map(|(contestant, files)| {
            let path = files
                .iter()
                .flat_map(|file| folders.iter().map(move |folder| folder.join(file)))
                .find_map(|path| path.canonicalize().ok().filter(|path| path.is_file()))?;
            Some(library(contestant, &path))
        })
        .collect()
}

/// Each file once, and each contestant but `preloaded` once: the user's comes first.
fn once_each(all: Vec<Library>) -> Vec<Library> {
    let mut kept: Vec<Library> = Vec::new();
    for library in all {
        let again = kept.iter().any(|k| {
            k.path == library.path
                || k.contestant == library.contestant && k.contestant != PRELOADED
        });
        if !again {
            kept.push(library);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_file_of_each_malloc_is_found() {
        let (one, two) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        for (folder, file) in [
            (&one, "libjemalloc.so"),
            (&two, "libjemalloc.so.2"),
            (&two, "libtcmalloc.so.4"),
            (&one, "libmimalloc.so.3"),
            (&two, "libmimalloc.so.2"),
            (&one, "libtalloc.so.2"),
        ] {
            std::fs::write(folder.path().join(file), "").expect("a file");
        }
        let found = usual(&[one.path().to_owned(), two.path().to_owned()]);
        let names: Vec<_> = found.iter().map(|l| l.contestant.as_str()).collect();
        assert_eq!(names, ["jemalloc", "mimalloc", "tcmalloc", "mimalloc-2"]);
        assert!(found[0].path.ends_with("libjemalloc.so.2"));
        assert!(usual(&[]).is_empty());
    }

    #[test]
    fn what_the_user_named_comes_first_and_nothing_twice() {
        let all = [
            ("jemalloc", "/mine/libjemalloc.so.2"),
            ("preloaded", "/mine/libodd.so"),
            ("preloaded", "/mine/libother.so"),
            ("preloaded", "/mine/libodd.so"),
            ("jemalloc", "/usr/lib/libjemalloc.so.2"),
        ];
        let all = all.map(|(name, path)| library(name, Path::new(path)));
        let kept = once_each(all.to_vec());
        let paths: Vec<_> = kept.iter().map(|l| l.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/mine/libjemalloc.so.2",
                "/mine/libodd.so",
                "/mine/libother.so"
            ]
        );
        let of = |name: &str| contestant_of(Path::new(name));
        assert_eq!(of("/x/libmimalloc.so.2.0"), "mimalloc");
        assert_eq!(of("/x/libtcmalloc_minimal.so.4"), "tcmalloc");
        assert_eq!(of("/x/libodd.so"), "preloaded");
    }
}
