//! The programs of mimalloc-bench as they are, from a folder that the user names, with the words that its own script gives them.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::super::process::{Malloc, Output, Program, SAID, SECONDS, Shop, Step, measures};
use crate::model::Measures;

/// Names the folder of mimalloc-bench, in which its own script built the programs.
pub(in super::super) const VARIABLE: &str = "LARDER_MIMALLOC_BENCH";

/// What the time of a program is.
#[derive(Debug, Clone, Copy)]
enum Time {
    /// From its start to its end.
    Wall,
    /// The number after these words in what it prints: it works for a fixed time and says the seconds that its work stands for.
    Said(&'static str),
    /// So many over the number after these words in what it prints.
    Over(f64, &'static str),
}

/// A program: its name, its file, its words (`N` is the number of CPUs, `2N` twice as many, `@` the folder), and its time.
macro_rules! program {
    ($name:literal, $file:literal, $words:literal, $time:expr, $same:literal) => {
        Program {
            name: concat!("bench-", $name),
            about: concat!("mimalloc-bench's ", $name, ", as it is"),
            tools: &[],
            lacks: || lacks(&folder()?, $file),
            scale: 1,
            quick: false,
            run: |shop, malloc| {
                let folder = folder().with_context(|| format!("{VARIABLE} names no folder"))?;
                run(shop, malloc, &folder, ($file, $words), $time, $same)
            },
        }
    };
}

/// Those that need nothing but malloc. The last word is whether the output is the same every time.
pub(in super::super) const ALL: [Program; 15] = [
    program!(
        "cfrac",
        "cfrac",
        "17545186520507317056371138836327483792789528",
        Time::Wall,
        true
    ),
    program!(
        "espresso",
        "espresso",
        "@/bench/espresso/largest.espresso",
        Time::Wall,
        true
    ),
    program!(
        "barnes",
        "barnes",
        "< @/bench/barnes/input",
        Time::Wall,
        false
    ),
    program!("alloc-test", "alloc-test", "N", Time::Wall, false),
    program!(
        "larson",
        "larson",
        "5 8 1000 5000 100 4141 N",
        Time::Said(" time: "),
        false
    ),
    program!(
        "larson-sized",
        "larson-sized",
        "5 8 1000 5000 100 4141 N",
        Time::Said(" time: "),
        false
    ),
    program!("sh6bench", "sh6bench", "2N", Time::Wall, false),
    program!("sh8bench", "sh8bench", "2N", Time::Wall, false),
    program!(
        "xmalloc-test",
        "xmalloc-test",
        "-w N -t 5 -s 64",
        Time::Said("rtime: "),
        false
    ),
    program!(
        "cache-thrash",
        "cache-thrash",
        "N 1000 1 2000000 N",
        Time::Wall,
        false
    ),
    program!(
        "cache-scratch",
        "cache-scratch",
        "N 1000 1 2000000 N",
        Time::Wall,
        false
    ),
    program!("malloc-large", "malloc-large", "", Time::Wall, false),
    program!("mstress", "mstress", "N 50 25", Time::Wall, false),
    program!(
        "rptest",
        "rptest",
        "N 0 1 2 500 1000 100 8 16000",
        Time::Over(2e6, "..."),
        false
    ),
    program!(
        "glibc-thread",
        "glibc-thread",
        "N",
        Time::Over(1e9, ""),
        false
    ),
];

/// The folder, if one is named. The programs start in another one.
pub(in super::super) fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from)?;
    named.canonicalize().ok().filter(|folder| folder.is_dir())
}

fn lacks(folder: &Path, file: &str) -> Option<String> {
    let path = folder.join("out/bench").join(file);
    (!path.is_file()).then(|| format!("{} is not built", path.display()))
}

fn run(
    shop: &Shop,
    malloc: &Malloc,
    folder: &Path,
    (file, words): (&str, &str),
    time: Time,
    same: bool,
) -> anyhow::Result<Measures> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let word = |word: &str| match word {
        "N" => cpus.to_string(),
        "2N" => (2 * cpus).to_string(),
        word => word.replacen('@', &folder.to_string_lossy(), 1),
    };
    let (words, input) = words
        .split_once("< ")
        .map_or((words, None), |(a, b)| (a, Some(b)));
    let words: Vec<String> = words.split_whitespace().map(word).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let step = Step::new(folder.join("out/bench").join(file), &words);
    let step = match input {
        Some(input) => step.reads(word(input).into()),
        None => step,
    };
    let mut output = Output::default();
    let spent = malloc.run(shop, &[step], &mut output)?;
    let said = std::fs::read_to_string(shop.path(SAID))?;
    // Times are never the same.
    let output = if same { output } else { Output::default() };
    let measures = measures(spent, output);
    let number = |after: &str| {
        let found = match after {
            "" => Some(&*said),
            // rptest prints a point for each round before it.
            after => said.rsplit_once(after).map(|(_, text)| text),
        };
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let found = found.map(|text| text.split(|c| !digits(c)).next().unwrap_or_default());
        let found = found
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|n| *n > 0.0);
        found.with_context(|| format!("{file} does not say its time"))
    };
    Ok(match time {
        Time::Wall => measures,
        Time::Said(after) => measures.with(SECONDS, number(after)?),
        Time::Over(count, after) => measures.with(SECONDS, count / number(after)?),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_get_the_words_of_their_script_and_say_their_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let bench = folder.path().join("out/bench");
        std::fs::create_dir_all(&bench).expect("a folder");
        assert!(lacks(folder.path(), "cfrac").is_some_and(|why| why.contains("not built")));
        let measured = |script: &str, words: &str, time: Time, same: bool| {
            let file = bench.join("program");
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a file");
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&file, all).expect("a file of ours");
            let shop = Shop::open(1).expect("room");
            let malloc = Malloc::default();
            run(
                &shop,
                &malloc,
                folder.path(),
                ("program", words),
                time,
                same,
            )
        };
        std::fs::write(folder.path().join("input"), "7").expect("a file");
        let checks = "[ \"$2\" -eq $((2 * $1)) ] && [ -f \"$3\" ] && [ \"$(cat)\" = 7 ]";
        let ran = measured(checks, "N 2N @/input < @/input", Time::Wall, true);
        assert!(ran.is_ok_and(|m| m.get(SECONDS) > Some(0.0)));
        let seconds = |said: &str, time: Time| {
            let ran = measured(&format!("echo '{said}'"), "", time, false);
            ran.ok().and_then(|m| m.get(SECONDS))
        };
        let larson = "Throughput = 5 operations per second, relative time: 1.25s.";
        assert_eq!(seconds(larson, Time::Said(" time: ")), Some(1.25));
        let rptest = "run........4000000 memory ops/CPU second";
        assert_eq!(seconds(rptest, Time::Over(2e6, "...")), Some(0.5));
        assert_eq!(seconds("500 iterations", Time::Over(1e3, "")), Some(2.0));
        assert_eq!(seconds("nothing", Time::Said(" time: ")), None);
    }
}
