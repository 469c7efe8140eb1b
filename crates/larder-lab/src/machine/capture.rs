//! All fields of the machine's record.

use super::fields::Fields;
use super::{Root, build, cgroup, cpu, fingerprint, kernel, memory};
use crate::model::MachineRecord;

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
