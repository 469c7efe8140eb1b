//! A contestant from a name, a sentence and a function.

use crate::measure::Contestant;
use crate::model::{Measures, Params};

type Run = Box<dyn Fn(&Params) -> anyhow::Result<Measures> + Sync>;

struct Bench {
    name: &'static str,
    about: &'static str,
    run: Run,
}

/// The contestant that a function is: for all that need no process of their own kind and are always available.
pub(crate) fn bench(
    name: &'static str,
    about: &'static str,
    run: impl Fn(&Params) -> anyhow::Result<Measures> + Sync + 'static,
) -> Box<dyn Contestant> {
    Box::new(Bench {
        name,
        about,
        run: Box::new(run),
    })
}

impl Contestant for Bench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        (self.run)(params)
    }
}
