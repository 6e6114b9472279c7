//! The naive model of the lock manager: locks are sets of points, and every question is a loop over
//! all locks.

use std::collections::{BTreeMap, BTreeSet};

use crate::LockMode;
use crate::graph::WaitState;

pub(super) const KEYS: u8 = 10;

/// A set of points. Point 2n is the key `[n]`, from n = 1 on; point 2n + 1 is all keys between this
/// key and the next; points 0 and 1 are the keys before the first key.
pub(super) type Points = u64;
pub(super) const END: u8 = 2 * KEYS + 2;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Row,
    Gap,
    Scan,
    Range,
}

pub(super) type Sort = (Kind, LockMode);
pub(super) const S: LockMode = LockMode::Shared;
pub(super) const X: LockMode = LockMode::Exclusive;

/// Returns whether locks of these two sorts exclude each other. These are the rules of the table in
/// docs/design/transactions.md.
pub(super) fn excludes(a: Sort, b: Sort) -> bool {
    let one = |a: Sort, b: Sort| match a {
        (Kind::Row, X) | (Kind::Range, X) => true,
        (Kind::Gap, _) => false,
        (Kind::Scan, X) => matches!(b.0, Kind::Row | Kind::Range),
        _ => false,
    };
    one(a, b) || one(b, a)
}

/// Returns whether a lock of sort `own` makes a request of sort `wanted`, by the same actor and for
/// the same points, unnecessary. `false` for own row locks, which [`Actor::covered`] compares.
pub(super) fn covers(own: Sort, wanted: Sort) -> bool {
    match (own, wanted) {
        ((Kind::Row, _), _) => false,
        (_, (Kind::Gap, _)) => true,
        ((Kind::Gap, _), _) => false,
        ((Kind::Range, mode), wanted) => mode >= wanted.1,
        (_, (Kind::Row, wanted)) => wanted == S,
        ((_, mode), (Kind::Range, S)) => mode == X,
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) points: Points,
    pub(super) sort: Sort,
}

#[derive(Clone, Debug)]
pub(super) struct ModelRequest {
    pub(super) table: usize,
    pub(super) parts: Vec<Part>,
    /// For each part, whether it goes before all waiters.
    pub(super) first: Vec<bool>,
    /// Earlier waiters that waited for the actor, directly or not, when it made the request.
    pub(super) passed: BTreeSet<u64>,
    /// The lock that the actor holds once the request is granted.
    pub(super) held: Part,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Actor {
    pub(super) id: u64,
    pub(super) work: u64,
    pub(super) held: Vec<(usize, Part)>,
    pub(super) upgraded: BTreeSet<(usize, Points)>,
    /// Position in the queue, and the request that waits.
    pub(super) waits: Option<(u64, ModelRequest)>,
    pub(super) is_victim: bool,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) actors: Vec<Actor>,
    pub(super) queued: u64,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Held,
    Granted,
    Waits,
    Busy,
}

impl Actor {
    pub(super) fn covered(&self, table: usize, part: Part) -> bool {
        let mine = self.held.iter().filter(|(at, _)| *at == table).map(|(_, held)| held);
        let row = |held: &&Part| {
            part.sort.0 == Kind::Row
                && held.sort.0 == Kind::Row
                && held.points == part.points
                && held.sort.1 >= part.sort.1
        };
        let by = mine.clone().filter(|held| covers(held.sort, part.sort));
        mine.clone().any(|held| row(&held))
            || part.points & !by.fold(0, |points, held| points | held.points) == 0
    }

    pub(super) fn goes_first(&self, table: usize, part: Part) -> bool {
        let weakest = if part.sort.0 == Kind::Row { (Kind::Row, S) } else { (Kind::Gap, S) };
        let mine = self.held.iter().filter(|(at, _)| *at == table).map(|(_, held)| held);
        let ranges = mine.clone().filter(|held| held.sort.0 != Kind::Row);
        let all = ranges.fold(0, |points, held| points | held.points);
        self.covered(table, Part { sort: weakest, ..part }) || part.points & !all == 0
    }
}

impl Model {
    /// Returns the ids for which the waiting actor waits, ascending.
    pub(super) fn blockers(&self, at: usize) -> Vec<u64> {
        let Some((place, request)) = &self.actors[at].waits else { return Vec::new() };
        self.against(at, *place, request)
    }

    pub(super) fn against(&self, at: usize, place: u64, request: &ModelRequest) -> Vec<u64> {
        let mut blockers = BTreeSet::new();
        for other in self.actors.iter().filter(|other| other.id != self.actors[at].id) {
            for (part, first) in request.parts.iter().zip(&request.first) {
                let clash = |b: &Part| part.points & b.points != 0 && excludes(part.sort, b.sort);
                let held = other.held.iter().filter(|(table, _)| *table == request.table);
                if held.clone().any(|(_, held)| clash(held)) {
                    blockers.insert(other.id);
                }
                let Some((others, queued)) = &other.waits else { continue };
                if queued.table != request.table || *first {
                    continue;
                }
                let is_earlier = *others < place;
                for (b, b_first) in queued.parts.iter().zip(&queued.first) {
                    let goes_before = match is_earlier {
                        true => !request.passed.contains(&other.id),
                        false => *b_first && !self.holds_against(at, queued),
                    };
                    if clash(b) && goes_before {
                        blockers.insert(other.id);
                    }
                }
            }
        }
        blockers.into_iter().collect()
    }

    /// Whether the actor holds a lock that conflicts with a request.
    fn holds_against(&self, at: usize, request: &ModelRequest) -> bool {
        let held = self.actors[at].held.iter().filter(|(table, _)| *table == request.table);
        held.clone().any(|(_, held)| {
            let clash = |b: &Part| held.points & b.points != 0 && excludes(held.sort, b.sort);
            request.parts.iter().any(clash)
        })
    }

    pub(super) fn request(
        &mut self,
        at: usize,
        mut request: ModelRequest,
        may_wait: bool,
    ) -> Answer {
        request.parts.retain(|part| part.points != 0);
        let actor = &self.actors[at];
        if request.parts.iter().all(|part| actor.covered(request.table, *part)) {
            return Answer::Held;
        }
        let first = request.parts.iter().map(|part| actor.goes_first(request.table, *part));
        request.first = first.collect();
        self.queued += 1;
        let place = self.queued;
        let id = self.actors[at].id;
        let waiting = self.actors.iter().enumerate().filter(|(_, other)| other.waits.is_some());
        let waits_for =
            |other: usize| self.search(other, id, &mut BTreeSet::new(), &mut Vec::new());
        request.passed =
            waiting.filter(|(n, _)| waits_for(*n)).map(|(_, other)| other.id).collect();
        if self.against(at, place, &request).is_empty() {
            self.grant(at, &request);
            return Answer::Granted;
        }
        if !may_wait {
            return Answer::Busy;
        }
        self.actors[at].waits = Some((place, request));
        while let Some(cycle) = self.find_cycle(at) {
            let least = cycle.iter().min_by_key(|id| {
                let work = self.actors.iter().find(|actor| actor.id == **id).unwrap().work;
                (work, u64::MAX - **id)
            });
            let victim = self.actors.iter_mut().find(|actor| actor.id == *least.unwrap()).unwrap();
            victim.is_victim = true;
        }
        Answer::Waits
    }

    pub(super) fn find_cycle(&self, from: usize) -> Option<Vec<u64>> {
        let goal = self.actors[from].id;
        let (mut seen, mut path) = (BTreeSet::new(), Vec::new());
        self.search(from, goal, &mut seen, &mut path).then_some(path)
    }

    pub(super) fn search(
        &self,
        at: usize,
        goal: u64,
        seen: &mut BTreeSet<usize>,
        path: &mut Vec<u64>,
    ) -> bool {
        if self.actors[at].is_victim {
            return false;
        }
        path.push(self.actors[at].id);
        for blocker in self.blockers(at) {
            let to = self.actors.iter().position(|actor| actor.id == blocker).unwrap();
            if blocker == goal || (seen.insert(to) && self.search(to, goal, seen, path)) {
                return true;
            }
        }
        path.pop();
        false
    }

    pub(super) fn grant(&mut self, at: usize, request: &ModelRequest) {
        let (actor, held) = (&mut self.actors[at], request.held);
        actor.work += 1;
        if held.sort.0 == Kind::Row {
            let same = |(table, part): &(usize, Part)| {
                *table == request.table && part.sort.0 == Kind::Row && part.points == held.points
            };
            if actor.held.iter().any(same) {
                actor.upgraded.insert((request.table, held.points));
            }
            actor.held.retain(|own| !same(own));
        }
        actor.held.push((request.table, held));
    }

    /// Removes the victims, and grants the requests that have become free. Returns the new state of
    /// each wait that was decided.
    pub(super) fn settle(&mut self) -> BTreeMap<u64, WaitState> {
        let mut fates = BTreeMap::new();
        for actor in self.actors.iter_mut().filter(|actor| actor.is_victim) {
            (actor.is_victim, actor.waits) = (false, None);
            fates.insert(actor.id, WaitState::Victim(Vec::new()));
        }
        loop {
            let free =
                |at: &usize| self.actors[*at].waits.is_some() && self.blockers(*at).is_empty();
            let place = |at: &usize| self.actors[*at].waits.as_ref().map(|(place, _)| *place);
            let first = (0..self.actors.len()).filter(free).min_by_key(place);
            let Some(at) = first else { return fates };
            if let Some((_, request)) = self.actors[at].waits.take() {
                self.grant(at, &request);
                fates.insert(self.actors[at].id, WaitState::Granted);
            }
        }
    }
}
