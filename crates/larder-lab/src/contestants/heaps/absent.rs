//! Which allocators the user named, and which a run does without and what would bring them in.

use crate::model::Skipped;

use super::PRELOADED;
use super::preloaded::named_libraries;

/// The libraries that the user named, and a line for each allocator that a run does without: named ones that are no files,
/// those that are not among `names`, the contestants of this build, and one more when no library can be used.
#[must_use]
pub fn libraries(names: &[&str]) -> (Vec<String>, Vec<Skipped>) {
    let mut libraries = Vec::new();
    let mut skipped = Vec::new();
    for named in named_libraries() {
        match named {
            Ok(library) => libraries.push(library),
            Err(why) => skipped.push(Skipped {
                what: PRELOADED.to_owned(),
                why,
            }),
        }
    }
    skipped.extend(absent(names, libraries.is_empty()));
    (libraries, skipped)
}

fn absent(names: &[&str], no_library: bool) -> Vec<Skipped> {
    let lines = [
        (
            !names.contains(&"mimalloc"),
            "mimalloc, jemalloc and rpmalloc",
            "this program was built without them; build with the default features to compare with them",
        ),
        (
            !names.contains(&"snmalloc"),
            "snmalloc",
            "it needs a C++ compiler and is left out by default; build with --features peers-cpp to compare with it",
        ),
        (
            no_library,
            PRELOADED,
            "no malloc was named; name libraries in LARDER_PRELOAD, separated by colons, to compare with them",
        ),
    ];
    lines
        .into_iter()
        .filter(|(is_absent, ..)| *is_absent)
        .map(|(_, what, why)| Skipped {
            what: what.to_owned(),
            why: why.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_named() {
        let what = |names: &[&str], none| -> Vec<_> {
            absent(names, none).into_iter().map(|s| s.what).collect()
        };
        assert_eq!(what(&["mimalloc", "snmalloc"], false), [""; 0]);
        assert_eq!(what(&["mimalloc"], false), ["snmalloc"]);
        assert_eq!(what(&["malloc"], true).len(), 3);
    }
}
