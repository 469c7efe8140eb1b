//! Parts of sweeps, two at a time: the bytes up to the first 0 are one, what follows is another.

use larder_sim::{Counts, Header, Line, Merger, Row, Tally, place, standing, write_part};

fn part(shard: u32, shards: u32, cells: usize) -> String {
    let header = Header {
        larder_sim_part: 1,
        plan: 7,
        shard,
        shards,
        cells,
    };
    let row = |cell: usize| Row {
        trace: "t".to_owned(),
        format: "txt".to_owned(),
        counts: Counts {
            uses: 9,
            ..Counts::default()
        },
        policy: ["lru", "opt", "2q"][cell % 3].to_owned(),
        size: cell / 3 + 1,
        asked: "1".to_owned(),
        tally: Tally {
            hits: cell as u64 % 9,
            misses: 9 - cell as u64 % 9,
            ..Tally::default()
        },
        disk: None,
    };
    let own = (shard as usize - 1..cells).step_by(shards as usize);
    let lines: Vec<Line> = own
        .map(|cell| Line {
            cell,
            row: row(cell),
        })
        .collect();
    write_part(&header, &lines).unwrap_or_default()
}

/// A whole sweep, a shard of one, two that belong together, and one that announces more than it has.
pub fn seeds() -> Vec<Vec<u8>> {
    let both = [part(1, 2, 4), "\0".to_owned(), part(2, 2, 4)].concat();
    let huge = part(1, 1, 1).replace("\"cells\":1", "\"cells\":9223372036854775807");
    [part(1, 1, 3), part(2, 3, 6), both, huge]
        .map(String::into_bytes)
        .into()
}

/// Merges what can be merged, and places what came of it.
pub fn check(data: &[u8]) {
    let at = data.iter().position(|&byte| byte == 0);
    let (first, second) = match at {
        Some(at) => (&data[..at], Some(&data[at + 1..])),
        None => (data, None),
    };
    let mut merger = Merger::default();
    for (name, part) in [("first", Some(first)), ("second", second)] {
        if let Some(part) = part
            && let Err(why) = merger.add(name, part)
        {
            assert!(why.starts_with(name), "{why}");
            return;
        }
    }
    let Ok(rows) = merger.finish() else {
        return;
    };
    // Each row has a line, so nothing was made of an announcement.
    assert!(rows.len() <= data.iter().filter(|&&byte| byte == b'{').count());
    for placed in place(&rows) {
        assert!((0.0..=100.0).contains(&placed.hit_percent));
    }
    let _ = standing(&place(&rows));
}
