//! The disk of the model: one head, one command at a time.

/// What commands of a disk take.
///
/// ```
/// use larder_sim::machine::Drive;
///
/// let drive = Drive { seek: 0.004, rate: 160e6, block: 4096.0 };
/// assert!(drive.seek > drive.block / drive.rate, "a seek takes longer than a block");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    /// Seconds to the first byte of a command that does not go on where the last one ended.
    pub seek: f64,
    /// Bytes a second from its surface.
    pub rate: f64,
    /// Bytes of a block.
    pub block: f64,
}

/// A SCSI disk of 2001: seek and half a turn, and its rate from the surface, with pages of 4 KiB.
impl Default for Drive {
    fn default() -> Self {
        Self {
            seek: 0.0085,
            rate: 20e6,
            block: 4096.0,
        }
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    drive: Drive,
    head: u64,
    /// Seconds that a client waited: reads, and writes of a block whose frame is wanted.
    pub(super) waited: f64,
    /// Seconds of writes that no client waited for.
    pub(super) behind: f64,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) commands: u64,
}

impl Disk {
    pub(super) fn new(drive: Drive) -> Self {
        Self {
            drive,
            head: 0,
            waited: 0.0,
            behind: 0.0,
            read: 0,
            written: 0,
            commands: 0,
        }
    }

    fn command(&mut self, at: u64, blocks: u64) -> f64 {
        let seek = if at == self.head {
            0.0
        } else {
            self.drive.seek
        };
        self.head = at.saturating_add(blocks);
        self.commands += 1;
        seek + blocks as f64 * self.drive.block / self.drive.rate
    }

    pub(super) fn read(&mut self, at: u64, blocks: u64) {
        self.read += blocks;
        self.waited += self.command(at, blocks);
    }

    /// Writes a block that a client waits for.
    pub(super) fn write_now(&mut self, at: u64) {
        self.written += 1;
        self.waited += self.command(at, 1);
    }

    /// Writes blocks in the order of their place; neighbours are one command.
    pub(super) fn write_behind(&mut self, blocks: &mut [u64]) {
        blocks.sort_unstable();
        for run in blocks.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            self.written += run.len() as u64;
            self.behind += self.command(run[0], run.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cost_no_seek() {
        let drive = Drive::default();
        let mut disk = Disk::new(drive);
        let transfer = drive.block / drive.rate;
        disk.read(100, 4);
        assert_eq!(disk.waited, drive.seek + 4.0 * transfer);
        disk.read(104, 1);
        assert!((disk.waited - drive.seek - 5.0 * transfer).abs() < 1e-12);
        disk.write_behind(&mut [209, 207, 208, 300]);
        assert!((disk.behind - 2.0 * drive.seek - 4.0 * transfer).abs() < 1e-12);
        assert_eq!((disk.read, disk.written, disk.commands), (5, 4, 4));
    }
}
