//! The tables: the mail's in its layout with its numbers beside as shapes, and those of the other groups.

use super::contestants::{INSTRUCTIONS, LOOP};
use super::goals::{best_preloaded, counted, malloc_name};
use super::loops::{BURST, COUNTED};
use super::plan::{
    AS_MAIL, CONSTRUCTED, CPU, DEPOT, DEPOT_THREADS, DESTROY, ENDED, HELD, OBJECT, OURS, PAIR,
    RATE, RETURNED, SECONDS, SIZES, SLEEPS, STACKS, THREADS, asked, of_size,
};
use super::second::second;
use crate::contestants::heaps::PRELOADED;
use crate::experiments::allocators::PEERS;
use crate::frame::{At, Column, Results, grid, listing, number, text};
use crate::model::{Block, Section, Table, Value};
use crate::published;

/// What stands in a column of a table by threads, with what the mail has of it beside.
#[derive(Clone, Copy)]
enum Show {
    Time,
    Rate,
    OverOne,
}

/// Title, columns (heading, contestant, what of it) and note of a table by threads.
type ByThreads<'s> = (&'s str, &'s [(&'s str, &'s str, Show)], &'s str);

const BY_THREADS: [ByThreads<'_>; 3] = [
    (
        "Run time for ten million cycles of each thread: arrays indexed by thread",
        &[
            ("multiplier 16 (pad)", "hashed-16", Show::Time),
            ("multiplier 2", "hashed-2", Show::Time),
            ("mutexes, multiplier 16", "hashed-mutex", Show::Time),
        ],
        "In 2001: two Celerons of 466 MHz. Compare shapes, not times. Blocks have 4 bytes, side by side in the slab.",
    ),
    (
        "Run time for ten million cycles of each thread: the attached program",
        &[
            ("explicit handle", "explicit-handle", Show::Time),
            ("rate", "explicit-handle", Show::Rate),
            ("MyGlobalAlloc", "global-locked", Show::Time),
        ],
        "Blocks are the 100 bytes of the attached program.",
    ),
    (
        "The same as ratios: time of n threads over the time of one",
        &[
            ("multiplier 16", "hashed-16", Show::OverOne),
            ("multiplier 2", "hashed-2", Show::OverOne),
            ("mutexes", "hashed-mutex", Show::OverOne),
            ("explicit handle", "explicit-handle", Show::OverOne),
        ],
        "On two CPUs n/2 is perfect.",
    ),
];

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let mails = BY_THREADS.map(|(title, columns, note)| {
        by_threads(results, title, columns.iter().copied()).noted(note)
    });
    // The quick form has malloc alone, which stands in the mail's tables.
    let is_whole = !results.present(THREADS, &OURS).is_empty();
    let names = OURS.into_iter().chain(PEERS).chain([PRELOADED]);
    let names = names.filter(|_| is_whole);
    let names = names.map(|name| (name, name, Show::Rate));
    let rates = by_threads(results, "Million cycles per second of all threads", names);
    let pairs = SIZES.map(|bytes| {
        let title = format!("{bytes} bytes: allocate, write one int, free");
        by_cost(results, &of_size("pair", bytes), PAIR, title, None)
    });
    let title = "An object of 256 bytes with a constructor of some 100 ns".to_owned();
    let constructed = by_cost(results, CONSTRUCTED, OBJECT, title, None);
    let preloaded = SIZES.map(|bytes| {
        let group = of_size("preloaded", bytes);
        let title = format!("{bytes} bytes: malloc, write one int, free");
        let best = best_preloaded(results, &group);
        by_cost(results, &group, PAIR, title, best)
    });
    [
        (
            "The mail's tables",
            [&mails[..], &[single(results), fluctuation(results)]].concat(),
        ),
        ("Today's allocators in the mail's loop", vec![rates]),
        (
            "One thread, one size",
            [&pairs[..], &[constructed]].concat(),
        ),
        ("Preloaded", preloaded.to_vec()),
        ("The depot", vec![depot(results)]),
        ("The end of a heap", vec![ends(results)]),
        ("The end of a burst", vec![bursts(results)]),
        ("Instructions", vec![instructions(results)]),
    ]
    .map(|(title, tables)| Section {
        title: title.to_owned(),
        blocks: tables.into_iter().map(Block::Table).collect(),
    })
    .into()
}

/// What the published tables call a contestant.
fn mails_name(contestant: &str) -> &'static str {
    match contestant {
        "hashed-16" => "padded16",
        "hashed-2" => "padded2",
        "hashed-mutex" => "mutex_padded16",
        "explicit-handle" => "explicit_handle",
        "unlocked-stack" => "unlocked_stack",
        "locked-stack" => "mutex_stack",
        "malloc" => "glibc_or_perl5_with_pthreads",
        _ => "",
    }
}

fn in_mail(contestant: &str, threads: i64) -> Option<&'static published::MagazineThreads> {
    let mut rows = published::magazine_threads().iter();
    rows.find(|row| row.variant == mails_name(contestant) && i64::from(row.threads) == threads)
}

/// What was measured, or what stands in the mail; the mail's numbers stand only beside measured ones.
fn shown(results: &Results<'_>, contestant: &str, n: i64, show: Show, mail: bool) -> Option<Value> {
    let cell = |n| results.find(THREADS, contestant, &[("threads", n)]);
    let at = cell(n)?;
    let published = |value: f64, unit: &str| Value::Published(value, unit.to_owned());
    Some(match (show, mail) {
        (Show::Time, false) => at.value(SECONDS),
        (Show::Rate, false) => at.value(RATE),
        (Show::OverOne, false) => {
            let r = at.ratio(&cell(1)?, SECONDS)?;
            Value::Estimate(r, "x".to_owned())
        }
        (Show::Time, true) => published(in_mail(contestant, n)?.elapsed_s, "s"),
        (Show::Rate, true) => published(in_mail(contestant, n)?.mcycles_s?, "Mc/s"),
        (Show::OverOne, true) => {
            let ratio = in_mail(contestant, n)?.elapsed_s / in_mail(contestant, 1)?.elapsed_s;
            // As exact as the mail's numbers are.
            published((100.0 * ratio).round() / 100.0, "x")
        }
    })
}

fn by_threads<'n>(
    results: &Results<'_>,
    title: &str,
    columns: impl IntoIterator<Item = (&'n str, &'n str, Show)>,
) -> Table {
    let counts = results.values(THREADS, "threads").into_iter();
    let rows = counts
        .filter(|n| (1..=64).contains(n))
        .map(|n| (n, Value::Count(n)));
    let columns = columns.into_iter().flat_map(|(heading, name, show)| {
        let headings = [(false, heading), (true, "in 2001")];
        headings.map(|(mail, heading)| ((name, show, mail), heading.to_owned()))
    });
    grid(
        title,
        "threads",
        rows,
        columns,
        |threads, (name, show, mail)| {
            shown(results, name, *threads, *show, *mail).unwrap_or(Value::Empty)
        },
    )
}

fn single(results: &Results<'_>) -> Table {
    let names = STACKS.into_iter().chain(["malloc"]);
    let cells = names.filter_map(|name| results.find(THREADS, name, &[("threads", 1)]));
    let in_mail = |at: &At<'_, '_>| {
        let mut rows = published::magazine_single().iter();
        let row = rows.find(|row| row.variant == mails_name(at.name()));
        row.map_or(Value::Empty, |r| {
            Value::Published(r.mcycles_s, "Mc/s".to_owned())
        })
    };
    let columns = vec![
        Column::contestant("allocator"),
        Column::metric("rate", RATE),
        Column::by("in 2001", in_mail),
    ];
    listing("One thread: million cycles per second", cells, columns).noted(
        "malloc of 2001 was glibc's, linked with -lpthread. All threads here are beside the main thread, so that glibc takes its \
         locks as it does in a program with threads.",
    )
}

/// "The values fluctuate by 1.5 seconds or more for more than 2 threads, while remaining fairly constant for the other 2."
fn fluctuation(results: &Results<'_>) -> Table {
    let spread = |name: &str, threads| {
        let at = second(results, name, threads, AS_MAIL)?;
        let m = results.view.moments(at.group, at.cell, SECONDS)?;
        (m.mean > 0.0).then(|| 100.0 * m.sd / m.mean)
    };
    grid(
        "How the times fluctuate: their standard deviation, in % of the mean",
        "allocator",
        asked().map(|name| (name, text(name))),
        [1, 2, 3].map(|n| (n, format!("{n} threads"))),
        |name, threads| number(spread(name, *threads)),
    )
}

/// The contestants of a group by ascending cost, against the best peer.
fn by_cost(
    results: &Results<'_>,
    group: &str,
    metric: &str,
    title: String,
    peer: Option<At<'_, '_>>,
) -> Table {
    let peer = peer.or_else(|| results.best(group, &PEERS, &[], metric));
    let name = |at: &At<'_, '_>| match at.text("library") {
        Some(library) => text(format!("{} {library}", at.name())),
        None => text(at.name()),
    };
    let columns = vec![
        Column::by("allocator", name),
        Column::metric("CPU time", metric),
        Column::middle("the constructor alone", "constructor_ns"),
        Column::against("of the best peer", peer, metric),
        Column::metric("held", "held_bytes"),
    ];
    let table = listing(title, results.ranked(group, metric), columns);
    match peer {
        Some(peer) => table.noted(&format!("The best peer is {}.", malloc_name(&peer))),
        None => table,
    }
}

fn depot(results: &Results<'_>) -> Table {
    let metrics = [(CPU, "ns", "CPU time"), (SLEEPS, "", "sleeps per million")];
    let columns = metrics.into_iter().flat_map(|(metric, unit, heading)| {
        DEPOT_THREADS.map(|n| ((metric, unit, n), format!("{n} threads, {heading}")))
    });
    let names = OURS.into_iter().chain(PEERS);
    grid(
        format!("{BURST} blocks of 64 bytes taken, then freed: for each block"),
        "allocator",
        names.map(|name| (name, text(name))),
        columns,
        |name, (metric, unit, threads)| {
            let cell = results.find(DEPOT, name, &[("threads", *threads)]);
            let middle = cell.and_then(|at| at.middle(metric));
            middle.map_or(Value::Empty, |v| Value::Number(v, (*unit).to_owned()))
        },
    )
}

fn ends(results: &Results<'_>) -> Table {
    let like = |at: &At<'_, '_>, name| {
        let size = ["classes", "objects"].map(|f| (f, at.int(f).unwrap_or(-1)));
        results.find(DESTROY, name, &size)
    };
    let end = |heading, name, metric| {
        Column::by(heading, move |at| {
            like(at, name).map_or(Value::Empty, |cell| cell.value(metric))
        })
    };
    let whole_over_freed = |at: &At<'_, '_>| {
        let c = like(at, "private-heap")?.compare(&like(at, "private-freed")?, ENDED);
        Some(Value::Ratio(c.ratio?, c.verdict))
    };
    let mut cells: Vec<At<'_, '_>> = results.all(DESTROY).collect();
    let size = |at: &At<'_, '_>| (at.int("objects"), at.int("classes"));
    cells.sort_by_key(size);
    cells.dedup_by_key(|at| size(at));
    let columns = vec![
        Column::factor("live objects", "objects"),
        Column::factor("classes", "classes"),
        end("private, whole", "private-heap", ENDED),
        end("private, one by one", "private-freed", ENDED),
        end("shared, one by one", "heap", ENDED),
        end("mimalloc's, whole", "mimalloc-heap", ENDED),
        end("malloc, one by one", "malloc", ENDED),
        end("shared, drop alone", "heap", "drop_ns"),
        end("handles of caches", "cache-handles", ENDED),
        Column::by("whole over one by one", |at| {
            whole_over_freed(at).unwrap_or(Value::Empty)
        }),
    ];
    listing("The end of one heap", cells, columns)
        .noted("The classes are the smallest ones; an interpreter with 300 caches is one with a handle of each of 300 object caches.")
        .noted("Objects are freed in the order in which they were taken. Each class has one, the eight smallest have the rest.")
}

fn bursts(results: &Results<'_>) -> Table {
    let waited = |at: &At<'_, '_>| {
        let interval = at.int("interval_ms").unwrap_or(0) as f64;
        let waited = interval * f64::from(super::held::INTERVALS) / 1000.0;
        Value::Number(waited, "s".to_owned())
    };
    let columns = vec![
        Column::contestant("allocator"),
        Column::factor("calls meanwhile", "calls"),
        Column::by("waited", waited),
        Column::metric("share returned", RETURNED),
        Column::metric("at once", "returned_at_once"),
        Column::metric("held", "held_bytes"),
    ];
    let cells = results.ranked(HELD, RETURNED);
    let title = "What is back with the system after a burst was freed";
    listing(title, cells, columns)
        .noted("heap and global without calls have their thread on, with calls they have none.")
}

fn instructions(results: &Results<'_>) -> Table {
    let alone = counted(results, LOOP);
    let without = |at: &At<'_, '_>| {
        let all = at.middle(INSTRUCTIONS).zip(alone);
        all.map_or(Value::Empty, |(all, alone)| {
            Value::Number(all - alone, String::new())
        })
    };
    let columns = vec![
        Column::factor("allocator", "allocator"),
        Column::middle("with the loop", INSTRUCTIONS),
        Column::by("without", without),
    ];
    let title = format!("Instructions of a block of {COUNTED} bytes there and back, by one thread");
    listing(title, results.all(INSTRUCTIONS), columns).noted(
        "Differences of two runs under callgrind. The size is known when the loop is compiled. Valgrind has no restartable sequences, \
         so what takes them is not here: its instructions are counted in the disassembly, where the library is tested \
         (tests/instructions.rs).",
    )
}
