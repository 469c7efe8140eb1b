//! The programs, one to a file: what each is given to do, and which of its words must be the same with every malloc.

mod compile;
mod ghostscript;
mod git;
mod perl;
mod python;
mod redis;
mod sqlite;
mod z3;

use super::process::{Malloc, Output, Step, measures};
use super::shop::{Shop, which};
use crate::model::Measures;

/// A real program and its work.
#[derive(Debug)]
pub(super) struct Program {
    /// Name of its group.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) about: &'static str,
    /// Executables without which it is skipped.
    pub(super) tools: &'static [&'static str],
    /// What else it needs and does not find.
    pub(super) lacks: fn() -> Option<String>,
    /// How much it does for some tenths of a second.
    pub(super) scale: i64,
    /// Whether it takes part in the quick form.
    pub(super) quick: bool,
    /// Does it, on this malloc.
    pub(super) run: fn(&Shop, &Malloc) -> anyhow::Result<Measures>,
}

/// Every program, in the order of the tables.
pub(super) const ALL: [Program; 13] = [
    python::OBJECTS,
    python::MALLOC,
    python::TEXT,
    perl::PERL,
    compile::CPP,
    compile::C,
    compile::SQLITE,
    sqlite::SQLITE,
    sqlite::FILE,
    git::GIT,
    redis::REDIS,
    ghostscript::GHOSTSCRIPT,
    z3::Z3,
];

impl Program {
    /// Why it cannot run here.
    pub(super) fn missing(&self) -> Option<String> {
        let missing: Vec<_> = self
            .tools
            .iter()
            .filter(|tool| which(tool).is_none())
            .copied()
            .collect();
        match missing.as_slice() {
            [] => (self.lacks)(),
            [one] => Some(format!("{one} is not installed")),
            several => Some(format!("{} are not installed", several.join(" and "))),
        }
    }
}

/// The program of a group.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    ALL.iter().find(|program| program.name == name)
}

/// Nothing beside its tools.
const fn nothing() -> Option<String> {
    None
}

/// Runs commands one after the other.
fn commands(shop: &Shop, malloc: &Malloc, steps: &[Step]) -> anyhow::Result<Measures> {
    let mut output = Output::default();
    let spent = malloc.run(shop, steps, &mut output)?;
    Ok(measures(spent, output))
}

#[cfg(test)]
mod tests {
    use super::super::rows::OUTPUT;
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
        for program in &ALL {
            assert_eq!(find(program.name).map(|p| p.about), Some(program.about));
        }
        let absent = |tools: &'static [&'static str]| {
            Program {
                tools,
                ..python::OBJECTS
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
