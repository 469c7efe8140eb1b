//! Every algorithm against a set of what lives, and where two must agree, against each other.

use larder_lab::contestants::getpid::{
    Adaptive, Algo0, Andrea, Bill, GetPid, Idr, Locked, Near, PID_MAX, Packed, Plain, Random31,
    Space, Tasks, Window256, algo_1, algo_1_post, algo_2, algo_2_256_post, algo_2_post,
    bill_as_posted, crossover_for, larder_ids, pidmap,
};
use larder_lab::contestants::ids::Pidmap;

/// Plays rounds of deaths and births; every id handed out must be free, and none may be missing when all are full.
fn play(mut pids: impl GetPid, most: usize, rounds: usize) -> Vec<u32> {
    let mut tasks = Tasks::<Packed>::new(PID_MAX as usize);
    let mut random = Random31::new(7);
    let mut given = Vec::new();
    for round in 0..rounds {
        while tasks.len() < most {
            let Some(pid) = pids.get(&tasks) else { break };
            assert!((1..PID_MAX).contains(&pid), "{pid} is no pid");
            assert!(tasks.add(pid), "round {round}: {pid} is in use");
            given.push(pid);
        }
        let mut kill = tasks.len() / 3;
        while kill > 0 {
            let pid = random.draw() & (PID_MAX - 1);
            if tasks.remove(pid) {
                pids.freed(pid);
                kill -= 1;
            }
        }
    }
    given
}

#[test]
fn no_algorithm_hands_out_an_id_in_use() {
    let most = 3000;
    let mut all: Vec<(&str, Vec<u32>)> = vec![
        ("algo-0", play(Algo0::new(1, 1), most, 40)),
        ("algo-1", play(algo_1::<Plain>(), most, 40)),
        ("algo-1 locked", play(algo_1::<Locked>(), most, 40)),
        ("algo-1-post", play(algo_1_post::<Plain>(), most, 40)),
        ("algo-2", play(algo_2::<Plain>(), most, 40)),
        ("algo-2 locked", play(algo_2::<Locked>(), most, 40)),
        ("algo-2-post", play(algo_2_post::<Plain>(), most, 40)),
        ("algo-2-256", play(Window256::default(), most, 40)),
        (
            "algo-2-256-post",
            play(algo_2_256_post::<Plain>(), most, 40),
        ),
        ("adaptive", play(Adaptive::new(2500), most, 40)),
        ("andrea", play(Andrea::<Locked>::default(), most, 40)),
        ("bill", play(Bill::default(), most, 40)),
        ("pidmap", play(pidmap(), most, 40)),
        ("idr", play(Idr::default(), most, 40)),
    ];
    let counts: Vec<usize> = all.iter().map(|(_, given)| given.len()).collect();
    assert!(
        counts.iter().all(|n| *n == counts[0] && *n > 40_000),
        "{counts:?}"
    );
    // All that go forward from the last id over a true map give the same ids.
    let (_, forward) = all.remove(0);
    for (name, given) in all {
        if matches!(
            name,
            "algo-1" | "algo-1 locked" | "andrea" | "bill" | "pidmap" | "idr" | "algo-2-256"
        ) {
            // Interval algorithms do not see what is freed within an interval; the maps do. Only the former agree.
            let walks = matches!(name, "algo-1" | "algo-1 locked" | "andrea");
            let same = given == forward;
            assert!(same || !walks, "{name} differs from algo-0");
        }
    }
}

#[test]
fn the_last_id_is_found_and_then_none() {
    fn check(name: &str, mut pids: impl GetPid) {
        let mut tasks = Tasks::<Packed>::new(PID_MAX as usize);
        for pid in 1..PID_MAX {
            if pid != 20_000 {
                tasks.add(pid);
                pids.taken(pid);
            }
        }
        let found = pids.get(&tasks);
        assert_eq!(found, Some(20_000), "{name}");
        tasks.add(20_000);
        assert_eq!(pids.get(&tasks), None, "{name} when all are in use");
        tasks.remove(77);
        pids.freed(77);
        assert_eq!(pids.get(&tasks), Some(77), "{name} recovers");
    }
    check("algo-1", algo_1::<Plain>());
    check("algo-1-post", algo_1_post::<Plain>());
    check("algo-2", algo_2::<Plain>());
    check("algo-2-post", algo_2_post::<Plain>());
    check("algo-2-256", Window256::default());
    check("andrea", Andrea::<Plain>::default());
    check("bill", Bill::default());
    check("pidmap", pidmap());
    check("idr", Idr::default());
}

#[test]
fn the_posted_tower_hands_out_an_id_in_use() {
    let mut tasks = Tasks::<Packed>::new(PID_MAX as usize);
    let mut bill = bill_as_posted();
    for _ in 0..10 {
        let pid = bill.get(&tasks).unwrap();
        assert!(tasks.add(pid));
    }
    // The cursor is at 10; 12 lives; 3 is free again.
    bill.taken(11);
    tasks.add(11);
    tasks.remove(3);
    bill.freed(3);
    let again = bill.get(&tasks).unwrap();
    assert!(tasks.has(again), "{again} was free after all");
    // The mended one goes on to the next free id.
    let mut mended = GetPid::after(Bill::default(), 10, PID_MAX);
    (1..=11)
        .filter(|pid| *pid != 3)
        .for_each(|pid| mended.taken(pid));
    assert_eq!(mended.get(&tasks), Some(12));
}

#[test]
fn the_list_keeps_its_order_and_its_places() {
    let mut tasks = Tasks::<Near>::new(5);
    for pid in [5, 3, 9, 7, 1] {
        assert!(tasks.add(pid));
    }
    assert!(!tasks.add(11), "no room");
    assert!(tasks.remove(5) && tasks.remove(7) && !tasks.remove(7));
    assert!(!tasks.add(3) && !tasks.add(PID_MAX));
    assert!(tasks.add(2));
    let mut seen = Vec::new();
    assert!(tasks.walk(|task| {
        assert_eq!(
            (task.pgrp, task.session, task.tgid),
            (task.pid, task.pid, task.pid)
        );
        seen.push(task.pid);
        true
    }));
    assert_eq!((seen, tasks.len()), (vec![3, 9, 1, 2], 4));
    let mut first = 0;
    assert!(!tasks.walk(|task| {
        first = task.pid;
        false
    }));
    assert_eq!(first, 3);
}

#[test]
fn large_spaces_fill_to_the_last_id() {
    let mut map = Pidmap::new(1..1 << 17);
    let mut idr = Idr::with_end(1 << 13);
    assert_eq!(
        (0..).map_while(|_| Space::alloc(&mut map)).count(),
        (1 << 17) - 1
    );
    assert_eq!((0..).map_while(|_| idr.alloc()).count(), (1 << 13) - 1);
    let mut free = |id| Space::free(&mut map, id);
    assert!(free(70_000) && !free(70_000) && !free(1 << 40));
    assert!(idr.free(5000) && !idr.free(5000) && !idr.free(1 << 40));
    let mut alloc = || Space::alloc(&mut map);
    assert_eq!((alloc(), alloc()), (Some(70_000), None));
    assert_eq!((idr.alloc(), idr.alloc()), (Some(5000), None));
    assert!((1..1 << 13).all(|id| idr.free(id)));
    assert_eq!(idr.alloc(), Some(5001));
}

#[test]
fn what_keeps_a_map_goes_on_after_the_last_id() {
    fn check(name: &str, pids: impl GetPid) {
        let tasks = Tasks::<Packed>::new(2);
        let mut pids = pids.after(100, PID_MAX);
        assert_eq!(pids.get(&tasks), Some(101), "{name}");
    }
    check("pidmap", pidmap());
    check("idr", Idr::default());
    check("bill", Bill::default());
    let cyclic = larder::ids::rule::Cyclic;
    check("larder", larder_ids(PID_MAX.into(), cyclic).expect("made"));
}

#[test]
fn the_adaptive_threshold_follows_the_cost_of_marking() {
    assert_eq!(crossover_for(0.5), 0);
    assert!((20_000..24_000).contains(&crossover_for(1.9)));
    assert!((27_000..29_000).contains(&crossover_for(2.6)));
    assert_eq!(crossover_for(1e9), PID_MAX);
}
