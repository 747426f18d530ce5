//! What a guest sees below the workspace: the files that are there, with what this call has written aside laid over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::change::special;
use super::guard::Doing;
use super::problem::Problem;
use crate::policy::{Denial, FileGrant};
use crate::sandbox::below::{self, Kind};
use crate::sandbox::stage::{Aside, Stage};
use crate::sandbox::workspace::Workspace;

/// A path that is made of links alone has an end too: the limit of Linux.
const MOST_LINKS: usize = 40;
/// Linux's `NAME_MAX` and `PATH_MAX`.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;

/// The files of one call.
pub(in crate::sandbox) struct View {
    pub(super) workspace: Arc<Workspace>,
    /// `None` with a grant to read.
    pub(super) stage: Option<Stage>,
}

/// A name in a directory and what it stands for, or why it cannot be told.
pub(super) type Named = Result<(String, Kind), Problem>;

/// What is at a place.
#[derive(Debug)]
pub(super) enum Node {
    /// There in the workspace. Its kind is not [`Kind::Link`].
    There(Kind, Metadata),
    /// A file or a directory written aside.
    Aside(Kind, Metadata),
    /// A symbolic link, there or aside.
    Link(String),
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Found {
    /// Without links, apart from its last part.
    pub(super) place: String,
    /// `None`: nothing is there, and its parent is a directory.
    pub(super) node: Option<Node>,
    /// The path says that it is a directory.
    pub(super) as_directory: bool,
}

impl Node {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::There(kind, _) | Self::Aside(kind, _) => *kind,
            Self::Link(_) => Kind::Link,
        }
    }
}

impl View {
    pub(in crate::sandbox) fn new(workspace: Arc<Workspace>, stage: Option<Stage>) -> Self {
        Self { workspace, stage }
    }

    pub(super) fn root(&self) -> &Dir {
        self.workspace.dir()
    }

    /// What would be said to a tool with this grant that opens a path, if that can be said before.
    pub(in crate::sandbox) fn refusal(&self, path: &str, grant: FileGrant) -> Option<Denial> {
        let place = match self.find("", path, true) {
            Ok(Found { node: Some(node), place, .. }) if node.kind() == Kind::Directory => return self.hidden(&place),
            Ok(Found { node: Some(node), place, .. }) if node.kind() == Kind::Special => {
                return match special(&place) {
                    Problem::Denied(_, denial) => Some(denial),
                    Problem::Code(_) | Problem::Io(_) => None,
                };
            }
            Ok(Found { place, .. }) => place,
            Err(Problem::Denied(_, denial)) => return Some(denial),
            // Its parents are not there either. Whatever else it is, the tool meets it too and can say more about it.
            Err(Problem::Code(_) | Problem::Io(_)) => path.to_owned(),
        };
        match grant {
            FileGrant::None => None,
            FileGrant::Read => self.hidden(&place),
            FileGrant::ReadWrite => self.workspace.guard().changing(&place, Doing::Changing).err(),
        }
    }

    /// The place that a path leads to, if anything is there.
    pub(in crate::sandbox) fn place(&self, path: &str) -> Result<Option<String>, Problem> {
        let found = self.find("", path, true)?;
        Ok(found.node.map(|_| found.place))
    }

    fn hidden(&self, place: &str) -> Option<Denial> {
        self.workspace.guard().reading(place).err()
    }

    /// Follows a path from a directory, with the links in it; the link at its end only if `follow`.
    pub(super) fn find(&self, from: &str, path: &str, follow: bool) -> Result<Found, Problem> {
        if path.is_empty() {
            return Err(ErrorCode::NoEntry.into());
        }
        if path.len() > LONGEST_PATH || path.split('/').any(|part| part.len() > LONGEST_NAME) {
            return Err(ErrorCode::NameTooLong.into());
        }
        if path.contains('\0') {
            return Err(ErrorCode::Invalid.into());
        }
        if path.starts_with('/') {
            return Err(Problem::leads_out(path));
        }
        let as_directory = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
        self.at_once(from, path, as_directory).map_or_else(|| self.step_by_step(from, path, follow, as_directory), Ok)
    }

    /// Most paths have no link in them and name what is there.
    fn at_once(&self, from: &str, path: &str, as_directory: bool) -> Option<Found> {
        if self.stage.as_ref().is_some_and(|stage| !stage.is_empty()) {
            return None;
        }
        let mut place = from.to_owned();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return None,
                name => place = below::join(&place, name),
            }
        }
        let metadata = below::look(self.root(), &place).ok()?;
        match Kind::of(&metadata) {
            Kind::Link => None,
            Kind::File | Kind::Special if as_directory => None,
            kind @ (Kind::File | Kind::Special | Kind::Directory) => {
                Some(Found { place, node: Some(Node::There(kind, metadata)), as_directory })
            }
        }
    }

    fn step_by_step(&self, from: &str, path: &str, follow: bool, as_directory: bool) -> Result<Found, Problem> {
        let mut place = from.to_owned();
        let mut node = self.node(&place)?;
        let mut links = 0;
        let mut ahead: Vec<String> = parts(path);
        while let Some(part) = ahead.pop() {
            // Whatever comes next is in here.
            match node.as_ref().map(Node::kind) {
                Some(Kind::Directory) => {}
                Some(Kind::File | Kind::Special | Kind::Link) => return Err(ErrorCode::NotDirectory.into()),
                None => return Err(ErrorCode::NoEntry.into()),
            }
            if part == ".." {
                if place.is_empty() {
                    return Err(if links > 0 { Problem::link_leads_out(path) } else { Problem::leads_out(path) });
                }
                place = below::split(&place).0.to_owned();
                node = self.node(&place)?;
                continue;
            }
            let next = below::join(&place, &part);
            let found = self.node(&next)?;
            let Some(Node::Link(target)) = &found else {
                (place, node) = (next, found);
                continue;
            };
            if ahead.is_empty() && !follow && !as_directory {
                return Ok(Found { place: next, node: found, as_directory });
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(ErrorCode::Loop.into());
            }
            let onward = match target.strip_prefix('/') {
                None => target.clone(),
                // An absolute link into the workspace stays in it.
                Some(_) => {
                    let inside =
                        std::path::Path::new(target).strip_prefix(self.workspace.root()).map_err(|_| Problem::link_leads_out(path))?;
                    place = String::new();
                    inside.to_string_lossy().into_owned()
                }
            };
            node = self.node(&place)?;
            ahead.extend(parts(&onward));
        }
        if as_directory && node.as_ref().is_some_and(|node| node.kind() != Kind::Directory) {
            return Err(ErrorCode::NotDirectory.into());
        }
        Ok(Found { place, node, as_directory })
    }

    /// What is at a place.
    pub(super) fn node(&self, place: &str) -> Result<Option<Node>, Problem> {
        if let Some(stage) = &self.stage {
            match stage.at(place) {
                Some(Aside::Gone) => return Ok(None),
                Some(Aside::Link(target)) => return Ok(Some(Node::Link(target.clone()))),
                Some(Aside::File(file)) => return Ok(Some(Node::Aside(Kind::File, stage.look(&file.data)?))),
                Some(Aside::Directory { data, .. }) => return Ok(Some(Node::Aside(Kind::Directory, stage.look(data)?))),
                None if stage.is_cut_off(place) => return Ok(None),
                None => {}
            }
        }
        let Some(metadata) = below::look_for(self.root(), place)? else { return Ok(None) };
        Ok(Some(match Kind::of(&metadata) {
            Kind::Link => Node::Link(below::read_link(self.root(), place)?),
            kind => Node::There(kind, metadata),
        }))
    }

    /// The metadata of a link that is there in the workspace.
    pub(super) fn link_there(&self, place: &str) -> Option<Metadata> {
        let is_aside = self.stage.as_ref().is_some_and(|stage| stage.at(place).is_some());
        if is_aside { None } else { below::look(self.root(), place).ok().filter(Metadata::is_symlink) }
    }

    /// The names in a directory, in their order.
    pub(super) fn list(&self, place: &str) -> Result<Vec<Named>, Problem> {
        let mut names = BTreeMap::new();
        let mut errors = Vec::new();
        let there = self.stage.as_ref().is_none_or(|stage| stage.at(place).is_none() && !stage.is_cut_off(place));
        if there {
            for entry in below::list(self.root(), place)? {
                match entry {
                    Ok((name, kind)) => drop(names.insert(name, kind)),
                    Err(foreign) => errors.push(Err(Problem::Io(foreign.into()))),
                }
            }
        }
        for (name, aside) in self.stage.iter().flat_map(|stage| stage.children(place)) {
            match aside {
                Aside::Gone => drop(names.remove(name)),
                Aside::File(_) => drop(names.insert(name.to_owned(), Kind::File)),
                Aside::Directory { .. } => drop(names.insert(name.to_owned(), Kind::Directory)),
                Aside::Link(_) => drop(names.insert(name.to_owned(), Kind::Link)),
            }
        }
        Ok(names.into_iter().map(Ok).chain(errors).collect())
    }
}

/// The parts of a path, the last one first.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}
