//! PostgreSQL: pgbench asks a server on a socket of its own; the server runs on the malloc under test, the clients on the system's.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use rustix::process::Signal;

use super::super::process::{Malloc, Output, Program, Shop, Spent, measures};
use super::server::Server;
use crate::experiments::scratch::{tool, which};
use crate::model::Measures;

pub(super) const POSTGRES: Program = Program {
    name: "postgres",
    about: "postgres on a local socket, asked by pgbench: four clients that read and change rows, and queries that sort and group them",
    tools: &["pgbench", "psql"],
    lacks: || {
        folder()
            .is_none()
            .then(|| "postgres and initdb are not installed".to_owned())
    },
    scale: 8,
    quick: false,
    run,
};

/// The user that has no rights: a server does not run as root.
const NOBODY: u32 = 65_534;

/// Of the server: nothing waits for the disk, and no work is begun by a clock.
const OPTIONS: &str = "-c listen_addresses= -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c autovacuum=off -c shared_buffers=32MB -c jit=off -c max_parallel_workers_per_gather=0 -c checkpoint_timeout=1h";

/// What is asked at the end: the same with every malloc, in whatever order the clients came.
const QUESTIONS: &str = "select count(*), sum(abalance) from pgbench_accounts; \
     select bid, count(*), sum(delta) from pgbench_history group by bid order by bid; \
     select md5(string_agg(aid || ':' || abalance, ',' order by abalance, aid)) from pgbench_accounts;";

/// The folder of the server's programs, which distributions keep out of PATH: the newest.
fn folder() -> Option<PathBuf> {
    let is_whole = |folder: &Path| {
        ["postgres", "initdb"]
            .iter()
            .all(|name| folder.join(name).is_file())
    };
    let path = which("postgres").and_then(|path| Some(path.parent()?.to_owned()));
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    versions.sort();
    let newest = versions.into_iter().rev().map(|(_, path)| path);
    path.into_iter()
        .chain(newest)
        .find(|folder| is_whole(folder))
}

/// The command as a user that the server accepts.
fn humbly(mut command: Command) -> Command {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn run(shop: &Shop, malloc: &Malloc) -> anyhow::Result<Measures> {
    let folder = folder().context("postgres and initdb are not installed")?;
    let server = folder.join("postgres");
    malloc.check(shop, &server)?;
    if rustix::process::geteuid().is_root() {
        chown(shop.folder(), Some(NOBODY), Some(NOBODY))
            .context("its folder cannot be given away")?;
    }
    let mut make = humbly(Malloc::default().command(shop, &folder.join("initdb")));
    let words = "-D data -U larder -A trust -E UTF8 --locale=C --no-sync";
    make.args(words.split(' '));
    said(make)?;
    ask(shop, &server, malloc)
}

fn ask(shop: &Shop, server: &Path, malloc: &Malloc) -> anyhow::Result<Measures> {
    let mut command = humbly(malloc.command(shop, server));
    command
        .args(["-D", "data", "-k"])
        .arg(shop.folder())
        .args(OPTIONS.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let server = Server::start(command, &shop.path(".s.PGSQL.5432"))?;
    // It listens before it answers.
    client(
        shop,
        "pgbench",
        &["-i", "-q", "-s", "1", "--init-steps=dtgp"],
    )?;

    let begin = Instant::now();
    let count = (100 * shop.scale).to_string();
    let words = ["-n", "-c", "4", "--random-seed=1", "-t", &count];
    client(shop, "pgbench", &words)?;
    let mut output = Output::default();
    output.add(&client(shop, "psql", &["-X", "-A", "-t", "-c", QUESTIONS])?);
    let seconds = begin.elapsed().as_secs_f64();

    // Its way to end without waiting for anything but its own processes.
    server.signal(Signal::INT);
    let spent = server.end()?;
    Ok(measures(Spent { seconds, ..spent }, output))
}

/// What a client on the system's malloc says.
fn client(shop: &Shop, name: &str, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = Malloc::default().command(shop, &tool(name)?);
    command
        .env("PGHOST", shop.folder())
        .env("PGUSER", "larder")
        .env("PGDATABASE", "postgres");
    command.args(words);
    said(command)
}

fn said(mut command: Command) -> anyhow::Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    let complaint = String::from_utf8_lossy(&said.stderr);
    ensure!(
        said.status.success(),
        "{name} ended with {}: {}",
        said.status,
        complaint.lines().next_back().unwrap_or("it said nothing")
    );
    Ok(said.stdout)
}
