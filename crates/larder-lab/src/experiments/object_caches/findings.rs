//! The sentences, the mail's questions first.

use super::contestants::{LARDER_PRELOADED, LOCKED};
use super::goals::{best_preloaded, malloc_name, million};
use super::plan::{
    APART, AS_MAIL, CONSTRUCTED, CPU, DEPOT, DEPOT_THREADS, ENDED, HELD, KEEPING, LOCK, MAIL,
    MILLION, OBJECT, ONE_CPU, OURS, PAIR, PEERS, RATE, RETURNED, SECONDS, SIZE, SIZES, SLEEPS,
    THREADS, asked, of_size,
};
use super::second::{Cause, Facts, Slowest, over_one_thread, second};
use crate::frame::words::{ratio, short};
use crate::frame::{
    self, At, Column, Results, finding, listing, ratios, versus, versus_called, worst,
};
use crate::model::{Cost, Finding, ShortAnswer, Table, Value};

const MAIL_ON: &str = "the mail on magazines for Parrot";
const LARDER: &str = "larder";

/// Every sentence.
pub(super) fn all(results: &Results<'_>) -> Vec<Finding> {
    let others = [
        lock(results),
        fluctuation(results),
        more_threads(results),
        destruction(results),
        pairs(results),
        preloaded(results),
        constructed(results),
        depot(results),
        burst(results),
    ];
    let first = second_thread(results).into_iter().flatten();
    first.chain(others.into_iter().flatten()).collect()
}

/// What the summary says of the mail's questions.
pub(super) fn answers(results: &Results<'_>) -> Vec<ShortAnswer> {
    let over = |name: &&'static str| {
        let at = |n| results.find(THREADS, name, &[("threads", n)]);
        Some((*name, at(2)?.ratio(&at(1)?, SECONDS)?))
    };
    let slow = worst(MAIL.iter().filter_map(over)).map(|(name, r)| {
        let says = if r.lo > 1.0 { "worst" } else { "no sure loss" };
        let answer = format!("{says}: {name} {} of one", ratio(&r));
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

/// Contestants whose blocks came from a CPU's magazines less often than their name says. One of which none came has failed.
pub(super) fn warnings(results: &Results<'_>) -> Vec<String> {
    let cells = results
        .view
        .groups()
        .into_iter()
        .flat_map(|group| results.all(group));
    let low = cells.filter_map(|at| {
        let share = at.middle("path_share").filter(|share| *share < 0.5)?;
        let (name, group) = (at.name(), at.group);
        Some(format!(
            "{name} in group {group}: only {} % of the blocks came from a CPU's magazines",
            short(100.0 * share)
        ))
    });
    low.collect()
}

/// An object of 64 bytes, for the summary: in the cheapest of larder's forms.
pub(super) fn costs(results: &Results<'_>) -> Vec<Cost> {
    let group = of_size("pair", SIZE);
    let best = |names: &[&str]| results.best(&group, names, &[], PAIR);
    let (ours, peer) = (best(&OURS), best(&PEERS));
    let row = ours.and_then(|_| frame::cost("object of 64 B", "ns", PAIR, ours, peer, None));
    row.into_iter().collect()
}

/// The names that are of each kind, behind the kind's words.
fn sorted<T: PartialEq>(
    kinds: &[(T, &str)],
    of: impl Iterator<Item = (&'static str, T)>,
) -> String {
    let of: Vec<(&str, T)> = of.collect();
    let parts = kinds.iter().filter_map(|(kind, words)| {
        let names = of.iter().filter(|(_, own)| own == kind);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| format!("{words} {}", names.join(", ")))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Whether two threads together are slower than one and than three, and why a second thread costs something.
fn second_thread(results: &Results<'_>) -> Option<[Finding; 2]> {
    let known = asked().filter_map(|name| Some((name, Facts::of(results, name)?)));
    let facts: Vec<(&'static str, Facts)> = known.collect();
    let kinds = [
        (Slowest::Yes, "surely with"),
        (Slowest::No, "surely not with"),
        (Slowest::Undecided, "not decided with"),
    ];
    let of = |(name, f): &(&'static str, Facts)| Some((*name, f.slowest()?));
    let by_state = sorted(&kinds, facts.iter().filter_map(of));
    let of = |(name, f): &(&'static str, Facts)| Some((*name, f.rate_over_one?));
    let over_one = facts.iter().filter_map(of);
    let (lowest, r) = over_one.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let is_slowest = format!(
        "The slowest is that of {lowest}: two make {} of the cycles per second of one. Slower than one and than three: {by_state}.",
        ratio(&r)
    );
    let words = Cause::ALL.map(|cause| (cause, format!("{}:", cause.words())));
    let kinds = words
        .each_ref()
        .map(|(cause, words)| (*cause, words.as_str()));
    let why = sorted(&kinds, facts.iter().map(|(name, f)| (*name, f.cause())));

    let two = || asked().filter_map(|name| second(results, name, 2, AS_MAIL));
    let rate = |threads| move |at: &At<'_, '_>| second(results, at.name(), threads, AS_MAIL);
    let columns = vec![
        Column::contestant("allocator"),
        Column::over("over one", RATE, rate(1)),
        Column::over("over three", RATE, rate(3)),
    ];
    let rates = listing("Cycles per second of two threads together", two(), columns);
    let time = |heading, layout| {
        Column::by(heading, move |at| {
            let ratio = over_one_thread(results, at.name(), layout);
            ratio.map_or(Value::Empty, |r| Value::Estimate(r, "x".to_owned()))
        })
    };
    let cause = |at: &At<'_, '_>| {
        let facts = Facts::of(results, at.name());
        facts.map_or(Value::Empty, |f| Value::Text(f.cause().words().to_owned()))
    };
    let columns = vec![
        Column::contestant("allocator"),
        time("two CPUs", AS_MAIL),
        time("pieces on lines of their own", APART),
        time("one CPU", ONE_CPU),
        Column::middle("sleeps per million", SLEEPS),
        Column::by("cause", cause),
    ];
    let title = "Time of two threads over one, each with as many cycles: on two CPUs 1 is perfect, on one CPU 2";
    let times = listing(title, two(), columns);
    let question = "Is the second thread always the slowest?";
    Some([
        with_table(finding(question, MAIL_ON, is_slowest), rates),
        with_table(
            finding("Why is the second thread slow?", MAIL_ON, format!("{why}.")),
            times,
        ),
    ])
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
    let called = (
        "larder's object cache without a lock",
        "the same cache with a lock",
    );
    let question = "Can a CPU's cache do without the lock, and does the lock hurt?";
    let finding = versus_called(question, called, &free, &behind, CPU, "ns")?;
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
    let asked_by = MAIL_ON.to_owned();
    Some(with_table(
        Finding {
            asked_by,
            ..finding
        },
        table,
    ))
}

/// "The values fluctuate by 1.5 seconds or more for more than 2 threads, while remaining fairly constant for the other 2."
fn fluctuation(results: &Results<'_>) -> Option<Finding> {
    let spread = |threads| {
        let at = second(results, "explicit-handle", threads, AS_MAIL)?;
        let m = results.view.moments(at.group, at.cell, SECONDS)?;
        (m.mean > 0.0).then(|| 100.0 * m.sd / m.mean)
    };
    let (two, three) = (spread(2)?, spread(3)?);
    let answer = format!(
        "explicit-handle: the standard deviation is {} % of the mean with 2 threads and {} % with 3, without intervals; why is not tested \
         here.",
        short(two),
        short(three)
    );
    Some(finding(
        "Does the time fluctuate more with three threads than with two?",
        MAIL_ON,
        answer,
    ))
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
        _ if r.hi < 0.5 => "No, where objects die with their heap",
        _ if r.lo > 0.9 => "Yes: dying whole saves nothing",
        _ => "Less so, where objects die with their heap",
    };
    let answer = format!(
        "{says}: {} objects in {} classes are gone in {} us, {} of what freeing them one by one takes.",
        MILLION.1,
        MILLION.0,
        short(whole.middle(ENDED)? / 1000.0),
        ratio(&r)
    );
    Some(finding(
        "Is the destruction of an interpreter with 30 caches \"murder\"?",
        MAIL_ON,
        answer,
    ))
}

/// A block of 64 bytes, and by size what larder's contestants cost over the best of the others.
fn by_size<'r, 'a: 'r>(
    results: &'r Results<'a>,
    groups: &'r [String; SIZES.len()],
    (question, called): (&str, &str),
    ours: &[&'static str],
    best: impl Fn(&'r str) -> Option<At<'r, 'a>>,
) -> Option<Finding> {
    let cell = |group: &'r str, name| results.find(group, name, &[]).zip(best(group));
    let group = groups
        .iter()
        .zip(SIZES)
        .find(|(_, bytes)| *bytes == SIZE)?
        .0;
    let (own, other) = cell(group, ours[0])?;
    let finding = versus_called(
        question,
        (called, malloc_name(&other)),
        &own,
        &other,
        PAIR,
        "ns",
    )?;
    let table = ratios(
        "CPU time over that of the best of the others",
        "bytes",
        groups
            .iter()
            .zip(SIZES)
            .map(|(group, bytes)| (group, Value::Count(bytes))),
        ours.iter().map(|name| (*name, (*name).to_owned())),
        PAIR,
        |group, name| cell(group, name),
    );
    Some(with_table(finding, table))
}

fn pairs(results: &Results<'_>) -> Option<Finding> {
    let groups = SIZES.map(|bytes| of_size("pair", bytes));
    let question = format!("What does a block of {SIZE} bytes cost, there and back?");
    let ours = ["heap", "object-handle", "object-cache", "classes", "global"];
    let best = |group| results.best(group, &PEERS, &[], PAIR);
    by_size(results, &groups, (&question, "larder's heap"), &ours, best)
}

fn preloaded(results: &Results<'_>) -> Option<Finding> {
    let groups = SIZES.map(|bytes| of_size("preloaded", bytes));
    let question = "And in a program that knows nothing of larder, through malloc?";
    let called = "larder's malloc, preloaded";
    let best = |group| best_preloaded(results, group);
    by_size(
        results,
        &groups,
        (question, called),
        &[LARDER_PRELOADED],
        best,
    )
}

/// What a constructor adds.
fn constructed(results: &Results<'_>) -> Option<Finding> {
    let metric = OBJECT;
    let peer = results.best(CONSTRUCTED, &PEERS, &[], metric)?;
    let ours = results.best(CONSTRUCTED, &KEEPING, &[], metric)?;
    let question = "What does it save to keep objects constructed?";
    let called = format!("larder's {}", ours.name());
    let finding = versus(question, &called, &ours, &peer, metric, "ns")?;
    let alone = short(peer.middle("constructor_ns")?);
    Some(Finding {
        answer: format!("{} The constructor alone takes {alone} ns.", finding.answer),
        ..finding
    })
}

/// What 64 threads cost where two did, and how often they sleep.
fn depot(results: &Results<'_>) -> Option<Finding> {
    let [.., two, _, most] = DEPOT_THREADS;
    let at = |name, n| results.find(DEPOT, name, &[("threads", n)]);
    let over = OURS.iter().filter_map(|name| {
        let many = at(name, most)?;
        let dearer = many.ratio(&at(name, two)?, CPU)?;
        Some(((name, many.middle(SLEEPS)?), dearer))
    });
    let ((name, sleeps), r) = worst(over)?;
    let answer = format!(
        "{name} loses most: {most} threads take {} of the CPU time of {two}, and sleep {} times in a million blocks.",
        ratio(&r),
        short(sleeps)
    );
    Some(finding(
        "Does a thread that lost its CPU hold up the others at the depot?",
        LARDER,
        answer,
    ))
}

fn burst(results: &Results<'_>) -> Option<Finding> {
    let of = |calls: &str| {
        let at = results
            .of(HELD, "heap")
            .find(|at| at.text("calls") == Some(calls))?;
        Some((at, at.estimate(RETURNED)?))
    };
    let ((at, idle), (_, busy)) = (of("no")?, of("yes")?);
    let seconds = at.int("interval_ms")? as f64 * f64::from(super::held::INTERVALS) / 1000.0;
    let answer = format!(
        "After {} s the heap has returned {} of it where no calls are made and its thread is on, and {} where calls are made.",
        short(seconds),
        ratio(&idle),
        short(busy.value)
    );
    Some(finding(
        "How much of a freed burst is back with the system?",
        LARDER,
        answer,
    ))
}
