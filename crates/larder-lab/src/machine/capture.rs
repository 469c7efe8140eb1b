//! All fields of the machine's record.

use std::collections::BTreeMap;

use super::{Root, build, cgroup, cpu, fingerprint, kernel, memory};
use crate::model::{Field, MachineRecord};

/// A value, or why it cannot be read.
pub(super) type Reading = Result<String, String>;

/// Fields by name, as the readers fill them.
#[derive(Default)]
pub(super) struct Fields(BTreeMap<String, Field>);

impl Fields {
    pub(super) fn put(&mut self, name: &str, reading: Reading) {
        let field = match reading {
            Ok(value) => Field::Known(value),
            Err(why) => Field::Unknown(why),
        };
        self.0.insert(name.to_owned(), field);
    }

    /// Several fields, each from the file at its path.
    pub(super) fn put_files(&mut self, root: &Root, files: &[(&str, &str)]) {
        for (name, path) in files {
            self.put(name, root.value(path));
        }
    }
}

/// Describes the running machine. Never fails: what cannot be read is a field with its reason.
///
/// It holds no host name, no user name and no kernel command line.
#[must_use]
pub fn capture() -> MachineRecord {
    capture_from(&Root::system())
}

/// Describes the machine whose `/proc` and `/sys` lie under `root`.
#[must_use]
pub fn capture_from(root: &Root) -> MachineRecord {
    let mut fields = Fields::default();
    cpu::read(root, &mut fields);
    memory::read(root, &mut fields);
    kernel::read(root, &mut fields);
    cgroup::read(root, &mut fields);
    build::read(&mut fields);
    let mut record = MachineRecord {
        fingerprint: String::new(),
        fields: fields.0,
    };
    record.fingerprint = fingerprint(&record);
    record
}
