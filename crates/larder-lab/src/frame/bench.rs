//! A contestant from a name, a sentence and a function.

use anyhow::Context;

use crate::measure::{Contestant, callgrind};
use crate::model::{Measures, Params};

type Run = Box<dyn Fn(&Params) -> anyhow::Result<Measures> + Sync>;

struct Bench {
    name: &'static str,
    about: &'static str,
    run: Run,
}

/// A contestant made from a function, for contestants that are always available and need no special process.
pub fn bench(
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

type Needs = fn() -> Result<(), String>;
type Variables = fn(&Params) -> Vec<(&'static str, String)>;

/// A contestant with conditions.
struct Given {
    inner: Box<dyn Contestant>,
    needs: Needs,
    environment: Variables,
}

/// The contestant, available where `needs` finds what it relies on.
pub fn needing(needs: Needs, inner: Box<dyn Contestant>) -> Box<dyn Contestant> {
    Box::new(Given {
        inner,
        needs,
        environment: |_| Vec::new(),
    })
}

/// The contestant in a process that is started with these variables.
pub fn within(environment: Variables, inner: Box<dyn Contestant>) -> Box<dyn Contestant> {
    Box::new(Given {
        inner,
        needs: || Ok(()),
        environment,
    })
}

impl Contestant for Given {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn about(&self) -> &'static str {
        self.inner.about()
    }

    fn available(&self) -> Result<(), String> {
        (self.needs)().and_then(|()| self.inner.available())
    }

    fn environment(&self, params: &Params) -> Vec<(&'static str, String)> {
        let mut all = self.inner.environment(params);
        all.extend((self.environment)(params));
        all
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        self.inner.run(params)
    }
}

/// The contestant `instructions`: it counts, by callgrind, what one piece of work of another contestant of its experiment takes.
/// The difference of two runs of the same program, the second with twice as many pieces, leaves only the pieces: start and exit
/// cancel. The program runs itself under valgrind through its worker subcommand.
pub struct Counted {
    /// What a piece of work is.
    pub about: &'static str,
    /// The experiment.
    pub experiment: &'static str,
    /// The factor that names the other contestant.
    pub factor: &'static str,
    /// Pieces of the shorter run.
    pub pieces: u64,
    /// Before the clock starts, `pieces` divided by this are done untimed. It must divide `pieces`.
    pub warm_share: u64,
    /// The factors with which the other contestant does this many pieces.
    pub params: fn(i64) -> Params,
}

impl Contestant for Counted {
    fn name(&self) -> &'static str {
        "instructions"
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn available(&self) -> Result<(), String> {
        callgrind::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        callgrind::available().map_err(anyhow::Error::msg)?;
        let program = std::env::current_exe().context("the program's own path cannot be found")?;
        let contestant = params.text(self.factor)?;
        let counted = |pieces: u64| {
            let params = (self.params)(i64::try_from(pieces)?);
            callgrind::count(&program, self.experiment, contestant, &params)
        };
        let (short, long) = (counted(self.pieces)?, counted(2 * self.pieces)?);
        let each = callgrind::per_piece(short, long, self.pieces, self.warm_share);
        Ok(Measures::new().with("instructions", each))
    }
}
