//! git: a history searched, printed and packed anew.

use std::fmt::Write;

use super::super::process::{Malloc, Output, Program, Shop, Step, commands};
use crate::experiments::scratch::tool;
use crate::model::Measures;

pub(super) const GIT: Program = Program {
    name: "git",
    about: "git: log with patches, grep, blame, and gc by one thread, over a history made for the purpose",
    tools: &["git"],
    lacks: || None,
    scale: 32,
    quick: true,
    run,
};

fn git(words: &[&str]) -> anyhow::Result<Step> {
    let null = "/dev/null";
    let at = [
        "-C",
        "repository",
        "-c",
        "pack.threads=1",
        "-c",
        "gc.auto=0",
    ];
    let all = [&at, words].concat();
    Ok(Step::new(tool("git")?, &all)
        .with("GIT_CONFIG_GLOBAL", null)
        .with("GIT_CONFIG_NOSYSTEM", "1")
        .with("GIT_PAGER", "cat"))
}

fn run(shop: &Shop, malloc: &Malloc) -> anyhow::Result<Measures> {
    let history = shop.write("history", &history(shop.scale))?;
    std::fs::create_dir(shop.path("repository"))?;
    let make = [
        git(&["init", "-q", "-b", "main", "."])?,
        git(&["fast-import", "--quiet"])?.reads(history),
        git(&["reset", "-q", "--hard", "main"])?,
    ];
    Malloc::default().run(shop, &make, &mut Output::default())?;
    let work = [
        git(&["log", "-p", "--stat", "--date=iso"])?,
        git(&["grep", "-n", "-E", "line [0-9]*7 of"])?,
        git(&["blame", "--line-porcelain", "file-3.txt"])?,
        git(&["gc", "--quiet", "--prune=now"])?,
        git(&["log", "--format=%H %s", "--name-status"])?,
    ];
    commands(shop, malloc, &work)
}

/// Forty commits for each unit of `scale`, each of which changes four of 24 files of 80 lines.
fn history(scale: usize) -> String {
    let (mut text, mut versions) = (String::new(), [0; 24]);
    for commit in 0..40 * scale {
        let message = format!("Change {commit}\n");
        let _ = write!(
            text,
            "commit refs/heads/main\ncommitter Nobody <nobody@example.org> {} +0000\ndata {}\n{message}",
            1_000_000_000 + 60 * commit,
            message.len()
        );
        let changed = 4.max(if commit == 0 { 24 } else { 0 });
        for k in 0..changed {
            let file = (commit * 7 + k * 5) % 24;
            versions[file] += 1;
            let body: String = (0..80)
                .map(|line| {
                    let version = (versions[file] + line * 3) / 9;
                    format!("line {line} of file {file}, as it was in version {version}\n")
                })
                .collect();
            let _ = write!(
                text,
                "M 644 inline file-{file}.txt\ndata {}\n{body}",
                body.len()
            );
        }
    }
    text.push_str("done\n");
    text
}
