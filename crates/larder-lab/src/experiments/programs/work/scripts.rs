//! Interpreters and their like, each with a script that is in `inputs`.

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

/// Objects on V8's own heap, buffers and compression from malloc.
pub(super) const NODE: Program = Program {
    name: "node",
    about: "node: maps, JSON, buffers and compression",
    tools: &["node"],
    scale: 8,
    quick: false,
    run: |shop, malloc| {
        script(
            shop,
            malloc,
            "node",
            &[],
            "work.js",
            include_str!("inputs/work.js"),
        )
    },
    ..PYTHON
};

/// Objects from Ruby's own slots, what is longer from malloc.
pub(super) const RUBY: Program = Program {
    name: "ruby",
    about: "ruby: words counted in hashes, arrays sorted, patterns replaced, strings kept",
    tools: &["ruby"],
    scale: 8,
    quick: false,
    run: |shop, malloc| {
        let first = ["--disable-gems"];
        script(
            shop,
            malloc,
            "ruby",
            &first,
            "work.rb",
            include_str!("inputs/work.rb"),
        )
    },
    ..PYTHON
};

/// Without php.ini: its modules may be opened with `RTLD_DEEPBIND`, which passes by a preloaded malloc.
pub(super) const PHP: Program = Program {
    name: "php",
    about: "php -n with USE_ZEND_ALLOC=0: arrays, objects, patterns and strings, every one a block of malloc's",
    tools: &["php"],
    scale: 12,
    quick: false,
    run: |shop, malloc| {
        let file = shop.write("work.php", include_str!("inputs/work.php"))?;
        let words = ["-n", &*file.to_string_lossy(), &shop.scale.to_string()];
        let step = Step::new(tool("php")?, &words).with("USE_ZEND_ALLOC", "0");
        commands(shop, malloc, &[step])
    },
    ..PYTHON
};

/// Strings, hash tables and buffers by Emacs' interpreter.
pub(super) const EMACS: Program = Program {
    name: "emacs",
    about: "emacs --batch: words counted in a hash table, sorted, and replaced in a buffer",
    tools: &["emacs"],
    scale: 2,
    quick: false,
    run: |shop, malloc| {
        let text = include_str!("inputs/work.el").replace("SCALE", &shop.scale.to_string());
        let file = shop.write("work.el", &text)?;
        let words = ["--batch", "-Q", "-l", &*file.to_string_lossy()];
        commands(shop, malloc, &[Step::new(tool("emacs")?, &words)])
    },
    ..PYTHON
};

/// The compiler of Java, which is a program of Java's, and what it compiled.
pub(super) const JAVA: Program = Program {
    name: "java",
    about: "javac and java: a source compiled and run, with maps, direct buffers and compression",
    tools: &["javac", "java"],
    scale: 3,
    quick: false,
    run: |shop, malloc| {
        let file = shop.write("Work.java", include_str!("inputs/Work.java"))?;
        let compile = Step::new(tool("javac")?, &["-d", ".", &file.to_string_lossy()]);
        // More collectors' threads than CPUs measure the scheduler.
        let words = [
            "-XX:+UseSerialGC",
            "-cp",
            ".",
            "Work",
            &shop.scale.to_string(),
        ];
        commands(shop, malloc, &[compile, Step::new(tool("java")?, &words)])
    },
    ..PYTHON
};

/// Erlang's processes, maps and binaries from its own carriers.
pub(super) const ERLANG: Program = Program {
    name: "erlang",
    about: "erl: a module compiled and run, with processes, maps, lists and binaries",
    tools: &["erl"],
    scale: 8,
    quick: false,
    run: |shop, malloc| {
        shop.write("work.erl", include_str!("inputs/work.erl"))?;
        let scale = shop.scale;
        let run = format!("{{ok,_}}=compile:file(work),work:main({scale}),halt().");
        let words = ["+S", "1:1", "-noshell", "-eval", &run];
        commands(shop, malloc, &[Step::new(tool("erl")?, &words)])
    },
    ..PYTHON
};

/// Pictures drawn, scaled and encoded by one thread.
pub(super) const FFMPEG: Program = Program {
    name: "ffmpeg",
    about: "ffmpeg: a test picture of some seconds scaled and encoded as MPEG-4",
    tools: &["ffmpeg"],
    scale: 6,
    quick: false,
    run: |shop, malloc| {
        let source = format!("testsrc2=size=320x240:rate=25:duration={}", shop.scale);
        let first = "-v error -nostdin -filter_threads 1 -f lavfi -i";
        let rest = "-vf scale=480:360 -threads 1 -c:v mpeg4 -q:v 5 -fflags +bitexact -flags:v +bitexact out.avi";
        let words = first.split(' ').chain([&*source]).chain(rest.split(' '));
        let step = Step::new(tool("ffmpeg")?, &words.collect::<Vec<_>>());
        commands(shop, malloc, &[step.makes(shop.path("out.avi"))])
    },
    ..PYTHON
};

/// A script with the scale as its argument.
fn script(
    shop: &Shop,
    malloc: &Malloc,
    program: &str,
    first: &[&str],
    name: &str,
    text: &str,
) -> anyhow::Result<Measures> {
    let file = shop.write(name, text)?;
    let last = [&*file.to_string_lossy(), &shop.scale.to_string()];
    let words = [first, &last].concat();
    commands(shop, malloc, &[Step::new(tool(program)?, &words)])
}

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
