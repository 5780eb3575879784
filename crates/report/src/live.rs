//! Sentences about the clients of a live device, for the terminal and the page.

use floatgate_core::summary::Live;

use crate::number::{grouped, percent};

/// Describes the delays on the side of the clients, in a sentence without a period for each frontend. Returns nothing
/// for a device without real time, and for frontends without judged replies.
pub fn clients(live: &Live) -> impl Iterator<Item = String> {
    let frontends = live.frontends.iter().filter(|frontend| live.pace == "timed" && frontend.replies > 0);
    frontends.map(|frontend| match frontend.client_late_share {
        Some(share) => {
            let (name, late, turns) = (&frontend.name, percent(Some(share)), grouped(frontend.client_turns));
            format!("{name} clients sent their next request late in {late} of {turns} turns")
        }
        None => format!(
            "{} clients were not judged, because several requests were outstanding or there were few requests: compare \
             the percentiles that they measure with these",
            frontend.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use floatgate_core::summary::LiveFrontend;

    use super::*;

    #[test]
    fn clients_are_judged_by_their_turns() {
        let nbd = LiveFrontend {
            name: "nbd".to_owned(),
            replies: 1300,
            client_turns: 1200,
            client_late_share: Some(0.031),
            ..LiveFrontend::default()
        };
        let deep = LiveFrontend { name: "vhost-user".to_owned(), replies: 9, ..LiveFrontend::default() };
        let unused = LiveFrontend { replies: 0, ..deep.clone() };
        let mut live = Live { pace: "timed".to_owned(), frontends: vec![nbd, deep, unused], ..Live::default() };
        let said: Vec<String> = clients(&live).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[0], "nbd clients sent their next request late in 3.1 % of 1,200 turns");
        assert!(said[1].starts_with("vhost-user clients were not judged, because several requests"), "{said:?}");
        live.pace = "at-once".to_owned();
        assert_eq!(clients(&live).count(), 0);
    }
}
