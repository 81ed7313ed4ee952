//! Servers that mean harm: whatever one does, it is bounded, and the others go on.

use crate::site::{Site, run};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_testkit::memory;

/// What a server does in a call, and what the caller hears of it.
const TABLE: &[(&str, &str)] = &[
    ("long_line", "a line of more than 8 MB"),
    ("bad_utf8", "hostile said: x"),
    ("deep", "hostile said: x"),
    ("noise", "hostile said: x"),
    ("much_noise", "too much that is no message"),
    ("twice", "first"),
    ("wrong_id", "hostile said: x"),
    ("half_line", "It may have run"),
    ("notifications", "hostile said: x"),
    ("elicitations", "hostile said: x"),
    ("odd_result", "does not fit"),
    ("list_change", "hostile said: x"),
    ("remote_ref", "hostile said: x"),
    ("regex_bomb", "hostile said: x"),
    ("deep_schema", "hostile said: x"),
    ("many_tools", "hostile said: x"),
    ("endless", "hostile said: x"),
    ("same_cursor", "hostile said: x"),
];

pub fn nothing_it_does_harms_anybody_else() {
    run(async {
        let site = Site::new();
        let good = site.open(vec![site.spec("s", "good")]);
        good.look("s").await.unwrap();
        for (way, hears) in TABLE {
            let site_of_it = Site::new();
            let before = memory::forget();
            let began = Instant::now();
            let servers = site_of_it.open(vec![site_of_it.spec("r", way)]);
            if let Err(failure) = servers.look("r").await {
                panic!("{way}: {failure}");
            }
            let said = site_of_it.call("r_hostile", json!({"text": "x"})).await;
            let (took, grown) = (began.elapsed(), memory::most().saturating_sub(before) >> 10);
            println!("{way}: {took:?}, {grown} MB: {}", said.text());
            assert!(said.text().contains(hears), "{way}: {}", said.text());
            assert!(took < Duration::from_secs(5), "{way}: {took:?}");
            assert!(grown < 64, "{way}: {grown} MB");
            assert_eq!(site.call("s_echo", json!({"text": "a"})).await.text(), "echo: a", "{way}");
        }
    });
}
