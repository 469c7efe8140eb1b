//! Several clients at once.

use super::super::Record;
use super::draw::Draw;

/// Requests of all clients in one order: the next is of a client drawn at random among those that have not ended, whole requests
/// at a time. The records' tenant becomes the client's number, and their request numbers count through.
///
/// ```
/// use larder_sim::workload::{dbench_client, interleave};
/// let both = interleave(vec![dbench_client(1, 0, 1), dbench_client(1, 1, 1)], 1);
/// let tenants: std::collections::BTreeSet<u16> = both.map(|record| record.tenant).collect();
/// assert_eq!(tenants.len(), 2);
/// ```
pub fn interleave<I>(clients: Vec<I>, seed: u64) -> impl Iterator<Item = Record> + Send
where
    I: Iterator<Item = Record> + Send,
{
    let mut clients: Vec<(u16, core::iter::Peekable<I>)> = clients
        .into_iter()
        .zip(0..)
        .map(|(client, number)| (number, client.peekable()))
        .collect();
    let mut draw = Draw::new(seed, 4);
    let mut request = u32::MAX;
    // The client whose request is under way, by index, and the request's number with the client.
    let mut under_way: Option<(usize, u32)> = None;
    core::iter::from_fn(move || {
        loop {
            let at = match under_way {
                Some((at, number)) => {
                    let more = clients[at]
                        .1
                        .peek()
                        .is_some_and(|next| next.request == number);
                    if !more {
                        under_way = None;
                        continue;
                    }
                    at
                }
                None => {
                    if clients.is_empty() {
                        return None;
                    }
                    let at = draw.below(clients.len() as u64) as usize;
                    let Some(next) = clients[at].1.peek() else {
                        drop(clients.swap_remove(at));
                        continue;
                    };
                    under_way = Some((at, next.request));
                    request = request.wrapping_add(1);
                    at
                }
            };
            let (tenant, client) = &mut clients[at];
            return client.next().map(|record| Record {
                tenant: *tenant,
                request,
                ..record
            });
        }
    })
}
