//! The data folders of MCP servers, one per server, separately for the user and for each project.
//!
//! They lie beside the plugins, because the sandbox hides the folder with the user's own data.

use crate::mcp_server_pins::McpServerPinOwner;
use crate::{Dirs, ProjectError, private_files, trust};
use std::path::PathBuf;

/// Creates the data folder of a server and returns its real path: a link in it would be one more
/// thing to trust.
pub fn create_server_data_folder(
    dirs: &Dirs,
    owner: McpServerPinOwner<'_>,
    server: &str,
) -> Result<PathBuf, ProjectError> {
    let folder = dirs.plugins.join("mcp-data").join(owner.folder_name()).join(server);
    let to_error = |source| ProjectError::File { path: folder.clone(), source };
    private_files::create_private_folder(&folder).map_err(to_error)?;
    trust::real_path(&folder)
}
