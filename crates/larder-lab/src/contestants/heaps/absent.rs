//! The allocators that the user named, and those that a run lacks, with what would bring them.

use crate::model::Skipped;
use crate::preload::snmalloc;

use super::PRELOADED;
use super::preloaded::named_libraries;

/// The libraries that the user named, and a line for each allocator that a run does without: named ones that are no files,
/// those that are not among `names`, the contestants of this build, and one more when no library was named. snmalloc is
/// preloaded where it is not linked.
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
    let none_named = libraries.is_empty();
    let mut why = String::new();
    if !names.contains(&snmalloc::NAME) && !libraries.iter().any(|l| l.contains("snmalloc")) {
        match snmalloc::find() {
            Ok(path) => libraries.push(path.to_string_lossy().into_owned()),
            Err(lacks) => why = lacks,
        }
    }
    skipped.extend(absent(names, &why, none_named));
    (libraries, skipped)
}

fn absent(names: &[&str], no_snmalloc: &str, no_library: bool) -> Vec<Skipped> {
    let lines = [
        (
            !names.contains(&"mimalloc"),
            "mimalloc, jemalloc and rpmalloc",
            "this program was built without them; build with the default features to compare with them",
        ),
        (!no_snmalloc.is_empty(), snmalloc::NAME, no_snmalloc),
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
        let what = |names: &[&str], why: &str, none| -> Vec<_> {
            let absent = absent(names, why, none);
            absent.into_iter().map(|s| s.what).collect()
        };
        assert_eq!(what(&["mimalloc"], "", false), [""; 0]);
        assert_eq!(what(&["mimalloc"], "no compiler", false), ["snmalloc"]);
        assert_eq!(what(&["malloc"], "no compiler", true).len(), 3);
    }
}
