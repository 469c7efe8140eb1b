//! The contestants: one cache each, in every shape that it can take.

use anyhow::bail;

use crate::contestants::block_cache::{Blocks, Larder, SharedBlocks};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::{instructions, memory, shapes};

/// Every contestant, in the order of the tables.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    let mut all: Vec<Box<dyn Contestant>> = vec![
        Box::new(Bench {
            name: "larder",
            about: "BlockCache with its default rule: a get is a guard that pins the block, and its end",
            run: ours,
        }),
        Box::new(Bench {
            name: "loop",
            about: "the loop alone: a number is drawn and nothing looked up",
            run: shapes::empty,
        }),
    ];
    #[cfg(feature = "peers")]
    {
        use crate::contestants::block_cache::{HashLink, Moka, Quick, QuickArc, QuickUnsync};
        all.push(Box::new(Bench {
            name: "quick",
            about: "quick_cache's sync::Cache<u64, u32>: a copy of the value, nothing pinned",
            run: shared::<Quick>,
        }));
        all.push(Box::new(Bench {
            name: "quick-arc",
            about: "quick_cache's sync::Cache<u64, Arc<u64>>: the value stays while the Arc is held",
            run: shared::<QuickArc>,
        }));
        all.push(Box::new(Bench {
            name: "quick-unsync",
            about: "quick_cache's unsync::Cache<u64, u32>: one thread, nothing pinned",
            run: alone::<QuickUnsync>,
        }));
        all.push(Box::new(Bench {
            name: "hashlink",
            about: "hashlink's LruCache<u64, u32>: one thread, nothing pinned",
            run: alone::<HashLink>,
        }));
        all.push(Box::new(Bench {
            name: "moka",
            about: "moka's sync::Cache<u64, u32>: a copy of the value, nothing pinned",
            run: shared::<Moka>,
        }));
    }
    all.push(Box::new(Instructions));
    all
}

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Params) -> anyhow::Result<Measures>,
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

fn ours(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "memory" => memory::with(params, |cache: &Larder| Some(cache.table_bytes())),
        _ => shared::<Larder>(params),
    }
}

/// Caches for one thread.
fn alone<B: Blocks>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "hit" => shapes::hit::<B>(params),
        "miss" => shapes::miss::<B>(params),
        "memory" => memory::with::<B>(params, |_| None),
        other => bail!("shape '{other}' is unknown; the shapes are hit, miss and memory"),
    }
}

/// Caches for many threads.
fn shared<B: SharedBlocks>(params: &Params) -> anyhow::Result<Measures> {
    match params.text("shape")? {
        "threads" => shapes::threads::<B>(params),
        _ => alone::<B>(params),
    }
}

/// Instructions of a hit of another contestant.
struct Instructions;

impl Contestant for Instructions {
    fn name(&self) -> &'static str {
        "instructions"
    }

    fn about(&self) -> &'static str {
        "instructions of one hit of the named cache, counted by callgrind"
    }

    fn available(&self) -> Result<(), String> {
        crate::measure::callgrind::available()
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        instructions::run(params)
    }
}
