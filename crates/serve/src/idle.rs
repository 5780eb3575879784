//! Replacement of idle clients: if all slots of a frontend are taken, the client that has been idle longest loses its
//! slot to a new one.

use crate::clock::Wall;

/// Default idle time after which a client may lose its slot.
pub const LIMIT: Wall = Wall(30_000_000_000);

/// The slot of a client, with the number of earlier clients. `None` if the slot is free.
pub type Slot<C> = Option<(u64, C)>;

/// Frees the slot of the client that has been idle longest, if it has been idle for at least `limit`. Returns `true` if
/// a slot was freed.
pub fn free_idlest<C>(places: &mut [Slot<C>], limit: Wall, idle_for: impl Fn(&C) -> Wall) -> bool {
    let idle = |place: &Slot<C>| place.as_ref().map(|(_, client)| idle_for(client));
    let idlest = places.iter_mut().filter(|place| idle(place) >= Some(limit)).max_by_key(|place| idle(place));
    idlest.map(|place| *place = None).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_is_idle_longest_is_replaced() {
        let seconds = |s: u64| Wall(s * 1_000_000_000);
        let mut places: Vec<Slot<u64>> = vec![Some((0, 31)), None, Some((1, 40)), Some((2, 29)), Some((3, 0))];
        let part = |places: &mut [Slot<u64>]| free_idlest(places, LIMIT, |idle| seconds(*idle));
        assert!(part(&mut places));
        assert_eq!(places, [Some((0, 31)), None, None, Some((2, 29)), Some((3, 0))]);
        assert!(part(&mut places) && !part(&mut places));
        assert_eq!(places, [None, None, None, Some((2, 29)), Some((3, 0))]);
        places[3] = Some((2, 30));
        assert!(part(&mut places), "the limit is 30 s");
    }
}
