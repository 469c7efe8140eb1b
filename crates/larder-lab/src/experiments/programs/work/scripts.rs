//! Interpreters: Python, Perl, Ghostscript and SQLite, each with a script that is in `inputs`.

use std::path::PathBuf;

use anyhow::Context;

use super::super::process::{Malloc, Program, Shop, Step, commands};
use crate::experiments::scratch::{tool, which};
use crate::model::Measures;

const OBJECTS: &str = include_str!("inputs/objects.py");
const SQLITE_PY: &str = include_str!("inputs/sqlite.py");

/// As users run it: objects of up to 512 bytes come from Python's own pools, only the pools from malloc.
pub(super) const PYTHON: Program = Program {
    name: "python-objects",
    about: "python3: dictionaries, lists, tuples and instances made, sorted, dumped as JSON and read again",
    tools: &["python3"],
    lacks: || None,
    scale: 12,
    quick: true,
    run: |shop, malloc| python(shop, malloc, OBJECTS, "pymalloc"),
};

/// The same with every object from malloc.
pub(super) const PYTHON_MALLOC: Program = Program {
    name: "python-malloc",
    about: "the same with PYTHONMALLOC=malloc: every object is a block of malloc's",
    run: |shop, malloc| python(shop, malloc, OBJECTS, "malloc"),
    ..PYTHON
};

/// Blocks that are too large for Python's pools.
pub(super) const PYTHON_TEXT: Program = Program {
    name: "python-text",
    about: "python3: texts of some kilobytes joined, split, searched and compressed",
    scale: 36,
    run: |shop, malloc| python(shop, malloc, include_str!("inputs/text.py"), "pymalloc"),
    ..PYTHON
};

/// Hashes, arrays of arrays, sorting and patterns.
pub(super) const PERL: Program = Program {
    name: "perl",
    about: "perl: words counted in hashes, arrays of arrays sorted, patterns replaced in texts",
    tools: &["perl"],
    run: |shop, malloc| {
        let file = shop.write("work.pl", include_str!("inputs/work.pl"))?;
        let words = [&*file.to_string_lossy(), &shop.scale.to_string()];
        let step = Step::new(tool("perl")?, &words).with("PERL_HASH_SEED", "0");
        commands(shop, malloc, &[step])
    },
    ..PYTHON
};

/// Pages of curves and text drawn as pixels.
pub(super) const GHOSTSCRIPT: Program = Program {
    name: "ghostscript",
    about: "gs: pages of curves, clipped patterns and text, as an image and as PDF",
    tools: &["gs"],
    scale: 4,
    run: |shop, malloc| {
        let pages = include_str!("inputs/work.ps").replace("PAGES", &shop.scale.to_string());
        let file = shop.write("work.ps", &pages)?;
        let file = file.to_string_lossy();
        let draw = |device: &str, result: &str| -> anyhow::Result<Step> {
            let (device, out) = (
                format!("-sDEVICE={device}"),
                format!("-sOutputFile={result}"),
            );
            let common = ["-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-r100"];
            let words = [&common[..], &[&device, &out, &file]].concat();
            Ok(Step::new(tool("gs")?, &words))
        };
        // A PDF has the time and a random name in it.
        let image = draw("ppmraw", "work.ppm")?.makes(shop.path("work.ppm"));
        commands(shop, malloc, &[image, draw("pdfwrite", "work.pdf")?])
    },
    ..PYTHON
};

/// A table filled, indexed, joined, grouped and changed, in memory.
pub(super) const SQLITE: Program = Program {
    name: "sqlite",
    about: "sqlite3, or python3's sqlite3: rows inserted, indexed, joined, grouped and deleted, in memory",
    tools: &[],
    lacks: || {
        (which("sqlite3").is_none() && which("python3").is_none())
            .then(|| "neither sqlite3 nor python3 is installed".to_owned())
    },
    run: |shop, malloc| sqlite(shop, malloc, ":memory:"),
    ..PYTHON
};

/// In a file.
pub(super) const SQLITE_FILE: Program = Program {
    name: "sqlite-file",
    about: "the same in a file, without waiting for the disk",
    quick: false,
    run: |shop, malloc| sqlite(shop, malloc, "work.db"),
    ..SQLITE
};

fn python(shop: &Shop, malloc: &Malloc, script: &str, own: &str) -> anyhow::Result<Measures> {
    let file = shop.write("work.py", script)?;
    let words = ["-S", &file.to_string_lossy(), &shop.scale.to_string()];
    let step = Step::new(interpreter(shop)?, &words)
        .with("PYTHONMALLOC", own)
        .with("PYTHONHASHSEED", "0");
    commands(shop, malloc, &[step])
}

fn sqlite(shop: &Shop, malloc: &Malloc, database: &str) -> anyhow::Result<Measures> {
    let script = shop.write("work.sql", &sql(shop.scale))?;
    let step = match which("sqlite3") {
        Some(program) => Step::new(program, &["-batch", database]).reads(script),
        None => by_python(shop, database)?,
    };
    commands(shop, malloc, &[step])
}

/// What `sqlite3 DATABASE < work.sql` does.
fn by_python(shop: &Shop, database: &str) -> anyhow::Result<Step> {
    let file = shop.write("work.py", SQLITE_PY)?;
    let words = ["-S", &*file.to_string_lossy(), database];
    Ok(Step::new(interpreter(shop)?, &words))
}

/// One statement to a line.
fn sql(scale: usize) -> String {
    include_str!("inputs/work.sql").replace("ROWS", &(10_000 * scale).to_string())
}

/// The interpreter itself: what PATH has may be a script that looks for it.
fn interpreter(shop: &Shop) -> anyhow::Result<PathBuf> {
    let said = Malloc::default()
        .command(shop, &tool("python3")?)
        .args(["-c", "import sys; print(sys.executable)"])
        .env("HOME", std::env::var_os("HOME").unwrap_or_default())
        .output()
        .context("python3 cannot be run")?;
    let path = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    anyhow::ensure!(!path.is_empty(), "python3 does not say where it is");
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use super::super::super::process::Output;
    use super::*;

    #[test]
    fn both_ways_say_the_same() {
        if which("sqlite3").is_none() || which("python3").is_none() {
            eprintln!("skipped: sqlite3 and python3 are not both installed");
            return;
        }
        let shop = Shop::open(1).expect("room");
        let script = shop.write("work.sql", &sql(1)).expect("written");
        let own =
            Step::new(which("sqlite3").expect("there"), &["-batch", ":memory:"]).reads(script);
        let python = by_python(&shop, ":memory:").expect("there");
        let numbers = [own, python].map(|step| {
            let mut output = Output::default();
            Malloc::default()
                .run(&shop, &[step], &mut output)
                .expect("runs");
            output.number()
        });
        assert_eq!(numbers[0], numbers[1]);
    }
}
