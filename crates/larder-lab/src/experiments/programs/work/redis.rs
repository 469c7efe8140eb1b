//! Redis: redis-benchmark asks a server on a socket of its own; the server runs on the malloc under test, the client on the system's.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::super::process::{Malloc, Output, Program, Shop, Spent, measures};
use super::server::Server;
use crate::experiments::scratch::tool;
use crate::model::Measures;

pub(super) const REDIS: Program = Program {
    name: "redis",
    about: "redis-server on a local socket, asked by redis-benchmark: set, get, lpush, lpop, sadd, hset, zadd, mset",
    tools: &["redis-server", "redis-benchmark", "redis-cli"],
    lacks: || None,
    scale: 4,
    quick: true,
    run,
};

const SOCKET: &str = "redis.sock";

/// Of the server; the empty word after `--save` turns it off.
const OPTIONS: &str = "--port 0 --unixsocket redis.sock --save  --appendonly no --daemonize no --activedefrag no --loglevel warning";

/// Of the benchmark, beside the number of its requests.
const BENCHMARK: &str = "-q -c 20 -P 16 -d 120 -t set,get,lpush,lpop,sadd,hset,zadd,mset -n";

/// What is asked at the end: the same with every malloc.
const QUESTIONS: [&[&str]; 6] = [
    &["dbsize"],
    &["llen", "mylist"],
    &["scard", "myset"],
    &["hlen", "myhash"],
    &["zcard", "myzset"],
    &["strlen", "key:__rand_int__"],
];

fn run(shop: &Shop, malloc: &Malloc) -> anyhow::Result<Measures> {
    let server = tool("redis-server")?;
    malloc.check(shop, &server)?;
    let mut command = malloc.command(shop, &server);
    command
        .args(OPTIONS.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let server = Server::start(command, &shop.path(SOCKET))?;

    let begin = Instant::now();
    let count = (10_000 * shop.scale).to_string();
    let words: Vec<&str> = BENCHMARK.split(' ').chain([&*count]).collect();
    ask(shop, "redis-benchmark", &words)?;
    let seconds = begin.elapsed().as_secs_f64();

    let mut output = Output::default();
    for question in QUESTIONS {
        output.add(&ask(shop, "redis-cli", question)?);
    }
    // The server ends while it answers.
    ask(shop, "redis-cli", &["shutdown", "nosave"])?;
    let spent = server.end()?;
    Ok(measures(Spent { seconds, ..spent }, output))
}

/// What a client on the system's malloc says.
fn ask(shop: &Shop, client: &str, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let said = Malloc::default()
        .command(shop, &tool(client)?)
        .args(["-s", SOCKET])
        .args(words)
        .output()
        .with_context(|| format!("{client} cannot be run"))?;
    let complaint = String::from_utf8_lossy(&said.stderr);
    ensure!(
        said.status.success() && !complaint.contains("Error"),
        "{client} ended with {}: {}",
        said.status,
        complaint.lines().next().unwrap_or("it said nothing")
    );
    Ok(said.stdout)
}
