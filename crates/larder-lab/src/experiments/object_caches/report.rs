//! The sentences.

use crate::experiments::page_buffers::words::{ratio, short, word};
use crate::measure::RunView;
use crate::model::{Better, Cell, Finding};

use super::plan::{CONSTRUCTED, HIS, OURS, PEERS, SECOND, SIZES, asked, pair_group};
use super::rows::{OBJECT, PAIR, RATE, SECONDS, best, by_threads, counts_of_threads, find, second};
use super::second::{Facts, second_is_slowest};

const MAIL: &str = "the mail on magazines for Parrot";

fn finding(question: &str, asked_by: &str, answer: String) -> Finding {
    Finding {
        question: question.to_owned(),
        asked_by: asked_by.to_owned(),
        answer,
        verdict: None,
    }
}

/// Every sentence, his question first.
pub(super) fn findings(view: &RunView<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(who_is_slowest(view));
    for name in asked() {
        if let Some(answer) = Facts::of(view, name).sentence(name) {
            all.push(finding(
                "Why is the second thread the slowest: false sharing, the lock, or the CPUs?",
                MAIL,
                answer,
            ));
        }
    }
    all.extend(fluctuation(view));
    all.extend(more_threads(view));
    all.extend(pairs(view));
    all.extend(constructed(view));
    all
}

fn who_is_slowest(view: &RunView<'_>) -> Option<Finding> {
    let mut slowest = Vec::new();
    let mut not = Vec::new();
    for name in asked() {
        match second_is_slowest(view, name) {
            Some(true) => slowest.push(name),
            Some(false) => not.push(name),
            None => {}
        }
    }
    if slowest.is_empty() && not.is_empty() {
        return None;
    }
    let list = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    Some(finding(
        "Is the second thread always the slowest?",
        MAIL,
        format!(
            "Two threads together are slower than one and than three with: {}. They are not with: {}.",
            list(&slowest),
            list(&not)
        ),
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
    let why = if three > 2.0 * two {
        "The first two magazines are always pieces of one line; which pieces the third thread gets depends on whether it \
         or the first block comes first."
    } else {
        "Here it is not so: the third thread adds nothing to it."
    };
    Some(finding(
        "Why does the time fluctuate with more than two threads?",
        MAIL,
        format!(
            "explicit-handle: the standard deviation is {} % of the mean with 2 threads and {} % with 3. {why}",
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
