//! Limits of the control group: a container's two CPUs are not the machine's sixty-four.

use super::Root;
use super::capture::Fields;
use crate::model::Field;

const MOUNT: &str = "sys/fs/cgroup";

pub(super) fn read(root: &Root, fields: &mut Fields) {
    fields.insert("cgroup.cpu_max".to_owned(), limit(root, "cpu.max"));
    fields.insert("cgroup.memory_max".to_owned(), limit(root, "memory.max"));
}

/// The nearest limit from the process's own group up to the root of the tree.
///
/// Only the value is kept: the group's path can hold a user's name.
pub(super) fn limit(root: &Root, file: &str) -> Field {
    let own = match root.read("proc/self/cgroup") {
        Ok(text) => text,
        Err(why) => return Field::Unknown(why),
    };
    let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::/")) else {
        return Field::Unknown("the process is in no group of the second version".to_owned());
    };
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
                return Field::Known(text);
            }
        }
        if path.is_empty() {
            break;
        }
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    if found {
        Field::Known("none".to_owned())
    } else {
        Field::Unknown(format!("no {file} in the process's groups"))
    }
}
