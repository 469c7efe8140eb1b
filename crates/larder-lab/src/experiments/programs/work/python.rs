//! Python: objects in dictionaries and lists, and long texts.

use std::path::PathBuf;

use anyhow::Context;

use super::super::process::{Malloc, Step};
use super::super::shop::{Shop, tool};
use super::{Program, commands, nothing};
use crate::model::Measures;

/// As users run it: objects of up to 512 bytes come from Python's own pools, only the pools from malloc.
pub(super) const OBJECTS: Program = Program {
    name: "python-objects",
    about: "python3: dictionaries, lists, tuples and instances made, sorted, dumped as JSON and read again",
    tools: &["python3"],
    lacks: nothing,
    scale: 12,
    quick: true,
    run: |shop, malloc| run(shop, malloc, SCRIPT_OBJECTS, "pymalloc"),
};

/// The same with every object from malloc.
pub(super) const MALLOC: Program = Program {
    name: "python-malloc",
    about: "the same with PYTHONMALLOC=malloc: every object is a block of malloc's",
    run: |shop, malloc| run(shop, malloc, SCRIPT_OBJECTS, "malloc"),
    ..OBJECTS
};

/// Blocks that are too large for Python's pools.
pub(super) const TEXT: Program = Program {
    name: "python-text",
    about: "python3: texts of some kilobytes joined, split, searched and compressed",
    scale: 36,
    run: |shop, malloc| run(shop, malloc, SCRIPT_TEXT, "pymalloc"),
    ..OBJECTS
};

const SCRIPT_OBJECTS: &str = r#"
import json, sys
class Node:
    def __init__(self, key, left, right):
        self.key, self.left, self.right = key, left, right
def tree(depth, key):
    if depth == 0:
        return None
    return Node(key, tree(depth - 1, 2 * key), tree(depth - 1, 2 * key + 1))
def total(node):
    return 0 if node is None else node.key % 97 + total(node.left) + total(node.right)
state = 12345
def draw():
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state
answer = 0
for turn in range(int(sys.argv[1])):
    table = {}
    for i in range(4000):
        key = "key-%d" % (draw() % 3000)
        table.setdefault(key, []).append((i, str(draw()), {"n": i, "half": i / 2}))
    text = json.dumps(table, sort_keys=True)
    again = json.loads(text)
    rows = sorted(again.items(), key=lambda kv: (len(kv[1]), kv[0]))
    answer = (answer * 31 + len(text) + len(rows) + total(tree(11, turn + 1))) % 1000000007
print(answer)
"#;

const SCRIPT_TEXT: &str = r#"
import re, sys, zlib
state = 99
def draw():
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state
words = ["w%d" % (draw() % 5000) for _ in range(3000)]
answer = 0
for turn in range(int(sys.argv[1])):
    texts = []
    for i in range(60):
        at = draw() % 2000
        texts.append(" ".join(words[at:at + 300 + draw() % 700]))
    joined = "\n".join(texts)
    parts = [line.split(" ") for line in joined.split("\n")]
    found = re.findall(r"w(\d*7)\b", joined)
    upper = joined.upper().replace("W1", "first-").encode()
    packed = zlib.compress(upper, 1)
    buffers = [bytearray(packed) for _ in range(40)]
    answer = (answer * 31 + len(found) + sum(map(len, parts)) + len(zlib.decompress(packed)) + sum(b[turn % len(b)] for b in buffers)) % 1000000007
print(answer)
"#;

fn run(shop: &Shop, malloc: &Malloc, script: &str, own: &str) -> anyhow::Result<Measures> {
    let file = shop.write("work.py", script)?;
    let words = ["-S", &file.to_string_lossy(), &shop.scale.to_string()];
    let step = Step::new(interpreter(shop)?, &words)
        .with("PYTHONMALLOC", own)
        .with("PYTHONHASHSEED", "0");
    commands(shop, malloc, &[step])
}

/// The interpreter itself: what PATH has may be a script that looks for it.
pub(super) fn interpreter(shop: &Shop) -> anyhow::Result<PathBuf> {
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
