//! `mount.larder`: how mount(8) calls this program for a line of /etc/fstab.

use std::ffi::OsString;
use std::path::Path;

/// Options of `larder mount` that have a value.
const VALUES: [&str; 13] = [
    "cache",
    "most-cache",
    "rule",
    "budget",
    "mode",
    "dirty",
    "dirty-age",
    "write",
    "close-to-open",
    "coherence",
    "read-ahead",
    "threads",
    "trace",
];

/// Options of mount(8) itself.
const OF_MOUNT: [&str; 14] = [
    "rw", "defaults", "auto", "noauto", "user", "users", "nouser", "nousers", "owner", "noowner",
    "group", "nogroup", "nofail", "_netdev",
];

/// The words of the command line. Those that mount(8) gives a helper, `mount.larder SOURCE MOUNTPOINT -o OPTIONS`, become those of
/// `larder mount`.
pub(in crate::cli) fn words() -> Vec<OsString> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().and_then(|own| Path::new(own).file_name());
    match name.is_some_and(|name| name == "mount.larder") {
        true => translated(words.into_iter().skip(1)),
        false => words,
    }
}

fn translated(mut given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all = vec!["larder".into(), "mount".into()];
    while let Some(word) = given.next() {
        match word.to_str() {
            Some("-o") => {
                let options = given.next().unwrap_or_default();
                all.extend(options.to_string_lossy().split(',').filter_map(option));
            }
            // A type and a namespace.
            Some("-t" | "-N") => {
                given.next();
            }
            Some("-s" | "-n" | "-v") => {}
            _ => all.push(word),
        }
    }
    all
}

fn option(option: &str) -> Option<OsString> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let own = name.replace('_', "-");
    match value {
        _ if name.to_ascii_lowercase().starts_with("x-") || OF_MOUNT.contains(&name) => None,
        None if name == "ro" => Some("--read-only".into()),
        None if own == "close-to-open" => Some("--close-to-open".into()),
        None if own == "io-uring" => Some("--io-uring".into()),
        Some(value) if VALUES.contains(&own.as_str()) => Some(format!("--{own}={value}").into()),
        _ => Some(format!("-o{option}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_fstab_becomes_a_command() {
        let given = "/s /m -s -v -o rw,nofail,group,x-systemd.automount,cache=1G,dirty_age=2s,noexec,ro,close-to-open,io_uring -t larder";
        let words = translated(given.split(' ').map(OsString::from));
        let wanted = "larder mount /s /m --cache=1G --dirty-age=2s -onoexec --read-only --close-to-open --io-uring";
        assert!(words.iter().eq(wanted.split(' ')), "{words:?}");
    }

    /// `larder mount` knows which of them mean something.
    #[test]
    fn options_of_any_file_system_go_on() {
        let given = "/s /m -o relatime,sync";
        let words = translated(given.split(' ').map(OsString::from));
        let wanted = "larder mount /s /m -orelatime -osync";
        assert!(words.iter().eq(wanted.split(' ')), "{words:?}");
    }
}
