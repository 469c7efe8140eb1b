//! Merges parts of a sweep into one result. A part is untrusted input: its first line is believed only as far as the length of the
//! file allows.

use std::collections::{BTreeMap, HashMap};

use super::part::{Header, Line};
use super::row::Row;

/// Most bytes of a part: a million cells and more.
pub const MOST_PART_BYTES: u64 = 1 << 30;

/// Merges parts: the rows in the order of the plan. It keeps what the parts contain, and reserves nothing for what they announce.
///
/// ```
/// use larder_sim::{Header, Line, Merger, Row, Tally, write_part};
///
/// let row = Row {
///     trace: "t".into(), format: "txt".into(), counts: Default::default(), policy: "lru".into(), size: 4, asked: "4".into(),
///     tally: Tally::default(), disk: None,
/// };
/// let header = Header { larder_sim_part: 1, plan: 7, shard: 1, shards: 1, cells: 1 };
/// let part = write_part(&header, &[Line { cell: 0, row: row.clone() }]).expect("rows are text");
/// let mut merger = Merger::default();
/// merger.add("part-1.jsonl", part.as_bytes())?;
/// assert_eq!(merger.finish()?, [row]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Default)]
pub struct Merger {
    plan: Option<(u64, usize)>,
    rows: BTreeMap<usize, Row>,
}

/// The lines of a part with their numbers from 1 and the bytes where they begin.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut next = 0;
    (1..).zip(text.split_inclusive('\n')).map(move |(n, line)| {
        let at = next;
        next += line.len();
        (n, at, line.trim_end_matches(['\n', '\r']))
    })
}

/// The error that serde found, with the byte of the file.
fn wrong(place: &str, at: usize, what: &str, why: &serde_json::Error) -> String {
    let byte = at + why.column().saturating_sub(1);
    let text = why.to_string();
    let why = text.split(" at line ").next().unwrap_or_default();
    format!("{place}, byte {byte}: {what}: {why}")
}

impl Merger {
    /// Adds a part, named for messages. O(n log n) in its lines, and no more memory than they take.
    ///
    /// # Errors
    /// A sentence with the line and the byte: no part, of another plan, a cell that is there twice or with another result, cut off.
    pub fn add(&mut self, name: &str, part: &[u8]) -> Result<(), String> {
        let text = core::str::from_utf8(part).map_err(|e| {
            let byte = e.valid_up_to();
            format!("{name}, byte {byte}: not UTF-8, so no part of a sweep, or a damaged one")
        })?;
        let mut rest = lines(text);
        let (_, _, first) = rest.next().unwrap_or_default();
        let header: Header = serde_json::from_str(first)
            .map_err(|e| wrong(&format!("{name}, line 1"), 0, "no part of a sweep", &e))?;
        if header.larder_sim_part != 1 {
            return Err(format!(
                "{name}: written by another version of larder (layout {})",
                header.larder_sim_part
            ));
        }
        let (shard, shards) = (header.shard as usize, header.shards as usize);
        if !(1..=shards).contains(&shard) {
            return Err(format!(
                "{name}, line 1: shard {shard} of {shards} cannot be; the part is damaged"
            ));
        }
        // Before anything is kept: is the file as long as its first line says?
        let wanted = header.cells / shards + usize::from(header.cells % shards >= shard);
        let own = lines(text).count() - 1;
        if own < wanted {
            return Err(format!(
                "{name}, byte {}: ends after {own} of its {wanted} cells; it is cut off",
                text.len()
            ));
        }
        match self.plan {
            Some(plan) if plan != (header.plan, header.cells) => {
                return Err(format!(
                    "{name}: belongs to another sweep (other traces, rules, sizes or options) than the parts before it"
                ));
            }
            _ => self.plan = Some((header.plan, header.cells)),
        }
        let mut before = None;
        for (n, at, line) in rest {
            let line: Line = serde_json::from_str(line)
                .map_err(|e| wrong(&format!("{name}, line {n}"), at, "no cell", &e))?;
            let place = format!("{name}, line {n}, byte {at}: cell {}", line.cell);
            if line.cell >= header.cells || line.cell % shards + 1 != shard {
                return Err(format!(
                    "{place} is none of shard {shard} of {shards} of {} cells",
                    header.cells
                ));
            }
            if before.is_some_and(|before| before >= line.cell) {
                return Err(format!("{place} is there twice or out of order"));
            }
            before = Some(line.cell);
            let tally = &line.row.tally;
            if tally.hits.checked_add(tally.misses) != Some(line.row.counts.uses) {
                return Err(format!(
                    "{place} has {} hits and {} misses of {} uses, which cannot be",
                    tally.hits, tally.misses, line.row.counts.uses
                ));
            }
            let there = self
                .rows
                .entry(line.cell)
                .or_insert_with(|| line.row.clone());
            if *there != line.row {
                return Err(format!(
                    "{place} was in an earlier part with another result"
                ));
            }
        }
        Ok(())
    }

    /// The rows, when all are there.
    ///
    /// # Errors
    /// A sentence that names missing cells, or traces that were not the same for all parts.
    pub fn finish(self) -> Result<Vec<Row>, String> {
        let cells = self.plan.map_or(0, |(_, cells)| cells);
        let missing = cells - self.rows.len();
        if missing > 0 {
            // Not all numbers up to the last: memory may not hold a list of them.
            let some: Vec<String> = (0..cells)
                .filter(|cell| !self.rows.contains_key(cell))
                .take(8)
                .map(|cell| cell.to_string())
                .collect();
            let more = if missing > 8 { ", …" } else { "" };
            return Err(format!(
                "{missing} of {cells} cells are missing ({}{more}); run their shards and merge again",
                some.join(", ")
            ));
        }
        let rows: Vec<Row> = self.rows.into_values().collect();
        let mut seen: HashMap<&str, &Row> = HashMap::new();
        for row in &rows {
            let first = seen.entry(&row.trace).or_insert(row);
            if first.counts != row.counts {
                return Err(format!(
                    "the parts did not read the same {}: its contents differ between machines",
                    row.trace
                ));
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Counts, Tally, write_part};
    use super::*;

    fn row(cell: usize) -> Row {
        Row {
            trace: "t".to_owned(),
            format: "txt".to_owned(),
            counts: Counts {
                uses: 100,
                ..Counts::default()
            },
            policy: "lru".to_owned(),
            size: cell + 1,
            asked: (cell + 1).to_string(),
            tally: Tally {
                hits: cell as u64,
                misses: 100 - cell as u64,
                ..Tally::default()
            },
            disk: None,
        }
    }

    fn part(shard: u32, shards: u32, cells: usize) -> String {
        let header = Header {
            larder_sim_part: 1,
            plan: 7,
            shard,
            shards,
            cells,
        };
        let own = (shard as usize - 1..cells).step_by(shards as usize);
        let lines: Vec<Line> = own
            .map(|cell| Line {
                cell,
                row: row(cell),
            })
            .collect();
        write_part(&header, &lines).unwrap()
    }

    fn refused(text: &str) -> String {
        let mut merger = Merger::default();
        let why = merger.add("p", text.as_bytes()).unwrap_err();
        assert!(merger.rows.len() < 20);
        why
    }

    #[test]
    fn parts_in_any_order_are_the_whole_and_what_is_missing_is_named() {
        let mut merger = Merger::default();
        for shard in [3, 1, 2, 1] {
            merger.add("p", part(shard, 3, 10).as_bytes()).unwrap();
        }
        let rows = merger.finish().unwrap();
        assert_eq!(rows, (0..10).map(row).collect::<Vec<_>>());
        let mut merger = Merger::default();
        merger.add("p", part(2, 3, 10).as_bytes()).unwrap();
        let why = merger.finish().unwrap_err();
        assert!(
            why.starts_with("7 of 10 cells are missing (0, 2, 3, 5, 6, 8, 9)"),
            "{why}"
        );
    }

    #[test]
    fn a_header_that_announces_more_than_the_file_has_costs_nothing() {
        let huge = part(1, 1, 2).replace("\"cells\":2", "\"cells\":18446744073709551615");
        let why = refused(&huge);
        assert!(
            why.contains("ends after 2 of its 18446744073709551615 cells"),
            "{why}"
        );
        assert!(
            why.starts_with(&format!("p, byte {}:", huge.len())),
            "{why}"
        );
        // With as many shards as cells, each has one, and only those that were added are kept.
        let sparse = part(1, 1, 1)
            .replace("\"cells\":1", "\"cells\":4000000000")
            .replace("\"shards\":1", "\"shards\":4000000000");
        let mut merger = Merger::default();
        merger.add("p", sparse.as_bytes()).unwrap();
        let why = merger.finish().unwrap_err();
        assert!(
            why.starts_with(
                "3999999999 of 4000000000 cells are missing (1, 2, 3, 4, 5, 6, 7, 8, …)"
            ),
            "{why}"
        );
    }

    #[test]
    fn damage_is_said_with_its_byte() {
        let good = part(1, 2, 4);
        let second = good.find('\n').unwrap() + 1;
        for (bad, said) in [
            (
                String::new(),
                "p, line 1, byte 0: no part of a sweep: EOF".to_owned(),
            ),
            (
                "{}".to_owned(),
                "p, line 1, byte 1: no part of a sweep: missing field".to_owned(),
            ),
            (
                good[..good.len() - 9].to_owned(),
                ": no cell: EOF while parsing".to_owned(),
            ),
            (
                good[..second].to_owned(),
                format!("byte {second}: ends after 0 of its 2 cells"),
            ),
            (
                good.replace("\"cell\":0", "\"cell\":x"),
                format!("p, line 2, byte {}:", second + 8),
            ),
            (
                good.replace("\"cell\":2", "\"cell\":1"),
                "cell 1 is none of shard 1 of 2 of 4 cells".to_owned(),
            ),
            (
                good.replace("\"cell\":2", "\"cell\":4"),
                "cell 4 is none of".to_owned(),
            ),
            (
                good.replace("\"cell\":2", "\"cell\":0"),
                "cell 0 is there twice".to_owned(),
            ),
            (
                good.replace("\"misses\":98", "\"misses\":18446744073709551615"),
                "which cannot be".to_owned(),
            ),
            (
                good.replace("\"shard\":1", "\"shard\":3"),
                "shard 3 of 2 cannot be".to_owned(),
            ),
            (
                good.replace("\"larder_sim_part\":1", "\"larder_sim_part\":2"),
                "layout 2".to_owned(),
            ),
        ] {
            assert_ne!(bad, good);
            let why = refused(&bad);
            assert!(why.contains(&said), "{why}\n{said}");
        }
        let mut torn = good.clone().into_bytes();
        torn[second + 3] = 0xff;
        let why = Merger::default().add("p", &torn).unwrap_err();
        assert!(
            why.starts_with(&format!("p, byte {}: not UTF-8", second + 3)),
            "{why}"
        );
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let mut merger = Merger::default();
        merger.add("p", part(1, 2, 4).as_bytes()).unwrap();
        let other = part(1, 2, 4).replace("\"size\":1", "\"size\":9");
        let why = merger.add("q", other.as_bytes()).unwrap_err();
        assert!(why.contains("with another result"), "{why}");
        let why = merger.add("q", part(2, 2, 5).as_bytes()).unwrap_err();
        assert!(why.contains("belongs to another sweep"), "{why}");
        let other = part(2, 2, 4).replace("\"uses\":100,\"writes\":0", "\"uses\":100,\"writes\":1");
        merger.add("q", other.as_bytes()).unwrap();
        let why = merger.finish().unwrap_err();
        assert!(why.contains("did not read the same t"), "{why}");
    }
}
