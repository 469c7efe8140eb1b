//! 6.x once more, on plain vectors. A vector's first element is the list's head.

use super::super::super::{Admission, Arrival, Frame, FrameState, Frames, Reason, Shadow};
use super::super::{Mglru, TwoList};
use super::random::{Model, agree};

#[derive(Debug, Clone, Copy, Default)]
struct Folio {
    frame: Frame,
    request: u32,
    referenced: bool,
    workingset: bool,
    /// MGLRU: uses beyond the first.
    refs: u64,
}

impl Folio {
    fn new(frame: Frame, arrival: Arrival) -> Self {
        Self {
            frame,
            request: match arrival.reason {
                Reason::Readahead => arrival.request.wrapping_sub(1),
                _ => arrival.request,
            },
            ..Self::default()
        }
    }
}

fn take(list: &mut Vec<Folio>, frame: Frame) -> Option<Folio> {
    let at = list.iter().position(|folio| folio.frame == frame)?;
    Some(list.remove(at))
}

/// Up to 32 from the laundry's end that are not dirty any more.
fn rotate_written(laundry: &mut Vec<Folio>, frames: &dyn Frames) -> Vec<Folio> {
    let mut written = Vec::new();
    while written.len() < 32
        && let Some(folio) = laundry.last()
        && frames.state(folio.frame) != FrameState::Dirty
    {
        written.extend(laundry.pop());
    }
    written
}

fn any(lists: &[&Vec<Folio>], frames: &dyn Frames) -> Option<Frame> {
    [FrameState::Clean, FrameState::Dirty]
        .iter()
        .find_map(|&state| {
            let mut all = lists.iter().flat_map(|list| list.iter().rev());
            all.find(|folio| frames.state(folio.frame) == state)
                .map(|folio| folio.frame)
        })
}

#[derive(Default)]
struct Lists {
    active: Vec<Folio>,
    inactive: Vec<Folio>,
    laundry: Vec<Folio>,
    nonresident_age: u64,
    nr_to_reclaim: usize,
    refaults: bool,
}

impl Lists {
    fn nr_active(&self) -> usize {
        self.active.len() + self.laundry.len()
    }

    fn shrink_active_list(&mut self) {
        for _ in 0..32 {
            if let Some(mut folio) = self.active.pop() {
                folio.workingset = true;
                self.inactive.insert(0, folio);
            }
        }
    }

    fn leave(&mut self, frames: &mut dyn Frames, frame: Frame) {
        let lists = [&mut self.active, &mut self.inactive, &mut self.laundry];
        let folio = lists
            .into_iter()
            .find_map(|list| take(list, frame))
            .unwrap();
        let shadow = 2 * self.nonresident_age + u64::from(folio.workingset);
        self.nonresident_age += 1;
        frames.evicted(frame, Some(Shadow::new(shadow)));
    }

    fn mark(&mut self, frame: Frame) {
        let mut all = self.active.iter_mut().chain(&mut self.laundry);
        if let Some(folio) = all.find(|folio| folio.frame == frame) {
            folio.referenced = true;
            return;
        }
        let mut folio = take(&mut self.inactive, frame).unwrap();
        if folio.referenced {
            folio.referenced = false;
            self.active.insert(0, folio);
            self.nonresident_age += 1;
        } else {
            panic!("the caller marks");
        }
    }
}

impl Model for Lists {
    fn miss(&mut self, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(shadow) = shadow.filter(|_| reason != Reason::Write) else {
            return Admission(0);
        };
        let distance = self.nonresident_age - shadow.get() / 2;
        if distance > self.nr_active() as u64 {
            return Admission(0);
        }
        self.nonresident_age += 1;
        self.refaults = true;
        Admission(if shadow.get() % 2 == 1 { 3 } else { 1 })
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let mut folio = Folio::new(frame, arrival);
        folio.referenced = arrival.reason != Reason::Readahead;
        folio.workingset = arrival.admission.0 == 3;
        if arrival.admission.0 > 0 {
            self.active.insert(0, folio);
        } else {
            self.inactive.insert(0, folio);
        }
    }

    fn touch(&mut self, frame: Frame, request: u32) {
        let mut all = self
            .active
            .iter_mut()
            .chain(&mut self.inactive)
            .chain(&mut self.laundry);
        let folio = all.find(|folio| folio.frame == frame).unwrap();
        if folio.request == request {
            return;
        }
        folio.request = request;
        if folio.referenced {
            self.mark(frame);
        } else {
            folio.referenced = true;
        }
    }

    fn evict(&mut self, frames: &mut dyn Frames) -> bool {
        let written = rotate_written(&mut self.laundry, frames);
        self.inactive.extend(written);
        if self.nr_to_reclaim == 0 {
            self.nr_to_reclaim = 32;
            if core::mem::take(&mut self.refaults) {
                self.shrink_active_list();
            }
            while self.inactive.len() < self.nr_active() && !self.active.is_empty() {
                self.shrink_active_list();
            }
        }
        for _ in 0..self.inactive.len() {
            let mut folio = *self.inactive.last().unwrap();
            if frames.state(folio.frame) == FrameState::Clean {
                self.nr_to_reclaim -= 1;
                self.leave(frames, folio.frame);
                return true;
            }
            self.inactive.pop();
            if frames.state(folio.frame) == FrameState::Dirty {
                frames.write_back(folio.frame);
                self.laundry.insert(0, folio);
            } else {
                folio.referenced = false;
                self.inactive.insert(0, folio);
            }
        }
        self.nr_to_reclaim = 0;
        let found = any(&[&self.inactive, &self.active, &self.laundry], frames);
        if let Some(frame) = found {
            self.leave(frames, frame);
        }
        found.is_some()
    }

    fn remove(&mut self, frame: Frame) {
        let lists = [&mut self.active, &mut self.inactive, &mut self.laundry];
        let found = lists.into_iter().find_map(|list| take(list, frame));
        assert!(found.is_some());
    }
}

#[test]
fn two_list_agrees_with_a_plain_restatement() {
    agree(TwoList::new, |_| Lists::default());
}

/// Generations as they are numbered, oldest first; each vector's first element is its head.
struct Plain {
    generations: Vec<Vec<Folio>>,
    min_seq: u64,
    laundry: Vec<Folio>,
    /// By tier: averages of refaults and of the rest, then since: refaulted, evicted or protected.
    tiers: [[u64; 4]; 4],
    nr_to_reclaim: usize,
    priority: u32,
}

fn tier(folio: &Folio) -> usize {
    let refs = if folio.referenced { folio.refs + 1 } else { 0 };
    match (folio.workingset, refs) {
        (true, _) => 3,
        (_, 0 | 1) => 0,
        (_, 2) => 1,
        _ => 2,
    }
}

fn complete(folio: &Folio) -> bool {
    folio.referenced && folio.refs == 3 && folio.workingset
}

fn lru_gen_inc_refs(folio: &mut Folio) {
    if !folio.referenced {
        folio.referenced = true;
        folio.refs = 0;
    } else if folio.refs == 3 {
        folio.workingset = true;
    } else {
        folio.refs += 1;
    }
}

impl Plain {
    fn new() -> Self {
        Self {
            generations: vec![Vec::new(); 4],
            min_seq: 0,
            laundry: Vec::new(),
            tiers: [[0; 4]; 4],
            nr_to_reclaim: 0,
            priority: 12,
        }
    }

    fn nr(&self) -> usize {
        self.generations.iter().map(Vec::len).sum::<usize>() + self.laundry.len()
    }

    fn reset_ctrl_pos(&mut self) {
        for [avg_refaulted, avg_total, refaulted, total] in &mut self.tiers {
            *avg_refaulted = (*avg_refaulted + *refaulted) / 2;
            *avg_total = (*avg_total + *total) / 2;
            (*refaulted, *total) = (0, 0);
        }
    }

    fn get_tier_idx(&self) -> usize {
        let position = |tier: usize| {
            let [avg_refaulted, avg_total, refaulted, total] = self.tiers[tier];
            (avg_refaulted + refaulted, avg_total + total)
        };
        let sp = position(0);
        for tier in 1..4 {
            let pv = position(tier);
            if pv.0 >= 64 && pv.0 * (sp.1 + 64) * 2 > (sp.0 + 1) * pv.1 * 3 {
                return tier - 1;
            }
        }
        3
    }

    fn inc_gen(&mut self, mut folio: Folio, count: bool, head: bool) {
        if count && !complete(&folio) {
            self.tiers[tier(&folio)][3] += 1;
        }
        folio.referenced = false;
        folio.refs = 0;
        if head {
            self.generations[1].insert(0, folio);
        } else {
            self.generations[1].push(folio);
        }
    }

    fn add(&mut self, folio: Folio) {
        // lru_gen_folio_seq: max_seq - 4 + 1, or one more, but no older than there is
        let place = self.generations.len() as i64 - 4 + i64::from(folio.workingset);
        self.generations[place.max(0) as usize].insert(0, folio);
    }

    fn leave(&mut self, frames: &mut dyn Frames, frame: Frame) {
        let lists = self.generations.iter_mut().chain([&mut self.laundry]);
        let folio = lists
            .into_iter()
            .find_map(|list| take(list, frame))
            .unwrap();
        self.tiers[tier(&folio)][3] += 1;
        let refs = if folio.referenced { folio.refs } else { 0 };
        let token = self.min_seq * 4 + refs;
        let shadow = token * 2 + u64::from(folio.workingset);
        frames.evicted(frame, Some(Shadow::new(shadow)));
    }

    fn try_to_inc_min_seq(&mut self) {
        let mut moved = false;
        while self.generations.len() > 1 && self.generations[0].is_empty() {
            if self.generations.len() < 2 + 1 {
                break;
            }
            self.generations.remove(0);
            self.min_seq += 1;
            moved = true;
        }
        // min_seq + 2 <= max_seq held for the last step, so two may become one less than three
        if moved {
            self.reset_ctrl_pos();
        }
    }
}

impl Model for Plain {
    fn miss(&mut self, shadow: Option<Shadow>, reason: Reason) -> Admission {
        let Some(shadow) = shadow.filter(|_| reason != Reason::Write) else {
            return Admission(0);
        };
        let max_seq = self.min_seq + self.generations.len() as u64 - 1;
        let token = shadow.get() / 2;
        if max_seq - token / 4 >= 4 {
            return Admission(0);
        }
        let folio = Folio {
            referenced: true,
            refs: token % 4,
            workingset: shadow.get() % 2 == 1,
            ..Folio::default()
        };
        self.tiers[tier(&folio)][2] += 1;
        Admission(8 + shadow.get() % 8)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let mut folio = Folio::new(frame, arrival);
        let restored = arrival.admission.0;
        folio.workingset = restored % 2 == 1;
        if !folio.workingset {
            folio.refs = restored / 2 % 4;
        }
        if arrival.reason != Reason::Readahead {
            lru_gen_inc_refs(&mut folio);
        }
        self.add(folio);
    }

    fn touch(&mut self, frame: Frame, request: u32) {
        let lists = self.generations.iter_mut().chain([&mut self.laundry]);
        let mut all = lists.flat_map(|list| list.iter_mut());
        let folio = all.find(|folio| folio.frame == frame).unwrap();
        if folio.request != request {
            folio.request = request;
            lru_gen_inc_refs(folio);
        }
    }

    fn evict(&mut self, frames: &mut dyn Frames) -> bool {
        let written = rotate_written(&mut self.laundry, frames);
        self.generations[0].extend(written);
        if self.nr_to_reclaim == 0 {
            self.nr_to_reclaim = 32;
            self.priority = 6; // up to 2047 pages
        }
        loop {
            let generations = self.generations.len();
            if generations < 3 || (generations == 3 && self.priority != 12) {
                self.generations.push(Vec::new());
            }
            let mut budget = (self.nr() >> self.priority).max(1);
            while budget > 0 && self.generations.len() > 2 {
                let kept = self.get_tier_idx();
                let mut found = None;
                while budget > 0 && self.generations[0].last().is_some() {
                    budget -= 1;
                    let mut folio = *self.generations[0].last().unwrap();
                    if tier(&folio) > kept || complete(&folio) {
                        self.generations[0].pop();
                        self.inc_gen(folio, true, true);
                        continue;
                    }
                    match frames.state(folio.frame) {
                        FrameState::Clean => {
                            found = Some(folio.frame);
                            break;
                        }
                        FrameState::Dirty => {
                            self.generations[0].pop();
                            folio.referenced = false;
                            folio.refs = 0;
                            self.laundry.insert(0, folio);
                            frames.write_back(folio.frame);
                        }
                        FrameState::Pinned => {
                            self.generations[0].pop();
                            let last = self.generations.len() - 1;
                            let would = last as i64 - 3 + i64::from(folio.workingset);
                            if would <= 0 {
                                folio.referenced = false;
                                folio.refs = 0;
                                let to = last - usize::from(!folio.workingset);
                                self.generations[to].insert(0, folio);
                            } else {
                                self.generations[would as usize].insert(0, folio);
                            }
                        }
                    }
                }
                if let Some(frame) = found {
                    self.nr_to_reclaim -= 1;
                    self.leave(frames, frame);
                }
                self.try_to_inc_min_seq();
                if found.is_some() {
                    return true;
                }
            }
            if self.priority == 0 {
                break;
            }
            self.priority -= 1;
        }
        self.nr_to_reclaim = 0;
        let lists: Vec<&Vec<Folio>> = self.generations.iter().chain([&self.laundry]).collect();
        let found = any(&lists, frames);
        if let Some(frame) = found {
            self.leave(frames, frame);
        }
        found.is_some()
    }

    fn remove(&mut self, frame: Frame) {
        let lists = self.generations.iter_mut().chain([&mut self.laundry]);
        let found = lists.into_iter().find_map(|list| take(list, frame));
        assert!(found.is_some());
    }
}

#[test]
fn mglru_agrees_with_a_plain_restatement() {
    agree(Mglru::new, |_| Plain::new());
}
