//! Compilers: generated sources, and SQLite's where cargo's registry has it.

use std::path::PathBuf;

use anyhow::Context;

use super::super::process::{Malloc, Program, Shop, Step, commands};
use crate::experiments::scratch::tool;
use crate::model::Measures;

/// Classes and functions over the standard library's own headers.
pub(super) const CPP: Program = Program {
    name: "c++",
    about: "c++ -O1: a generated source over the standard library's maps, strings, vectors and algorithms",
    tools: &["c++"],
    lacks: || None,
    scale: 1,
    quick: true,
    run: |shop, malloc| {
        let source = shop.write("work.cpp", &cpp(shop.scale))?;
        compile(shop, malloc, "c++", "-O1", &source)
    },
};

/// Functions of many branches.
pub(super) const C: Program = Program {
    name: "cc",
    about: "cc -O2: generated functions with loops, branches and tables",
    tools: &["cc"],
    scale: 15,
    run: |shop, malloc| {
        let source = shop.write("work.c", &c(shop.scale))?;
        compile(shop, malloc, "cc", "-O2", &source)
    },
    ..CPP
};

/// The same functions by LLVM.
pub(super) const CLANG: Program = Program {
    name: "clang",
    about: "clang -O2: the functions of cc",
    tools: &["clang"],
    scale: 15,
    quick: false,
    run: |shop, malloc| {
        let source = shop.write("work.c", &c(shop.scale))?;
        compile(shop, malloc, "clang", "-O2", &source)
    },
    ..CPP
};

/// Generic types over the standard library. The compiler that Rust's own builds bring has a jemalloc linked in.
pub(super) const RUSTC: Program = Program {
    name: "rustc",
    about: "rustc -O: generated generic types over the standard library's maps and strings",
    tools: &["rustc"],
    scale: 2,
    quick: false,
    run: |shop, malloc| {
        let source = shop.write("work.rs", &rust(shop.scale))?;
        let source = source.to_string_lossy();
        let words = "--edition 2021 --crate-type lib --crate-name work --emit obj -O -C codegen-units=1 -o work.o";
        let words: Vec<&str> = words.split(' ').chain([&*source]).collect();
        let step = Step::new(rustc(shop)?, &words).makes(shop.path("work.o"));
        commands(shop, malloc, &[step])
    },
    ..CPP
};

/// The compiler itself: what PATH has may be rustup, which looks for it.
fn rustc(shop: &Shop) -> anyhow::Result<PathBuf> {
    let said = Malloc::default()
        .command(shop, &tool("rustc")?)
        .args(["--print", "sysroot"])
        .env("HOME", std::env::var_os("HOME").unwrap_or_default())
        .output()
        .context("rustc cannot be run")?;
    let root = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    let path = root.join("bin/rustc");
    anyhow::ensure!(path.is_file(), "rustc does not say where it is");
    Ok(path)
}

/// A quarter of a million lines.
pub(super) const SQLITE: Program = Program {
    name: "cc-sqlite",
    about: "cc -O0: sqlite3.c, as cargo's registry has it",
    tools: &["cc"],
    lacks: || {
        sqlite3_c().is_none().then(|| {
            "cargo's registry has no libsqlite3-sys with its sqlite3.c; build larder from source here"
                .to_owned()
        })
    },
    scale: 1,
    quick: false,
    run: |shop, malloc| {
        let source = sqlite3_c().context("sqlite3.c is gone from cargo's registry")?;
        compile(shop, malloc, "cc", "-O0", &source)
    },
};

fn compile(
    shop: &Shop,
    malloc: &Malloc,
    compiler: &str,
    level: &str,
    source: &std::path::Path,
) -> anyhow::Result<Measures> {
    let object = shop.path("work.o");
    let words = [level, "-c", &source.to_string_lossy(), "-o", "work.o"];
    let step = Step::new(tool(compiler)?, &words).makes(object);
    commands(shop, malloc, &[step])
}

/// The newest `sqlite3.c` in cargo's registry.
fn sqlite3_c() -> Option<PathBuf> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cargo"),
    };
    let entries = |folder: PathBuf| {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
    };
    entries(home.join("registry/src"))
        .flat_map(entries)
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("libsqlite3-sys-"))
        })
        .map(|path| path.join("sqlite3/sqlite3.c"))
        .filter(|path| path.is_file())
        .max()
}

/// A C++ source of `scale` classes.
fn cpp(scale: usize) -> String {
    let class = |i: usize| include_str!("inputs/class.cpp").replace("@N@", &i.to_string());
    let classes: String = (0..scale).map(class).collect();
    format!("{}{classes}", include_str!("inputs/headers.cpp"))
}

/// A Rust source of 20 types for each unit of `scale`.
fn rust(scale: usize) -> String {
    let item = |i: usize| {
        let odd = (2 * i % 17 + 3).to_string();
        let text = include_str!("inputs/item.rs").replace("@N@", &i.to_string());
        text.replace("@ODD@", &odd)
    };
    let items: String = (0..20 * scale).map(item).collect();
    format!("use std::collections::{{BTreeMap, HashMap}};\n{items}")
}

/// A C source of `scale` functions.
fn c(scale: usize) -> String {
    let function = |i: usize| {
        let number = |j: usize| format!("{},", (i * 31 + j * 17) % 251);
        let case = |j: usize| {
            format!(
                "    case {j}: if (n > {}) {{ sum ^= n << {}; p->d += sum / {}.5; }} else sum -= t{i}[{j}]; break;\n",
                j * i % 29,
                j % 7,
                j + 1
            )
        };
        include_str!("inputs/function.c")
            .replace("@CASES@", &(0..14).map(case).collect::<String>())
            .replace("@TABLE@", &(0..40).map(number).collect::<String>())
            .replace("@SIZE@", &(i % 13 + 3).to_string())
            .replace("@N@", &i.to_string())
    };
    let functions: String = (0..scale).map(function).collect();
    format!("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{functions}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_grow_with_the_scale_and_are_always_the_same() {
        assert_eq!(c(3), c(3));
        assert_eq!(cpp(4).matches("\nclass C").count(), 4);
        assert_eq!(c(5).matches("\nint f").count(), 5);
        assert_eq!(rust(3).matches("\npub struct Item").count(), 60);
    }
}
