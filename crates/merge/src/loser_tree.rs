//! A loser tree: each new entry replaces the winner of a tournament and replays one path.
//!
//! ```text
//!            winner                 each inner node keeps the loser of its match, with its code;
//!           [node 1]                the codes on the winner's path are all relative to the
//!        [2]       [3]              winner, because all these players lost to the winner
//!       0   1     2   3             leaf i is node i + n, its parent (i + n) / 2
//! ```
//!
//! Codes decide a match (`order.rs`). In a tie the caller compares the keys.

/// A source that lost a match, or the winner; with the code of its current entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Player {
    pub(crate) code: u64,
    pub(crate) source: u32,
}

/// The caller's decision of a match between two players with equal codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TieBreak {
    /// Whether the first player wins.
    pub(crate) first_wins: bool,
    /// The loser's code relative to the winner.
    pub(crate) loser_code: u64,
}

/// The losers of all matches, and the winner; empty before the first tournament.
#[derive(Debug, Default)]
pub(crate) struct LoserTree {
    /// Node 0 is unused.
    losers: Vec<Player>,
    winner: Player,
    /// Winners of subtrees while a tournament is played.
    winners: Vec<Player>,
}

impl LoserTree {
    /// Plays all matches among sources with the given codes, which are relative to no base.
    pub(crate) fn play_all(&mut self, codes: &[u64], mut tie: impl FnMut(u32, u32) -> TieBreak) {
        let n = codes.len();
        if n == 0 {
            return;
        }
        self.losers.resize(n, Player::default());
        self.winners.resize(2 * n, Player::default());
        // Bottom up: leaves are the nodes n..2n.
        for (i, &code) in codes.iter().enumerate() {
            self.winners[n + i] = Player { code, source: i as u32 };
        }
        for node in (1..n).rev() {
            let (a, b) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let (winner, loser) = play(a, b, &mut tie);
            self.winners[node] = winner;
            self.losers[node] = loser;
        }
        self.winner = self.winners[1];
    }

    /// Returns the winning source and its code, which is relative to the previous winner; after
    /// [`play_all`](Self::play_all), to no base.
    #[inline(always)]
    pub(crate) fn winner(&self) -> Player {
        self.winner
    }

    /// Replaces the winner's entry by the next entry of its source, and replays the matches on its
    /// path. `code` is the code of the next entry relative to the replaced one.
    #[inline(always)]
    pub(crate) fn replace(&mut self, code: u64, mut tie: impl FnMut(u32, u32) -> TieBreak) {
        let n = self.losers.len();
        let mut winner = Player { code, source: self.winner.source };
        let mut node = (winner.source as usize + n) / 2;
        while node > 0 {
            let other = self.losers[node];
            if other.code == winner.code {
                let (ahead, behind) = play(winner, other, &mut tie);
                winner = ahead;
                self.losers[node] = behind;
            } else {
                // Both outcomes are computed and one is selected: the winner is unpredictable, and
                // a mispredicted branch costs more than all other work here.
                let swap = other.code < winner.code;
                let ahead_code = if swap { other.code } else { winner.code };
                let behind_code = if swap { winner.code } else { other.code };
                let ahead_source = if swap { other.source } else { winner.source };
                let behind_source = if swap { winner.source } else { other.source };
                self.losers[node] = Player { code: behind_code, source: behind_source };
                winner = Player { code: ahead_code, source: ahead_source };
            }
            node /= 2;
        }
        self.winner = winner;
    }
}

#[inline(always)]
fn play(a: Player, b: Player, tie: &mut impl FnMut(u32, u32) -> TieBreak) -> (Player, Player) {
    if a.code < b.code {
        return (a, b);
    }
    if b.code < a.code {
        return (b, a);
    }
    let verdict = tie(a.source, b.source);
    let (winner, loser) = if verdict.first_wins { (a, b) } else { (b, a) };
    (winner, Player { code: verdict.loser_code, source: loser.source })
}
