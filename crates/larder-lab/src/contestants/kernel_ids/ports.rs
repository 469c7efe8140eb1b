//! UDP ports: `bind` to port 0 on loopback while many are taken. A random free one is next.

use std::net::{Ipv4Addr, UdpSocket};

use anyhow::{Context, anyhow, ensure};
use rustix::process::{Resource, getrlimit};

use super::pairs;
use crate::contestants::getpid::Random31;
use crate::frame::{bench, needing};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

/// Where the ports of the measurement begin.
const FIRST: u16 = 32_768;
/// How many there are: few enough for the usual limit of open files.
const PORTS: u16 = 4096;
/// Where the range of a namespace stands.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Pairs that are timed at most.
const PAIRS: u64 = 400;

/// Ports of a network namespace of our own.
pub(super) fn contestant() -> Box<dyn Contestant> {
    let about = "this kernel: close a random UDP socket and bind another to port 0; the time is of one bind, its system calls included";
    needing(available, bench("kernel-ports", about, run))
}

fn available() -> Result<(), String> {
    let files = getrlimit(Resource::Nofile).current;
    if files.is_some_and(|n| n < u64::from(PORTS) + 100) {
        return Err(format!(
            "{PORTS} sockets are more than the {} open files that this user may have; raise the limit (ulimit -n)",
            files.unwrap_or_default()
        ));
    }
    on_its_own(|| Ok(())).map_err(|why| why.to_string())
}

fn run(params: &Params) -> anyhow::Result<Measures> {
    let used = params.count("used")?;
    ensure!(
        used <= 9999,
        "used is {used}; it is in hundredths of a percent, up to 9999"
    );
    on_its_own(move || bound(used))
}

/// Runs something in a thread that has a network namespace of its own, with loopback up and our range of ports. The
/// namespace ends with the thread, and no other program meets its sockets.
fn on_its_own<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    std::thread::scope(|scope| {
        scope
            .spawn(move || {
                own_network().context(
                    "ports need a network namespace of their own, so that no other program lacks one; run as root",
                )?;
                work()
            })
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the thread that holds the ports failed")))
    })
}

fn own_network() -> anyhow::Result<()> {
    // SAFETY: takes an integer; it changes the calling thread only, which ends with its work.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    ensure!(done == 0, "unshare: {}", std::io::Error::last_os_error());
    loopback_up()?;
    // The file is of the namespace of the thread that opens it. One write: the kernel takes each for a whole range.
    let range = format!("{FIRST}\t{}", u32::from(FIRST) + u32::from(PORTS) - 1);
    std::fs::write(RANGE, &range).with_context(|| format!("{RANGE} cannot be written"))?;
    let now = std::fs::read_to_string(RANGE)?;
    ensure!(
        now.trim() == range,
        "{RANGE} is '{}' where '{range}' was written",
        now.trim()
    );
    Ok(())
}

fn loopback_up() -> anyhow::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: ifreq is integers and a name, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: an open socket and a live ifreq with a terminated name, which is what the request reads.
    let done = unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &raw const request) };
    ensure!(
        done == 0,
        "loopback cannot be switched on: {}",
        std::io::Error::last_os_error()
    );
    Ok(())
}

fn bound(used: usize) -> anyhow::Result<Measures> {
    let want = (usize::from(PORTS) * used / 10_000).max(2);
    let mut random = Random31::new(9);
    let mut ports: Vec<u16> = (0..PORTS).map(|at| FIRST + at).collect();
    for i in (1..ports.len()).rev() {
        ports.swap(i, random.draw() as usize % (i + 1));
    }
    // A port by number is found at once, so that filling takes no time.
    let mut held = Vec::with_capacity(want);
    for port in ports.into_iter().take(want) {
        held.push(
            UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
                .with_context(|| format!("port {port} of our own namespace"))?,
        );
    }
    let again = || Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    pairs(&mut held, random, (1, PAIRS), again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_bound_where_it_is_permitted_and_else_it_says_why() {
        match available() {
            Ok(()) => {
                let range = std::fs::read_to_string(RANGE);
                let measures = run(&Params::new().with("used", 5000)).unwrap();
                assert!(measures.get("us_per_alloc").unwrap() > 0.0);
                let after = std::fs::read_to_string(RANGE);
                assert_eq!(range.ok(), after.ok(), "the range of others is as it was");
            }
            Err(why) => assert!(
                why.contains("run as root") || why.contains("ulimit"),
                "{why}"
            ),
        }
        assert!(run(&Params::new().with("used", 10_001)).is_err());
    }
}
