//! File operations in the workspace: opening, walking, suggesting paths and writing batches of
//! changes.

pub(crate) mod exchange_files;
mod failpoint;
pub(crate) mod file_change;
pub(crate) mod file_io;
pub(crate) mod ignore_file_checks;
pub(crate) mod open_beneath;
pub(crate) mod resolved_path;
pub(crate) mod suggest;
pub(crate) mod temp_names;
pub(crate) mod walk;
pub(crate) mod write_batch;
