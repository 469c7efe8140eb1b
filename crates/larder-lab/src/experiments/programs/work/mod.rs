//! The programs: the work of each, and the part of its output that must be the same with every malloc.

pub(super) mod bench;
mod compile;
mod git;
mod postgres;
mod redis;
mod scripts;
mod server;
mod z3;

use super::process::Program;

/// Every program, in the order of the tables.
pub(super) const ALL: [Program; 23] = [
    scripts::PYTHON,
    scripts::PYTHON_MALLOC,
    scripts::PYTHON_TEXT,
    scripts::PERL,
    compile::CPP,
    compile::C,
    compile::SQLITE,
    scripts::SQLITE,
    scripts::SQLITE_FILE,
    git::GIT,
    redis::REDIS,
    scripts::GHOSTSCRIPT,
    z3::Z3,
    scripts::NODE,
    scripts::JAVA,
    scripts::RUBY,
    scripts::PHP,
    postgres::POSTGRES,
    scripts::EMACS,
    scripts::FFMPEG,
    compile::CLANG,
    compile::RUSTC,
    scripts::ERLANG,
];

/// The program of a group.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    let mut all = ALL.iter().chain(&bench::ALL);
    all.find(|program| program.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::process::{Malloc, OUTPUT, Shop};
    use super::*;

    #[test]
    fn every_program_that_is_here_runs_and_says_the_same_twice() {
        let mut ran = 0;
        for program in ALL.iter().filter(|program| program.missing().is_none()) {
            if program.name == "cc-sqlite" {
                // Ten seconds on a busy machine.
                continue;
            }
            let once = || {
                let shop = Shop::open(1)?;
                (program.run)(&shop, &Malloc::default())
            };
            let (one, two) = (once(), once());
            let one = one.unwrap_or_else(|e| panic!("{}: {e:#}", program.name));
            let two = two.unwrap_or_else(|e| panic!("{}: {e:#}", program.name));
            assert!(
                one.get("seconds").is_some_and(|s| s > 0.0),
                "{}",
                program.name
            );
            assert!(
                one.get("peak_bytes").is_some_and(|s| s > 0.0),
                "{}",
                program.name
            );
            assert_eq!(one.get(OUTPUT), two.get(OUTPUT), "{}", program.name);
            ran += 1;
        }
        if ran == 0 {
            eprintln!("skipped: none of the programs is installed");
        }
    }

    #[test]
    fn names_differ_and_what_is_missing_is_named() {
        for program in ALL.iter().chain(&bench::ALL) {
            assert_eq!(find(program.name).map(|p| p.about), Some(program.about));
        }
        let absent = |tools: &'static [&'static str]| {
            Program {
                tools,
                ..scripts::PYTHON
            }
            .missing()
        };
        assert_eq!(
            absent(&["no-such-a"]).as_deref(),
            Some("no-such-a is not installed")
        );
        assert_eq!(
            absent(&["sh", "no-such-a", "no-such-b"]).as_deref(),
            Some("no-such-a and no-such-b are not installed")
        );
        assert_eq!(absent(&["sh"]), None);
    }
}
