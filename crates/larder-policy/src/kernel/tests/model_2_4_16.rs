//! 2.4.16 once more, on plain vectors. A vector's first element is the list's head.

use super::super::super::{Arrival, Frame, FrameState, Frames, Reason};
use super::super::Linux2416;
use super::random::{Model, agree};

type Page = (Frame, bool);

#[derive(Default)]
struct Plain {
    active_list: Vec<Page>,
    inactive_list: Vec<Page>,
    nr_pages: usize,
    priority: usize,
    max_scan: usize,
}

impl Plain {
    fn shrink_caches(&mut self) {
        let mut ratio =
            self.nr_pages * self.active_list.len() / ((self.inactive_list.len() + 1) * 2);
        // The walk goes to the head as it was at each step; pages put there in between are met again.
        let mut at = self.active_list.len();
        while ratio > 0 && at > 0 {
            at -= 1;
            let (frame, referenced) = self.active_list.remove(at);
            if referenced {
                self.active_list.insert(0, (frame, false));
                if at > 0 {
                    at += 1;
                }
            } else {
                self.inactive_list.insert(0, (frame, true));
                ratio -= 1;
            }
        }
        self.max_scan = self.inactive_list.len() / self.priority;
    }

    fn forget(&mut self, frame: Frame) {
        self.active_list.retain(|page| page.0 != frame);
        self.inactive_list.retain(|page| page.0 != frame);
    }
}

impl Model for Plain {
    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        let used = arrival.reason != Reason::Readahead;
        self.inactive_list.insert(0, (frame, used));
    }

    fn touch(&mut self, frame: Frame, _: u32) {
        if let Some(page) = self.active_list.iter_mut().find(|page| page.0 == frame) {
            page.1 = true;
            return;
        }
        let mut pages = self.inactive_list.iter();
        let at = pages.position(|page| page.0 == frame).unwrap();
        if self.inactive_list[at].1 {
            self.inactive_list.remove(at);
            self.active_list.insert(0, (frame, false));
        } else {
            self.inactive_list[at].1 = true;
        }
    }

    fn evict(&mut self, frames: &mut dyn Frames) -> bool {
        let mut begun = 0;
        loop {
            if self.nr_pages == 0 {
                begun += 1;
                if begun == 2 {
                    break;
                }
                self.nr_pages = 32;
                self.priority = 6;
                self.shrink_caches();
            }
            while self.max_scan > 0 && !self.inactive_list.is_empty() {
                self.max_scan -= 1;
                let page = self.inactive_list.pop().unwrap();
                if frames.state(page.0) == FrameState::Clean {
                    frames.evicted(page.0, None);
                    self.nr_pages -= 1;
                    return true;
                }
                if frames.state(page.0) == FrameState::Dirty {
                    frames.write_back(page.0);
                }
                self.inactive_list.insert(0, page);
            }
            self.max_scan = 0;
            self.priority -= 1;
            if self.priority == 0 {
                self.nr_pages = 0;
            } else {
                self.shrink_caches();
            }
        }
        for state in [FrameState::Clean, FrameState::Dirty] {
            let all = self.active_list.iter().chain(&self.inactive_list);
            let found = all.rev().find(|page| frames.state(page.0) == state);
            if let Some(&(frame, _)) = found {
                self.forget(frame);
                frames.evicted(frame, None);
                return true;
            }
        }
        false
    }

    fn remove(&mut self, frame: Frame) {
        self.forget(frame);
    }
}

#[test]
fn linux_2_4_16_agrees_with_a_plain_restatement() {
    agree(Linux2416::new, |_| Plain::default());
}
