//! The two quiet rows around the prompt: the rule that says what goes on, and how things stand.

use crate::cx::Look;
use crate::ink::Row;
use crate::keys::Command;
use crate::known::Known;
use crate::theme::Role;
use crate::wrap;
use windlass_protocol::text::{counted, duration};
use windlass_protocol::{Cost, Mode};

/// The least room between what stands left and what stands right.
const GAP: usize = 2;

/// What the rule above the prompt says.
pub(super) struct Rule<'a> {
    /// Something for a moment.
    pub(super) hint: Option<&'a str>,
    /// How long the turn under way has taken, in milliseconds.
    pub(super) took: Option<u64>,
}

impl Rule<'_> {
    /// The rule, as wide as the screen.
    pub(super) fn row(&self, width: usize, look: &Look, known: &Known) -> Row {
        let (edge, dim) = (look.style(Role::Border), look.style(Role::Dim));
        let line = if look.ascii { "-" } else { "─" };
        let (mark, dot) = if look.ascii { ("*", "-") } else { ("●", "·") };
        let (mut said, mut time) = (Row::default(), String::new());
        match (self.hint, self.took) {
            (Some(hint), _) => said.push(look.style(Role::Text), hint),
            (None, Some(took)) => {
                said.push(look.style(Role::Accent), mark);
                let doing = if known.stopping { "stopping" } else { known.doing.as_str() };
                said.push(look.style(Role::Text), &format!(" {doing}"));
                time = format!(" {dot} {}", duration(took));
            }
            (None, None) => return Row::of(edge, &line.repeat(width)),
        }
        let way_out = match (self.hint, known.stopping) {
            (Some(_), _) => String::new(),
            (None, false) => format!(" {} stops ", look.keys.hint(Command::Escape)),
            (None, true) => format!(" {} once more: at once ", look.keys.hint(Command::Escape)),
        };
        let way_out = if width < 40 { String::new() } else { way_out };
        let room = width.saturating_sub(way_out.chars().count() + 3 + 3);
        // Words are cut, the time is not.
        let said =
            wrap::cut(&said, room.saturating_sub(time.chars().count()), look).and(dim, &time);
        let filled = width.saturating_sub(3 + said.width() + 1 + way_out.chars().count() + 2);
        let mut row = Row::of(edge, &format!("{} ", line.repeat(2)));
        for (style, text) in said.pieces() {
            row.push(style, text);
        }
        row.push(edge, &format!(" {}", line.repeat(filled)));
        row.push(dim, &way_out);
        row.push(edge, &line.repeat(2));
        wrap::cut(&row, width, look)
    }
}

/// The last row: the mode, the model, how full its window is, what was spent, and where one is. What
/// does not fit is left out, the least important first.
pub(super) fn status(width: usize, look: &Look, known: &Known) -> Row {
    let dim = look.style(Role::Dim);
    let mut left = vec![(0, Row::of(look.style(mode(known.mode)), known.mode.name()))];
    if !known.model.is_empty() {
        let name = known.model.rsplit('/').next().unwrap_or_default();
        left.push((1, Row::of(dim, name)));
    }
    if let Some(used) = used(known) {
        let full = known.standing.window.is_some_and(|window| known.context * 10 > window * 8);
        let role = if full { Role::Warn } else { Role::Dim };
        left.push((2, Row::of(look.style(role), &used)));
    }
    if known.cost.0 > 0 {
        left.push((3, Row::of(dim, &money(known.cost))));
    }
    let working = known.children.values().filter(|child| !child.done).count();
    if working > 0 {
        left.push((2, Row::of(look.style(Role::Accent), &counted(working, "agent"))));
    }
    let running = known.jobs.values().filter(|job| job.running).count();
    if running > 0 {
        left.push((2, Row::of(look.style(Role::Accent), &counted(running, "job"))));
    }
    let open = known.todos.iter().filter(|todo| todo.status.is_open()).count();
    if open > 0 {
        let done = known.todos.len() - open;
        left.push((4, Row::of(dim, &format!("{done}/{} done", known.todos.len()))));
    }
    if known.agent != windlass_protocol::BUILD && !known.agent.is_empty() {
        left.push((3, Row::of(dim, &known.agent)));
    }
    let mut right = Vec::new();
    if let Some(branch) = &known.standing.branch {
        right.push((5, Row::of(dim, branch)));
    }
    if !known.standing.workspace.is_empty() {
        right.push((6, Row::of(dim, &known.standing.workspace)));
    }
    fit(left, right, width, look)
}

/// Leaves out what has the highest number until the rest fits.
fn fit(mut left: Vec<(u8, Row)>, mut right: Vec<(u8, Row)>, width: usize, look: &Look) -> Row {
    let dim = look.style(Role::Dim);
    let between = if look.ascii { " | " } else { " · " };
    let joined = |rows: &[(u8, Row)]| {
        let mut joined = Row::default();
        for (_, row) in rows {
            if joined.width() > 0 {
                joined.push(dim, between);
            }
            row.pieces().for_each(|(style, text)| joined.push(style, text));
        }
        joined
    };
    loop {
        let (start, end) = (joined(&left), joined(&right));
        let gap = if end.width() > 0 { GAP } else { 0 };
        let taken = 1 + start.width() + gap + end.width() + 1;
        let rest = left.len() + right.len();
        if taken <= width || rest <= 1 {
            let mut row = Row::of(dim, " ");
            start.pieces().for_each(|(style, text)| row.push(style, text));
            let room = width.saturating_sub(row.width() + end.width() + 1);
            row.push(dim, &" ".repeat(room));
            end.pieces().for_each(|(style, text)| row.push(style, text));
            return wrap::cut(&row, width, look);
        }
        let least = left.iter().chain(&right).map(|(rank, _)| *rank).max().unwrap_or_default();
        left.retain(|(rank, _)| *rank < least);
        right.retain(|(rank, _)| *rank < least);
    }
}

fn mode(mode: Mode) -> Role {
    match mode {
        Mode::Plan => Role::Accent,
        Mode::Ask => Role::Strong,
        Mode::Auto => Role::Good,
        Mode::Full => Role::Bad,
    }
}

/// How full the window is, or how much was said where its size is not known.
fn used(known: &Known) -> Option<String> {
    if known.context == 0 {
        return None;
    }
    let window = known.standing.window.filter(|window| *window > 0);
    Some(match window {
        Some(window) => format!("{} % full", (known.context * 100).div_ceil(window).min(100)),
        None => format!("{} tokens", thousands(known.context)),
    })
}

/// A number as people say it: 950, 12k, 1.2M.
pub(crate) fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// An amount of money: as many digits as it takes to see that it is some.
pub(crate) fn money(cost: Cost) -> String {
    let dollars = cost.0 as f64 / 1e6;
    match cost.0 {
        0..10_000 => format!("${dollars:.4}"),
        _ => format!("${dollars:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn known() -> Known {
        let mut known = Known { mode: Mode::Auto, ..Known::default() };
        known.model = "anthropic/claude-opus-4".into();
        known.standing.workspace = "~/code/harbour".into();
        known.standing.branch = Some("main".into());
        known.standing.window = Some(200_000);
        (known.context, known.cost) = (24_000, Cost(420_000));
        known.doing = "running cargo test".into();
        known
    }

    #[test]
    fn what_matters_least_is_left_out_first() {
        let rows: Vec<String> = [80, 60, 44, 30, 12]
            .map(|width| format!("|{:width$}|", status(width, &Look::default(), &known()).text()))
            .into();
        expect![[r#"
            | auto · claude-opus-4 · 12 % full · $0.42                 main · ~/code/harbour |
            | auto · claude-opus-4 · 12 % full · $0.42              main |
            | auto · claude-opus-4 · 12 % full · $0.42   |
            | auto · claude-opus-4         |
            | auto       |"#]]
        .assert_eq(&rows.join("\n"));
    }

    #[test]
    fn the_rule_says_what_goes_on_and_how_to_stop_it() {
        let known = known();
        let rule =
            |hint, took, width| Rule { hint, took }.row(width, &Look::default(), &known).text();
        let rows = [
            rule(None, None, 60),
            rule(None, Some(7_900), 60),
            rule(None, Some(125_000), 30),
            rule(Some("once more leaves"), Some(7_000), 60),
        ];
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{rows:?}");
        expect![[r#"
            ────────────────────────────────────────────────────────────
            ── ● running cargo test · 7 s ───────────────── Esc stops ──
            ── ● running ca… · 2 m 05 s ──
            ── once more leaves ────────────────────────────────────────"#]]
        .assert_eq(&rows.join("\n"));
    }

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!([950, 12_345, 1_250_000].map(thousands), ["950", "12k", "1.2M"]);
        assert_eq!(
            [Cost(900), Cost(12_000), Cost(3_456_000)].map(money),
            ["$0.0009", "$0.01", "$3.46"]
        );
    }
}
