//! What the compiler made of a function: its lines, the shortest path through it, and the atomic instructions on it.

use std::collections::HashSet;
use std::process::Command;

/// One line of a disassembly.
#[derive(Debug)]
pub(crate) struct Line {
    at: u64,
    text: String,
}

impl Line {
    /// Whether it stores a register where another one points.
    fn is_commit(&self) -> bool {
        let operands = self.text.strip_prefix("mov").map(str::trim);
        operands
            .and_then(|operands| operands.split_once(','))
            .is_some_and(|(from, to)| from.starts_with("%r") && to.starts_with("(%r"))
    }

    /// Whether it is atomic for all CPUs: by a prefix, or an exchange with memory, which needs none.
    fn is_atomic(&self) -> bool {
        let mut words = self.text.split_whitespace();
        words.any(|word| word == "lock") || (self.text.contains("xchg") && self.text.contains('('))
    }

    /// Where a jump leads.
    fn target(&self) -> Option<u64> {
        let (name, rest) = self.text.split_once(char::is_whitespace)?;
        name.starts_with('j')
            .then(|| u64::from_str_radix(rest.split_whitespace().next()?, 16).ok())?
    }
}

/// The shortest path through a function that makes no call and returns. With `section` it is one that commits a section: it
/// arms one (a store relative to `fs`) and stores the new top (the slot's first word, so nothing is added to its address).
pub(crate) fn straight_path(lines: &[Line], section: bool) -> Option<Vec<&Line>> {
    fn walk<'a>(
        lines: &'a [Line],
        i: usize,
        seen: &mut HashSet<usize>,
        armed: bool,
        committed: bool,
    ) -> Option<Vec<&'a Line>> {
        let line = lines.get(i)?;
        if !seen.insert(i) {
            return None;
        }
        let name = line.text.split_whitespace().next()?;
        let armed = armed || line.text.contains("%fs:");
        let committed = committed || (armed && line.is_commit());
        let to = |at: u64| lines.iter().position(|l| l.at == at);
        let rest = match (name, line.target()) {
            (name, _) if name.starts_with("ret") => committed.then_some(Vec::new()),
            (name, _) if name.starts_with("call") || name == "ud2" => None,
            ("jmp", target) => target
                .and_then(to)
                .and_then(|t| walk(lines, t, seen, armed, committed)),
            (_, Some(target)) => {
                let taken = to(target).and_then(|t| walk(lines, t, seen, armed, committed));
                let not = walk(lines, i + 1, seen, armed, committed);
                taken.into_iter().chain(not).min_by_key(Vec::len)
            }
            _ => walk(lines, i + 1, seen, armed, committed),
        };
        seen.remove(&i);
        // From the end to the beginning.
        rest.map(|mut rest| {
            rest.push(line);
            rest
        })
    }
    walk(lines, 0, &mut HashSet::new(), false, !section)
}

/// Instructions on the shortest path through a section: from the load of its descriptor's address to the commit. A path with
/// an atomic instruction does not count: a section needs none.
pub(crate) fn section(lines: &[Line]) -> Option<usize> {
    let to = |at: u64| lines.iter().position(|l| l.at == at);
    let armed = lines.iter().position(|l| l.text.contains("%fs:0x8"))?;
    let mut now = vec![armed.checked_sub(1)?];
    for steps in 1..=lines.len() {
        let mut next = Vec::new();
        for &i in &now {
            let Some(line) = lines.get(i) else { continue };
            if line.is_atomic() {
                continue;
            }
            if line.is_commit() {
                return Some(steps);
            }
            next.extend(line.target().and_then(to));
            let ends = ["jmp", "ret", "call"];
            if !ends.iter().any(|end| line.text.starts_with(end)) {
                next.push(i + 1);
            }
        }
        next.sort_unstable();
        next.dedup();
        now = next;
    }
    None
}

/// Lines of a disassembly as `objdump` prints it.
pub(crate) fn read(text: &str) -> Vec<Line> {
    text.lines()
        .filter_map(|line| {
            let (at, text) = line.split_once(":\t")?;
            let at = u64::from_str_radix(at.trim(), 16).ok()?;
            Some(Line {
                at,
                text: text.trim().to_owned(),
            })
        })
        .collect()
}

/// A function of this program.
pub(crate) fn disassembled(name: &str) -> Vec<Line> {
    let out = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", &format!("--disassemble={name}")])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let lines = read(&text);
    assert!(!lines.is_empty(), "{name} is not in the binary:\n{text}");
    lines
}

/// The atomic instructions on a path.
pub(crate) fn atomics<'a>(path: &[&'a Line]) -> Vec<&'a Line> {
    let path = path.iter().copied();
    path.filter(|line| line.is_atomic()).collect()
}

/// Compares the straight path of a function with a ceiling, and checks that no instruction on it is atomic.
pub(crate) fn path_takes(name: &str, lines: &[Line], section: bool, ceiling: usize) {
    let path = straight_path(lines, section)
        .unwrap_or_else(|| panic!("no straight way through {name}: {lines:#?}"));
    let straight = path.len();
    println!(
        "{name}: {straight} instructions on the straight path (ceiling {ceiling}), {} in all",
        lines.len()
    );
    assert!(straight > 4, "{name} does too little to be true: {path:#?}");
    assert!(
        straight <= ceiling,
        "{straight} instructions in {name}: {path:#?}"
    );
    let atomic = atomics(&path);
    assert!(atomic.is_empty(), "atomic in {name}: {atomic:?}");
}
