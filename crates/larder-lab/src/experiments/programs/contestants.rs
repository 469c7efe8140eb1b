//! The contestants: a malloc each, under every program.

use anyhow::Context;

use super::libraries;
use super::process::Malloc;
use super::rows::SYSTEM;
use super::shop::Shop;
use super::work;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![Box::new(System)];
    for name in libraries::contestants() {
        all.push(Box::new(Preloaded(name)));
    }
    all
}

struct System;

impl Contestant for System {
    fn name(&self) -> &'static str {
        SYSTEM
    }

    fn about(&self) -> &'static str {
        "what the program has without anything preloaded: the C library's malloc, but for programs that bring their own"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        run(params, &Malloc::default())
    }
}

struct Preloaded(&'static str);

impl Contestant for Preloaded {
    fn name(&self) -> &'static str {
        self.0
    }

    fn about(&self) -> &'static str {
        match self.0 {
            libraries::LARDER => "liblarder_malloc.so, preloaded",
            crate::contestants::heaps::PRELOADED => {
                "the library that LARDER_PRELOAD names, loaded before the C library"
            }
            _ => {
                "the library of this name that lies in the usual places, or that LARDER_PRELOAD names, preloaded"
            }
        }
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        run(params, &Malloc::preloaded(params.text("library")?))
    }
}

fn run(params: &Params, malloc: &Malloc) -> anyhow::Result<Measures> {
    let name = params.text("program")?;
    let program = work::find(name).with_context(|| {
        let known: Vec<_> = work::ALL.iter().map(|program| program.name).collect();
        format!(
            "program '{name}' is unknown; the programs are: {}",
            known.join(", ")
        )
    })?;
    (program.run)(&Shop::open(params.count("scale")?)?, malloc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_program_is_an_error_that_names_the_known() {
        let params = Params::new().with_text("program", "emacs").with("scale", 1);
        let error = System.run(&params).expect_err("unknown").to_string();
        assert!(
            error.contains("emacs") && error.contains("python-objects"),
            "{error}"
        );
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<_> = all().iter().map(|c| c.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
