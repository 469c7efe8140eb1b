//! `install`: installs this program and the libraries that it preloads, so that it finds them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output;
use super::output::print_json;
use crate::preload::larder::{MALLOC, MALLOC_DEBUG, SQLITE};
use crate::preload::splits;

/// Install this program and the libraries that it preloads.
#[derive(Debug, Args)]
#[command(after_help = "\
The program becomes DIR/bin/larder; liblarder_malloc.so, liblarder_malloc_debug.so and liblarder_sqlite_preload.so, which are built \
first if they are missing, lie in DIR/lib.

Examples:
  cargo run --release -- install                          into ~/.local
  cargo run --release -- install --prefix /usr/local      for everybody, as root

Exit codes: 4 a library is missing and cannot be built, 5 a file cannot be written.")]
pub(super) struct Install {
    /// Where `bin` and `lib` are, or are made [default: ~/.local].
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &Install, out: &mut dyn Write) -> Outcome {
    let prefix = match &args.prefix {
        Some(prefix) => prefix.clone(),
        None => directories::BaseDirs::new()
            .map(|home| home.home_dir().join(".local"))
            .ok_or_else(|| Failure::usage("there is no home directory; name a --prefix"))?,
    };
    let tell = &mut |line: &str| output::hint(global, line);
    let libraries = [
        ("library", MALLOC),
        ("debug_library", MALLOC_DEBUG),
        ("sqlite_library", SQLITE),
    ];
    let mut found = Vec::new();
    for (what, library) in libraries {
        let path = library
            .find_or_build(None, tell)
            .map_err(Failure::refused)?;
        found.push((what, path, library.name));
    }
    let program = std::env::current_exe()
        .map_err(|e| Failure::io(format!("this program's file cannot be found: {e}")))?;
    let prefix = std::path::absolute(&prefix)
        .map_err(|e| Failure::io(format!("{}: {e}", prefix.display())))?;
    let lib = prefix.join("lib");
    let mut placed = vec![("program", program, prefix.join("bin/larder"))];
    placed.extend(
        found
            .into_iter()
            .map(|(what, path, name)| (what, path, lib.join(name))),
    );
    // A place from which the loader would not take it is refused before anything is written.
    splits(&placed[1].2).map_err(|why| Failure::refused(format!("{}: {why}", prefix.display())))?;
    for (_, from, to) in &placed {
        place(from, to)?;
    }
    if global.json {
        let files: serde_json::Map<_, _> = placed
            .iter()
            .map(|(name, _, to)| ((*name).to_owned(), json!(to)))
            .collect();
        return print_json(out, &json!({ "schema": 1, "installed": files }));
    }
    for (name, _, to) in &placed {
        writeln!(out, "{:<14} {}", name.replace('_', " "), to.display())?;
    }
    let folder = prefix.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|known| known == folder) {
        output::hint(
            global,
            &format!("{} is not in PATH; add it", folder.display()),
        );
    }
    Ok(())
}

/// Copies a file, whole or not at all, so that a running program or a loaded library stays as it is.
fn place(from: &Path, to: &Path) -> Outcome {
    let fail = |e: std::io::Error| {
        Failure::io(format!(
            "{} cannot be written: {e}; name another --prefix",
            to.display()
        ))
    };
    let folder = to.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(fail)?;
    let part = to.with_extension(format!("{}.part", std::process::id()));
    let placed = fs::copy(from, &part)
        .and_then(|_| fs::set_permissions(&part, fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&part, to));
    placed.map_err(|e| {
        let _ = fs::remove_file(&part);
        fail(e)
    })
}
