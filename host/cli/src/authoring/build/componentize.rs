//! Conversion of a core module for WASI 0.1 into a component.

use std::fs;
use std::path::Path;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding};

use super::bindings::read_world;
use super::step::BuildError;
use crate::authoring::PluginProject;
use cofferdam::own_file;

/// The largest core module that is read.
const MAX_MODULE_SIZE: u64 = 512 << 20;

/// Encodes a core module with an embedded world as the project's component.
pub(super) fn componentize(project: &PluginProject, core: &Path) -> Result<(), BuildError> {
    let module = own_file::read_regular(core, MAX_MODULE_SIZE)
        .map_err(|error| BuildError::Io(core.to_owned(), error))?;
    let encoded = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| {
            encoder.adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
        })
        .and_then(|encoder| encoder.validate(true).encode());
    let component = encoded.map_err(|error| {
        BuildError::InvalidComponent(format!(
            "cannot convert {} to a component: {error:#}",
            core.display()
        ))
    })?;
    fs::write(project.component_path(), component)
        .map_err(|error| BuildError::Io(project.component_path(), error))
}

/// Embeds the project's world in a core module, as [`componentize`] expects it.
pub(super) fn embed_world(project: &PluginProject, core: &Path) -> Result<(), BuildError> {
    let (resolve, world) = read_world(project)?;
    let mut module = own_file::read_regular(core, MAX_MODULE_SIZE)
        .map_err(|error| BuildError::Io(core.to_owned(), error))?;
    wit_component::embed_component_metadata(
        &mut module,
        &resolve,
        world,
        StringEncoding::UTF8,
        false,
    )
    .map_err(|error| BuildError::InvalidComponent(format!("{error:#}")))?;
    fs::write(core, module).map_err(|error| BuildError::Io(core.to_owned(), error))
}
