//! The jobs panel (`/jobs`): lists background jobs, shows their recent output and stops them.

use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::pager::Pager;
use super::{Panel, PanelControlFlow, shared_rows};
use crate::keys::UiCommand;
use crate::render;
use crate::session_state::SessionState;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::display_text::format_age;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    Event, Fault, JobRow, LiveEvent, LiveEventRecord, QueryReply, SessionOp, SessionQuery,
    UnixMillis,
};

/// The panel of background jobs.
#[derive(Debug)]
pub struct JobsPanel {
    list: FilterList<u64>,
    /// The pending `SessionQuery::Jobs`. `needs_refresh` is set if a job changed after it was sent.
    list_request: Option<u64>,
    needs_refresh: bool,
    /// The job shown in detail, with its output.
    open_job: Option<(JobRow, Pager)>,
    /// The job that awaits the user's confirmation to stop (`SessionOp::EndJob`).
    job_to_stop: Option<u64>,
}

impl JobsPanel {
    /// Lists the jobs known from `JobUpdate` events, and requests their output.
    pub fn new(cx: &mut UiContext<'_>) -> JobsPanel {
        let list = FilterList::with_items(Vec::new(), "No background commands");
        let mut panel = JobsPanel {
            list,
            list_request: None,
            needs_refresh: false,
            open_job: None,
            job_to_stop: None,
        };
        panel.refresh_list(cx);
        panel.request_jobs(cx);
        panel
    }

    /// Requests the jobs with their output. If a request is pending, sets `needs_refresh` to
    /// request again after its response.
    fn request_jobs(&mut self, cx: &mut UiContext<'_>) {
        match (cx.state.session, self.list_request) {
            (Some(session), None) => {
                self.list_request = Some(cx.send_query(SessionQuery::Jobs { session }))
            }
            (_, pending) => self.needs_refresh = pending.is_some(),
        }
    }

    /// Rebuilds the list, newest job first, and keeps the selected job selected.
    fn refresh_list(&mut self, cx: &UiContext<'_>) {
        let selected = self.list.selected().map(|(_, job)| *job);
        let item = |job: &JobRow| {
            let last_line = job.output_tail.trim_end().lines().next_back().unwrap_or_default();
            let item = ListItem::new(&job.command)
                .with_note(last_line)
                .with_column(describe_job(job))
                .with_column(format_age(job.started_at, UnixMillis(cx.now)));
            (ListItem { is_current: job.running, ..item }, job.id)
        };
        self.list.set_items(cx.state.jobs.values().rev().map(item).collect());
        self.list.select(|_, job| Some(*job) == selected);
        if let Some((open, _)) = &mut self.open_job
            && let Some(job) = cx.state.jobs.get(&open.id)
        {
            (open.running, open.exit_code) = (job.running, job.exit_code);
        }
    }

    /// Asks the user to confirm stopping a job.
    fn confirm_stop(&mut self, job: &JobRow) {
        let name = windlass_protocol::display_text::truncate_chars(&job.command, 30);
        self.job_to_stop = job.running.then_some(job.id);
        self.list.confirmation = Some(match job.running {
            true => format!("Press y to stop: {name}"),
            false => "This command has already ended".to_owned(),
        });
    }
}

/// Returns the status of a job as text, such as `done`.
pub(crate) fn describe_job(job: &JobRow) -> String {
    match (job.running, job.exit_code) {
        (true, _) => "running".to_owned(),
        (false, Some(0)) => "done".to_owned(),
        (false, Some(code)) => format!("failed (exit {code})"),
        (false, None) => "ended".to_owned(),
    }
}

impl Panel for JobsPanel {
    fn title(&self) -> String {
        match &self.open_job {
            Some((job, _)) => windlass_protocol::display_text::truncate_chars(&job.command, 60),
            None => "Jobs".to_owned(),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if let Some((_, pager)) = &mut self.open_job {
            pager.on_key(key, &cx.appearance.key_map);
            return PanelControlFlow::Stay;
        }
        if self.list.confirmation.take().is_some() {
            if let (Some(job), KeyCode::Char('y')) = (self.job_to_stop.take(), key.code) {
                cx.send_op(SessionOp::EndJob { job });
            }
            return PanelControlFlow::Stay;
        }
        let action = self.list.on_key(key, &cx.appearance.key_map);
        let selected = self.list.selected().and_then(|(_, job)| cx.state.jobs.get(job));
        match (action, selected) {
            (ListKeyOutcome::RowCommand(UiCommand::DeleteRow), Some(job)) => self.confirm_stop(job),
            (ListKeyOutcome::RowChosen, Some(job)) => {
                let mut pager = Pager::default();
                pager.invalidate_following();
                self.open_job = Some((job.clone(), pager));
                self.request_jobs(cx);
            }
            _ => {}
        }
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, _: &mut UiContext<'_>) -> PanelControlFlow {
        match self.open_job.take().is_some() | self.list.confirmation.take().is_some() {
            true => PanelControlFlow::Stay,
            false => PanelControlFlow::Close,
        }
    }

    fn on_paste(&mut self, text: &str, _: &mut UiContext<'_>) {
        if self.open_job.is_none() {
            self.list.on_paste(text);
        }
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        match &mut self.open_job {
            Some((_, pager)) => pager.scroll_by(lines),
            None => self.list.move_selection(lines),
        }
    }

    fn on_event(&mut self, event: &Event, cx: &mut UiContext<'_>) {
        let Event::Live(LiveEventRecord { session, event: LiveEvent::JobUpdate { job }, .. }) =
            event
        else {
            return;
        };
        if Some(*session) != cx.state.session {
            return;
        }
        self.refresh_list(cx);
        if self.open_job.as_ref().is_some_and(|(open, _)| open.id == job.id) {
            self.request_jobs(cx);
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if self.list_request.take_if(|pending| *pending == id).is_none() {
            return false;
        }
        self.refresh_list(cx);
        match response {
            Err(fault) => self.list.set_failed(fault),
            Ok(HostResponse::Reply { reply: QueryReply::Jobs { jobs } }) => {
                if let Some((open, pager)) = &mut self.open_job
                    && let Some(job) = jobs.iter().find(|job| job.id == open.id)
                {
                    open.output_tail.clone_from(&job.output_tail);
                    pager.invalidate_following();
                }
            }
            Ok(_) => {}
        }
        if std::mem::take(&mut self.needs_refresh) {
            self.request_jobs(cx);
        }
        true
    }

    fn height(&self, _: u16, _: &SessionState) -> u16 {
        match &self.open_job {
            Some(_) => u16::MAX,
            None => self.list.height(),
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        _: &SessionState,
    ) -> Option<Position> {
        let Some((job, pager)) = &mut self.open_job else {
            let keys = [
                (UiCommand::ChooseRow, "show output"),
                (UiCommand::DeleteRow, "stop"),
                (UiCommand::Escape, "close"),
            ];
            return self.list.draw(
                area,
                buffer,
                appearance,
                &shared_rows::describe_keys(appearance, &keys),
            );
        };
        let (body, footer) = shared_rows::split_footer(area);
        pager.draw(body, buffer, appearance, |width| {
            let output = job.output_tail.as_str();
            let output = if output.trim().is_empty() { "(no output)" } else { output };
            let rows = render::render_terminal_output(
                output,
                width.saturating_sub(shared_rows::PANEL_MARGIN + 1).max(1),
                appearance,
            );
            rows.iter().map(|row| shared_rows::indent_row(row, shared_rows::PANEL_MARGIN)).collect()
        });
        let close_hint =
            shared_rows::describe_keys(appearance, &[(UiCommand::Escape, "back to the list")]);
        let position = Some(pager.position_label()).filter(|position| !position.is_empty());
        let hints: Vec<String> =
            [describe_job(job), close_hint].into_iter().chain(position).collect();
        let hints = hints.join(shared_rows::item_separator(appearance));
        shared_rows::hint_row(&hints, appearance, footer.width).draw(footer, buffer);
        None
    }
}
