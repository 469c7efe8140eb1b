//! The disk and the clock of the model.

/// Seconds to the first byte of a command that does not go on where the last one ended: seek and half a turn of a SCSI disk of
/// 2001.
pub(super) const SEEK: f64 = 0.0085;
/// Bytes a second from its surface.
pub(super) const RATE: f64 = 20e6;
/// Bytes of a page.
pub(super) const PAGE: f64 = 4096.0;
/// Payload that one CPU moves in a second: Lord's row of one client, whose data fit.
pub(super) const ONE_CPU: f64 = 32.1e6;
/// How much more two CPUs move: Lord's row of two clients over that of one.
pub(super) const TWO_CPUS: f64 = 1.51;

/// One disk, one command at a time.
#[derive(Debug, Default)]
pub(super) struct Disk {
    head: u64,
    /// Seconds that a client waited: reads, and writes of a page whose frame is wanted.
    pub(super) waited: f64,
    /// Seconds of writes that no client waited for.
    pub(super) behind: f64,
    pub(super) pages_read: u64,
    pub(super) pages_written: u64,
    pub(super) commands: u64,
}

/// Where a page of a file lies: files are contiguous and far from each other.
pub(super) const fn address(file: u32, page: u64) -> u64 {
    ((file as u64) << 32) | (page & 0xffff_ffff)
}

impl Disk {
    fn command(&mut self, at: u64, pages: u64) -> f64 {
        let seek = if at == self.head { 0.0 } else { SEEK };
        self.head = at + pages;
        self.commands += 1;
        seek + pages as f64 * PAGE / RATE
    }

    pub(super) fn read(&mut self, at: u64, pages: u64) {
        self.pages_read += pages;
        self.waited += self.command(at, pages);
    }

    /// Writes a page that a client waits for.
    pub(super) fn write_now(&mut self, at: u64) {
        self.pages_written += 1;
        self.waited += self.command(at, 1);
    }

    /// Writes pages in the order of their place; neighbours are one command.
    pub(super) fn write_behind(&mut self, addresses: &mut [u64]) {
        addresses.sort_unstable();
        for run in addresses.chunk_by(|a, b| a + 1 == *b) {
            self.pages_written += run.len() as u64;
            self.behind += self.command(run[0], run.len() as u64);
        }
    }
}

/// Seconds: `waited + max(payload / speed of the CPUs, behind)`.
pub(super) fn seconds(waited: f64, behind: f64, payload: f64, clients: u16) -> f64 {
    let speedup = if clients > 1 { TWO_CPUS } else { 1.0 };
    waited + (payload / ONE_CPU / speedup).max(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cost_no_seek() {
        let mut disk = Disk::default();
        let transfer = PAGE / RATE;
        disk.read(address(1, 0), 4);
        assert_eq!(disk.waited, SEEK + 4.0 * transfer);
        disk.read(address(1, 4), 1);
        assert!((disk.waited - SEEK - 5.0 * transfer).abs() < 1e-12);
        let mut pages = [address(2, 9), address(2, 7), address(2, 8), address(3, 0)];
        disk.write_behind(&mut pages);
        assert!((disk.behind - 2.0 * SEEK - 4.0 * transfer).abs() < 1e-12);
        assert_eq!(
            (disk.pages_read, disk.pages_written, disk.commands),
            (5, 4, 4)
        );
        // Two clients move as much in less time; writes hide behind the CPU until they are longer.
        assert!(seconds(0.0, 0.0, 1e9, 2) < seconds(0.0, 0.0, 1e9, 1));
        assert_eq!(seconds(5.0, 100.0, 1e6, 1), 105.0);
    }
}
