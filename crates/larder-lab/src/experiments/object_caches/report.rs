//! The sentences.

use crate::frame::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Cell, Cost, Finding, ShortAnswer, Table, Value};
use crate::stats::Estimate;

use super::plan::{CONSTRUCTED, HIS, OURS, PEERS, SECOND, SIZES, asked, pair_group};
use super::rows::{
    OBJECT, PAIR, RATE, SECONDS, best, by_threads, counts_of_threads, find, over_one, second,
};
use super::second::{Cause, Facts, Slowest, second_is_slowest};

const MAIL: &str = "the mail on magazines for Parrot";

fn finding(question: &str, asked_by: &str, answer: String) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict: None,
        ..Finding::default()
    }
}

/// Every sentence, his question first.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(who_is_slowest(view));
    all.extend(why_slow(view));
    all.extend(fluctuation(view));
    all.extend(more_threads(view));
    all.extend(pairs(view));
    all.extend(constructed(view));
    all
}

/// What the run says of the second thread's cost, contestant by contestant.
fn why_slow(view: &RunView<'_>) -> Option<Finding> {
    let facts: Vec<(&str, Facts)> = asked()
        .map(|name| (name, Facts::of(view, name)))
        .filter(|(_, facts)| facts.as_his.is_some())
        .collect();
    if facts.is_empty() {
        return None;
    }
    let parts: Vec<String> = Cause::ALL
        .into_iter()
        .filter_map(|cause| {
            let of = facts.iter().filter(|(_, f)| f.cause() == cause);
            let names: Vec<&str> = of.map(|(name, _)| *name).collect();
            (!names.is_empty()).then(|| format!("{}: {}", cause.words(), names.join(", ")))
        })
        .collect();
    let times =
        |e: Option<Estimate>| e.map_or(Value::Empty, |e| Value::Estimate(e, "x".to_owned()));
    let count = |n: Option<f64>| n.map_or(Value::Empty, |n| Value::Number(n, String::new()));
    let rows = facts.iter().map(|(name, f)| {
        vec![
            Value::Text((*name).to_owned()),
            times(f.as_his),
            times(f.apart),
            times(f.one_cpu),
            count(f.sleeps),
            count(f.preemptions),
            Value::Text(f.cause().words().to_owned()),
        ]
    });
    Some(Finding {
        table: Some(Table {
            title: "Time of two threads over the time of one, each with as many cycles".to_owned(),
            columns: [
                "allocator",
                "two CPUs",
                "pieces on lines of their own",
                "one CPU",
                "sleeps per million",
                "preemptions per million",
                "cause",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: rows.collect(),
            notes: vec!["On two CPUs 1 is perfect, on one CPU 2.".to_owned()],
            long: false,
        }),
        ..finding(
            "Why is the second thread the slowest: false sharing, the lock, or the CPUs?",
            MAIL,
            format!("{}.", parts.join("; ")),
        )
    })
}

/// What the summary says of the mail's question.
pub(super) fn answers(view: &RunView<'_>) -> Vec<ShortAnswer> {
    let over = |name: &&'static str| Some((*name, over_one(view, name, 2)?));
    let worst = HIS.iter().filter_map(over);
    let worst = worst.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let answer = worst.map(|(name, r)| {
        let says = if r.lo > 1.0 { "worst" } else { "no sure loss" };
        ShortAnswer::new(
            "Is a second thread slow?",
            format!("{says}: {name} {} of one", ratio(&r)),
        )
    });
    answer.into_iter().collect()
}

/// An object of 64 bytes, for the summary: in the cheapest of larder's forms.
pub(super) fn costs(view: &RunView<'_>) -> Vec<Cost> {
    let group = pair_group(64);
    let of = |names: &[&str]| best(view, &group, names, PAIR);
    let middle = |cell: Option<&Cell>| view.middle(&group, cell?, PAIR);
    let (ours, peer) = (of(&OURS), of(&PEERS));
    let verdict = ours
        .zip(peer)
        .map(|(a, b)| view.compare(&group, a, b, PAIR, Better::Lower).verdict);
    let cost = middle(ours).map(|larder| Cost {
        what: "object of 64 B".to_owned(),
        unit: "ns".to_owned(),
        larder: Some(larder),
        peer: peer.and_then(|cell| Some((cell.contestant.clone(), middle(Some(cell))?))),
        floor: None,
        verdict,
    });
    cost.into_iter().collect()
}

fn who_is_slowest(view: &RunView<'_>) -> Option<Finding> {
    let (mut slowest, mut not, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for name in asked() {
        match second_is_slowest(view, name) {
            Some(Slowest::Yes) => slowest.push(name.to_owned()),
            Some(Slowest::No) => not.push(name.to_owned()),
            Some(Slowest::Undecided(one, three)) => open.push(format!(
                "{name} ({} of one, {} of three)",
                ratio(&one),
                ratio(&three)
            )),
            None => {}
        }
    }
    if slowest.is_empty() && not.is_empty() && open.is_empty() {
        return None;
    }
    let mut answer = match slowest.as_slice() {
        [] => {
            "No contestant is surely slower with two threads together than with one and with three."
                .to_owned()
        }
        names => format!(
            "Two threads together are surely slower than one and than three with: {}.",
            names.join(", ")
        ),
    };
    for (what, names) in [("Surely not", not), ("Not decided", open)] {
        if !names.is_empty() {
            answer += &format!(" {what} with: {}.", names.join(", "));
        }
    }
    Some(finding(
        "Is the second thread always the slowest?",
        MAIL,
        answer,
    ))
}

/// "The values fluctuate by 1.5 seconds or more for more than 2 threads, while remaining fairly constant for the other 2."
fn fluctuation(view: &RunView<'_>) -> Option<Finding> {
    let spread = |threads| {
        let cell = second(view, "explicit-handle", threads, ("two", "his"))?;
        let m = view.moments(SECOND, cell, SECONDS)?;
        (m.mean > 0.0).then(|| 100.0 * m.sd / m.mean)
    };
    let (two, three) = (spread(2)?, spread(3)?);
    Some(finding(
        "Does the time fluctuate more with three threads than with two?",
        MAIL,
        format!(
            "explicit-handle: the standard deviation is {} % of the mean with 2 threads and {} % with 3. Its intervals are not known, and why it \
             differs is not tested.",
            short(two),
            short(three)
        ),
    ))
}

/// "The more threads that were used, the more efficient it became."
fn more_threads(view: &RunView<'_>) -> Option<Finding> {
    let most = counts_of_threads(view)
        .into_iter()
        .max()
        .filter(|n| *n > 2)?;
    let parts: Vec<String> = HIS
        .iter()
        .filter_map(|name| {
            let (many, two) = (by_threads(view, name, most)?, by_threads(view, name, 2)?);
            let r = view.ratio(super::plan::THREADS, many, two, RATE)?;
            Some(format!("{name} {}", ratio(&r)))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "Does it become more efficient the more threads there are?",
            MAIL,
            format!(
                "Cycles per second of {most} threads over those of 2: {}.",
                parts.join(", ")
            ),
        )
    })
}

/// The best peer at each size, and ours against it.
fn pairs(view: &RunView<'_>) -> Option<Finding> {
    let parts: Vec<String> = SIZES
        .iter()
        .filter_map(|&bytes| {
            let group = pair_group(bytes);
            let peer = best(view, &group, &PEERS, PAIR)?;
            let ns = view.middle(&group, peer, PAIR)?;
            let ours: String = against(view, &group, peer, PAIR);
            Some(format!(
                "{bytes} bytes: {} {} ns{ours}",
                peer.contestant,
                short(ns)
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        finding(
            "What does a block cost, there and back, from the fastest of today's allocators, and from a cache of its size?",
            "larder",
            format!("{}.", parts.join("; ")),
        )
    })
}

/// Ours as shares of a peer.
fn against(view: &RunView<'_>, group: &str, peer: &Cell, metric: &str) -> String {
    OURS.iter()
        .filter_map(|ours| {
            let cell = find(view, group, ours)?;
            let c = view.compare(group, cell, peer, metric, Better::Lower);
            let r = c.ratio?;
            Some(format!(
                ", {ours} {} of it ({})",
                ratio(&r),
                word(c.verdict)
            ))
        })
        .collect()
}

/// What a constructor adds.
fn constructed(view: &RunView<'_>) -> Option<Finding> {
    let peer = best(view, CONSTRUCTED, &PEERS, OBJECT)?;
    let ns = view.middle(CONSTRUCTED, peer, OBJECT)?;
    let alone = view.middle(CONSTRUCTED, peer, "constructor_ns")?;
    let ours = against(view, CONSTRUCTED, peer, OBJECT);
    Some(finding(
        "What does an object with a constructor cost where nobody keeps it constructed, and where somebody does?",
        "larder",
        format!(
            "{} {} ns, of which the constructor alone is {}{ours}.",
            peer.contestant,
            short(ns),
            short(alone)
        ),
    ))
}
