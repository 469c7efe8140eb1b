//! The sentences, the mail's questions first.

use super::contestants::{LARDER_PRELOADED, LOCKED};
use super::goals::{best_preloaded, malloc_name, million};
use super::plan::{
    APART, AS_MAIL, CONSTRUCTED, CPU, DEPOT, DEPOT_THREADS, ENDED, HELD, KEEPING, LOCK, MAIL,
    MILLION, OBJECT, ONE_CPU, OURS, PAIR, RATE, RETURNED, SECONDS, SIZE, SLEEPS, THREADS, asked,
    of_size,
};
use super::second::{Facts, Slowest, over_one_thread, second};
use crate::experiments::allocators::PEERS;
use crate::frame::words::{ratio, short};
use crate::frame::{
    self, At, Column, Results, finding, judged, listing, shown, text, versus_called, worst,
};
use crate::model::{Cost, Finding, ShortAnswer, Table, Value};
use crate::stats::Verdict;

const MAIL_ON: &str = "the mail on magazines for Parrot";
const LARDER: &str = "larder";

/// Every sentence.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let all = [
        second_thread(results),
        lock(results),
        more_threads(results),
        destruction(results),
        pairs(results),
        preloaded(results),
        constructed(results),
        depot(results),
        burst(results),
    ];
    all.into_iter().flatten().collect()
}

/// What the summary says of the mail's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let over = |name: &&'static str| {
        let at = |n| results.find(THREADS, name, &[("threads", n)]);
        Some((*name, at(2)?.ratio(&at(1)?, SECONDS)?))
    };
    let slow = worst(MAIL.iter().filter_map(over)).map(|(name, r)| {
        let says = if r.lo > 1.0 { "yes" } else { "no sure loss" };
        let answer = format!("{says}; {name}: {} of one's time", ratio(&r));
        ShortAnswer::new("Is a second thread slow?", answer)
    });
    let lock = locked(results, 1).and_then(|(free, locked)| {
        let r = free.ratio(&locked, CPU)?;
        let says = if r.hi < 1.0 { "yes" } else { "no sure gain" };
        let answer = format!("{says}: {} of the time with it", ratio(&r));
        Some(ShortAnswer::new("CPU caches without a lock?", answer))
    });
    slow.into_iter().chain(lock).collect()
}

/// An object of 64 bytes, for the summary: in the cheapest of larder's forms.
pub(super) fn costs(results: &Results<'_>) -> Vec<Cost> {
    let group = of_size("pair", SIZE);
    let best = |names: &[&str]| results.best(&group, names, &[], PAIR);
    let (ours, peer) = (best(&OURS), best(&PEERS));
    let row = ours.and_then(|_| frame::cost("object of 64 B", "ns", PAIR, ours, peer, None));
    row.into_iter().collect()
}

/// Whether two threads together are slower than one and than three, and why a second thread costs something.
fn second_thread(results: &Results<'_>) -> Option<Finding> {
    let known = asked().filter_map(|name| Some((name, Facts::of(results, name)?)));
    let known: Vec<(&str, Facts)> = known.collect();
    let is = |wanted| move |(_, f): &&(&str, Facts)| f.slowest() == Some(wanted);
    let slow = known.iter().filter(is(Slowest::Yes)).count();
    let asked_of = known
        .iter()
        .filter(|own| slow == 0 || is(Slowest::Yes)(own));
    let lowest = asked_of.filter_map(|own| Some((own, own.1.rate_over_one?)));
    let ((name, facts), r) = lowest.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let (count, r, cause) = (known.len(), ratio(&r), facts.cause().words());
    let answer = match slow {
        0 => {
            let none_may = known.iter().all(|own| is(Slowest::No)(&own));
            let surely = if none_may { "" } else { "surely " };
            format!(
                "None of {count} allocators {surely}shows a slow second thread: two threads of {name} make {r} of the cycles per \
                 second of one."
            )
        }
        _ => format!(
            "{slow} of {count} allocators show a slow second thread, {name} most: two threads make {r} of the cycles per second of \
             one; the cause: {cause}."
        ),
    };

    let two = asked().filter_map(|name| second(results, name, 2, AS_MAIL));
    let rate = |threads| move |at: &At<'_, '_>| second(results, at.name(), threads, AS_MAIL);
    let time = |heading, layout| {
        Column::by(heading, move |at| {
            shown(over_one_thread(results, at.name(), layout), "x")
        })
    };
    let said = |heading, of: fn(&Facts) -> Option<&'static str>| {
        Column::by(heading, move |at| {
            let facts = Facts::of(results, at.name());
            facts.and_then(|f| of(&f)).map_or(Value::Empty, text)
        })
    };
    let columns = vec![
        Column::contestant("allocator"),
        said("slower than one and three", |f| Some(f.slowest()?.word())),
        said("cause", |f| Some(f.cause().words())),
        Column::over("rate over one", RATE, rate(1)),
        Column::over("rate over three", RATE, rate(3)),
        time("time on two CPUs", AS_MAIL),
        time("pieces on lines of their own", APART),
        time("on one CPU", ONE_CPU),
        Column::middle("sleeps per million", SLEEPS),
    ];
    let title = "Two threads together: their rate over that of one and of three, and their time over that of one, each with as many \
                 cycles (on two CPUs 1 is perfect, on one CPU 2)";
    let question = "Why is the second thread always the slowest?";
    let table = listing(title, two, columns);
    Some(with_table(finding(question, MAIL_ON, answer), table))
}

fn with_table(finding: Finding, table: Table) -> Finding {
    Finding {
        table: Some(table),
        ..finding
    }
}

/// The cache by restartable sequences, and behind locks.
fn locked<'r, 'a>(results: &'r Results<'a>, threads: i64) -> Option<(At<'r, 'a>, At<'r, 'a>)> {
    let cell = |name| results.find(LOCK, name, &[("threads", threads)]);
    cell("object-cache").zip(cell(LOCKED))
}

/// "I am assuming that even with solaris optimizations the overhead of locking will hurt performance."
fn lock(results: &Results<'_>) -> Option<Finding> {
    let (free, behind) = locked(results, 1)?;
    let finding = judged(
        "Can per-CPU caches do without the lock?",
        MAIL_ON,
        ("larder's object cache without a lock", &free),
        ("the same cache with a lock", &behind),
        CPU,
        |r, verdict| {
            let says = match verdict {
                Verdict::Faster => "Yes",
                Verdict::Slower => "Yes, but it does not pay",
                _ => "Yes, but this run does not decide whether it pays",
            };
            format!(
                "{says}: a block takes {r} of the CPU time that the same cache takes with a lock."
            )
        },
    )?;
    let with_lock = |at: &At<'_, '_>| Some(locked(results, at.int("threads")?)?.1);
    let columns = vec![
        Column::factor("threads", "threads"),
        Column::metric("without a lock", CPU),
        Column::by("with a lock", move |at| {
            with_lock(at).map_or(Value::Empty, |at| at.value(CPU))
        }),
        Column::over("without over with", CPU, with_lock),
    ];
    let title = "CPU time of a block, there and back, through a CPU's magazines";
    let table = listing(title, results.of(LOCK, "object-cache"), columns);
    Some(with_table(finding, table))
}

/// "The more threads that were used, the more efficient it became."
fn more_threads(results: &Results<'_>) -> Option<Finding> {
    let counts = results.values(THREADS, "threads").into_iter();
    let most = counts.filter(|n| (3..=64).contains(n)).max()?;
    let at = |name: &str, n| results.find(THREADS, name, &[("threads", n)]);
    let r = at("explicit-handle", most)?.ratio(&at("explicit-handle", 2)?, RATE)?;
    let says = match r {
        _ if r.lo > 1.0 => "Yes",
        _ if r.hi < 1.0 => "No",
        _ => "Not decided",
    };
    let answer = format!(
        "{says}: {most} threads make {} times the cycles per second of 2 (explicit-handle).",
        ratio(&r)
    );
    let columns = vec![
        Column::contestant("allocator"),
        Column::over("over those of 2", RATE, move |of| at(of.name(), 2)),
    ];
    let title = format!("Cycles per second of {most} threads together");
    let table = listing(
        title,
        MAIL.iter().filter_map(|name| at(name, most)),
        columns,
    );
    let question = "Does it become more efficient the more threads there are?";
    Some(with_table(finding(question, MAIL_ON, answer), table))
}

/// "A parrot-interpreter-destruction could be murder."
fn destruction(results: &Results<'_>) -> Option<Finding> {
    let [whole, freed] = million(results);
    let (whole, freed) = (whole?, freed?);
    let r = whole.ratio(&freed, ENDED)?;
    let says = match r {
        _ if r.hi < 0.5 => "Yes, where objects die with their heap",
        _ if r.lo > 0.9 => "No: that objects die with their heap saves nothing",
        _ => "Cheaper, where objects die with their heap",
    };
    let (classes, objects) = MILLION;
    judged(
        "Is tearing down an interpreter with 30 caches cheap?",
        MAIL_ON,
        ("dropping a heap whole", &whole),
        ("freeing its objects one by one", &freed),
        ENDED,
        |r, _| {
            format!(
                "{says}: {objects} objects in {classes} size classes go in {r} of the time that freeing them one by one takes."
            )
        },
    )
}

fn pairs(results: &Results<'_>) -> Option<Finding> {
    let group = of_size("pair", SIZE);
    let question = format!("What does a block of {SIZE} bytes cost, there and back?");
    let own = results.find(&group, "heap", &[])?;
    let best = results.best(&group, &PEERS, &[], PAIR)?;
    let called = ("larder's heap", malloc_name(&best));
    versus_called(question, called, &own, &best, PAIR, "ns")
}

fn preloaded(results: &Results<'_>) -> Option<Finding> {
    let group = of_size("preloaded", SIZE);
    let question = format!(
        "What does a block of {SIZE} bytes cost through malloc, in a program that knows nothing of larder?"
    );
    let own = results.find(&group, LARDER_PRELOADED, &[])?;
    let best = best_preloaded(results, &group)?;
    let called = ("larder's malloc, preloaded", malloc_name(&best));
    versus_called(question, called, &own, &best, PAIR, "ns")
}

/// What a constructor adds.
fn constructed(results: &Results<'_>) -> Option<Finding> {
    let peer = results.best(CONSTRUCTED, &PEERS, &[], OBJECT)?;
    let ours = results.best(CONSTRUCTED, &KEEPING, &[], OBJECT)?;
    let question = "What does an object cost that stays constructed while it is free?";
    let called = format!("larder's {}", ours.name());
    let built = format!("{} with the constructor", peer.name());
    versus_called(question, (&called, &built), &ours, &peer, OBJECT, "ns")
}

/// What 64 threads cost where two did, and how often they sleep.
fn depot(results: &Results<'_>) -> Option<Finding> {
    let [.., two, _, most] = DEPOT_THREADS;
    let at = |name, n| results.find(DEPOT, name, &[("threads", n)]);
    let over = OURS.iter().filter_map(|name| {
        let dearer = at(name, most)?.ratio(&at(name, two)?, CPU)?;
        Some((name, dearer))
    });
    let (name, r) = worst(over)?;
    let answer = format!(
        "{name} loses most: {most} threads take {} of the CPU time of {two}.",
        ratio(&r)
    );
    Some(finding(
        "Does a thread that lost its CPU hold up the others at the depot?",
        LARDER,
        answer,
    ))
}

fn burst(results: &Results<'_>) -> Option<Finding> {
    let mut cells = results.of(HELD, "heap");
    let at = cells.find(|at| at.text("calls") == Some("no"))?;
    let back = at.estimate(RETURNED)?;
    let seconds = at.int("interval_ms")? as f64 * f64::from(super::held::INTERVALS) / 1000.0;
    let answer = format!(
        "{} of it after {} s in which no call is made and the heap's thread is on.",
        ratio(&back),
        short(seconds)
    );
    Some(finding(
        "How much of a freed burst is back with the system?",
        LARDER,
        answer,
    ))
}
