//! Shell commands run for the model: their environment, start, output and jobs.

#[cfg(target_os = "linux")]
pub(crate) mod captured_changes;
#[cfg(target_os = "linux")]
mod command_changes;
pub(crate) mod command_types;
pub(crate) mod environment;
#[cfg(target_os = "linux")]
pub(crate) mod head_tail_buffer;
#[cfg(target_os = "linux")]
mod ignore_rules;
#[cfg(target_os = "linux")]
pub(crate) mod job;
pub(crate) mod job_events;
#[cfg(target_os = "linux")]
pub(crate) mod output_reader;
#[cfg(target_os = "linux")]
pub(crate) mod package_caches;
#[cfg(target_os = "linux")]
pub(crate) mod start;
#[cfg(target_os = "linux")]
pub(crate) mod stdio;
#[cfg(not(target_os = "linux"))]
pub(crate) mod unsupported;
#[cfg(target_os = "linux")]
pub(crate) mod workspace_jobs;
