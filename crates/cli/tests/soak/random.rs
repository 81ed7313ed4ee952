//! A random number generator with a seed.

/// A splitmix64 generator: the same seed gives the same numbers.
pub(crate) struct SoakRng(u64);

impl SoakRng {
    /// Creates the generator of one actor.
    pub(crate) fn for_actor(seed: u64, actor: u64) -> SoakRng {
        SoakRng(seed ^ actor.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `count` - 1.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
