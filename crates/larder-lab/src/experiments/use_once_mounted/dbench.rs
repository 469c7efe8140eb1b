//! dbench as a cell asks for it: the clients' files, one turn of its load file, and the program.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::{Scratch, tool};
use crate::experiments::use_once::loadfile;
use crate::model::Params;

/// Gives a new file its length.
type Fill = fn(&mut File, u64) -> io::Result<()>;

/// Files without content take no memory before they are written.
pub(super) fn holes(file: &mut File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Reading a hole does not touch the disk, so these files get real blocks.
pub(super) fn blocks(file: &mut File, length: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(0).take(length), file).map(drop)
}

/// A run of dbench, with a folder for all that it needs.
pub(super) struct Dbench {
    load: Load,
    turn: PathBuf,
    clients: usize,
    seconds: usize,
    scratch: Scratch,
}

impl Dbench {
    /// The run that these factors ask for.
    pub(super) fn new(params: &Params) -> anyhow::Result<Self> {
        let (clients, seconds) = (params.count("clients")?, params.count("seconds")?);
        ensure!(
            (1..=256).contains(&clients) && seconds > 0,
            "1 to 256 clients"
        );
        let path = loadfile().context("dbench's client.txt is not here; install dbench")?;
        let load = Load::read(&fs::read_to_string(&path)?)?;
        let scratch = Scratch::in_memory("mounted")?;
        let turn = scratch.write("turn.txt", &load.turn)?;
        Ok(Self {
            load,
            turn,
            clients,
            seconds,
            scratch,
        })
    }

    /// A path in its folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// A new folder in it.
    pub(super) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.path(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }

    pub(super) fn clients(&self) -> usize {
        self.clients
    }

    /// Makes the clients' files.
    pub(super) fn make(&self, place: &Path, fill: Fill) -> anyhow::Result<()> {
        self.load.make(place, self.clients, fill)
    }

    /// Megabytes a second. `within` is a command that runs another one.
    pub(super) fn run(&self, at: &Path, within: Option<Command>) -> anyhow::Result<f64> {
        // Where one client fails dbench waits for ever. `timeout` ends all of them, also when this process is gone.
        let timeout = tool("timeout")?;
        let mut command = match within {
            Some(mut within) => {
                within.arg(timeout);
                within
            }
            None => Command::new(timeout),
        };
        let output = command
            .args(["-k", "1", &(30 + 3 * self.seconds).to_string()])
            .arg(tool("dbench")?)
            .arg("-D")
            .arg(at)
            .arg("-c")
            .arg(&self.turn)
            .args(["-t", &self.seconds.to_string(), &self.clients.to_string()])
            .output()
            .context("dbench cannot be run")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let rate = said
            .lines()
            .find_map(|line| line.strip_prefix("Throughput "))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        rate.filter(|_| output.status.success()).with_context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| line.contains("ERROR"));
            let last = last.or(errors.lines().last());
            format!("dbench failed: {}", last.unwrap_or("it did not end"))
        })
    }
}

/// dbench's load: the files of a client when its first turn begins, and what it does in a turn. Each turn ends as it began.
struct Load {
    folders: Vec<String>,
    files: BTreeMap<String, u64>,
    turn: String,
}

impl Load {
    fn read(load: &str) -> anyhow::Result<Self> {
        let (mut folders, mut files) = (Vec::new(), BTreeMap::<String, u64>::new());
        let mut handles = HashMap::new();
        let mut lines = load.lines();
        // A turn begins by a look at this folder.
        let begins = |line: &&str| line.starts_with("FIND_FIRST") && line.contains("\\SEED\\*\"");
        let first = loop {
            let line = lines.next().context("dbench's load file has no turn")?;
            if begins(&line) {
                break line;
            }
            if !line.ends_with("NT_STATUS_OK") {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let quoted: Vec<&str> = line.split('"').collect();
            match (words.as_slice(), quoted.as_slice()) {
                (["NTCreateX", ..], [_, path, more]) => {
                    let more: Vec<&str> = more.split_whitespace().collect();
                    let [options, disposition, handle, ..] = more[..] else {
                        continue;
                    };
                    let path = (*path).to_owned();
                    handles.insert(handle, path.clone());
                    if options == "0x1" {
                        folders.push(path);
                    } else {
                        let length = files.entry(path).or_default();
                        // These dispositions cut a file.
                        if ["0x0", "0x4", "0x5"].contains(&disposition) {
                            *length = 0;
                        }
                    }
                }
                (["WriteX", handle, offset, bytes, ..], _) => {
                    let end = offset.parse::<u64>()? + bytes.parse::<u64>()?;
                    let file = handles.get(handle).and_then(|path| files.get_mut(path));
                    if let Some(length) = file {
                        *length = end.max(*length);
                    }
                }
                (["Mkdir", ..], [_, path, ..]) => folders.push((*path).to_owned()),
                (["Unlink", ..], [_, path, ..]) => {
                    files.remove(*path);
                }
                (["Rename", ..], [_, from, _, to, ..]) => {
                    if let Some(length) = files.remove(*from) {
                        files.insert((*to).to_owned(), length);
                    }
                }
                _ => {}
            }
        };
        let turn = std::iter::once(first)
            .chain(lines.take_while(|line| !begins(line)))
            .flat_map(|line| [line, "\n"]);
        let turn = turn.collect();
        Ok(Self {
            folders,
            files,
            turn,
        })
    }

    /// Makes the files of these many clients. `fill` gives a new file its length.
    fn make(&self, place: &Path, clients: usize, fill: Fill) -> anyhow::Result<()> {
        for client in 0..clients {
            let own = format!("client{client}");
            let place = |path: &str| {
                let path = path.replace("client1", &own).replace('\\', "/");
                place.join(path.trim_start_matches('/'))
            };
            for folder in &self.folders {
                fs::create_dir_all(place(folder))?;
            }
            for (file, length) in &self.files {
                let path = place(file);
                let made = File::create(&path).and_then(|mut made| fill(&mut made, *length));
                made.with_context(|| format!("{} cannot be made", path.display()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_files_and_a_turn() {
        let text = r#"Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1" 0x1 0x2 1 NT_STATUS_OK
NTCreateX "\clients\client1\none" 0x40 0x1 2 NT_STATUS_OBJECT_NAME_NOT_FOUND
NTCreateX "\clients\client1\A b" 0x40 0x2 3 NT_STATUS_OK
WriteX 3 65534 1 1 NT_STATUS_OK
WriteX 3 0 10 10 NT_STATUS_OK
NTCreateX "\clients\client1\gone" 0x40 0x2 4 NT_STATUS_OK
Unlink "\clients\client1\gone" NT_STATUS_OK
Rename "\clients\client1\A b" "\clients\client1\c" NT_STATUS_OK
FIND_FIRST "\clients\client1\~dmtmp\SEED\*" 260 1366 5 NT_STATUS_OK
ReadX 3 0 1 1 NT_STATUS_OK
FIND_FIRST "\clients\client1\~dmtmp\SEED\*" 260 1366 5 NT_STATUS_OK
"#;
        let load = Load::read(text).expect("has a turn");
        assert_eq!(load.turn.lines().count(), 2);
        let scratch = Scratch::open("test").expect("room");
        load.make(scratch.folder(), 2, holes).expect("made");
        for client in ["client0", "client1"] {
            let own = scratch.path("clients").join(client);
            let names: Vec<_> = fs::read_dir(&own).expect("there").flatten().collect();
            assert_eq!(names.len(), 1);
            assert_eq!(own.join("c").metadata().expect("there").len(), 65_535);
        }
        assert!(Load::read("Mkdir \"\\clients\" NT_STATUS_OK\n").is_err());
    }
}
