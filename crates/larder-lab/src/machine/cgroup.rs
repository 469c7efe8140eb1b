//! Limits of the control group: a container's two CPUs are not the machine's sixty-four.

use super::Root;
use super::fields::{Fields, Reading};

const MOUNT: &str = "sys/fs/cgroup";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    fields.put("cgroup.cpu_max", limit(root, "cpu.max"));
    fields.put("cgroup.memory_max", limit(root, "memory.max"));
}

/// The nearest limit from the process's own group up to the root of the tree.
///
/// Only the value is kept: the group's path can hold a user's name.
pub(super) fn limit(root: &Root, file: &str) -> Reading {
    let own = root.read("proc/self/cgroup")?;
    let path = own.lines().find_map(|l| l.strip_prefix("0::/"));
    let path = path.ok_or("the process is in no group of the second version")?;
    let mut path = path.trim_end_matches('/').to_owned();
    let mut found = false;
    loop {
        let at = if path.is_empty() {
            format!("{MOUNT}/{file}")
        } else {
            format!("{MOUNT}/{path}/{file}")
        };
        if let Ok(text) = root.read(&at) {
            found = true;
            if !text.starts_with("max") {
                return Ok(text);
            }
        }
        if path.is_empty() {
            break;
        }
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    if found {
        Ok("none".to_owned())
    } else {
        Err(format!("no {file} in the process's groups"))
    }
}
